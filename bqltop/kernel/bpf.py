"""BCC as bqltop uses it: no kernel headers, programs that are run rather than attached, maps that are memory.

``Module(text, constants)`` compiles a program text against the small tree of headers beside this file. Everything here
raises BpfError with one sentence that says what is missing and how to get it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import sys
import tempfile
from pathlib import Path

from bqltop.fault import Fault
from bqltop.kernel import direct
from bqltop.kernel.btf import Btf, BtfError, libbpf
from bqltop.kernel.instructions import SIZE as INSTRUCTION

HERE = Path(__file__).parent
DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"
"""Where Debian puts bcc; a virtual environment does not look there by itself."""

KPROBES = Path("/sys/bus/event_source/devices/kprobe")
"""There where the kernel has kprobes."""

BPF_TRACE_FENTRY = 24
"""enum bpf_attach_type (include/uapi/linux/bpf.h)"""


class BpfError(Fault, RuntimeError):
    """eBPF is not to be had: the message says why and what to do."""


@functools.cache
def bcc():
    """The bcc module, also from inside a virtual environment. Raises BpfError when it is not installed."""
    os.environ["BCC_KERNEL_SOURCE"] = str(HERE / "headers")
    try:
        import bcc as module
    except ImportError:
        sys.path.append(DEBIAN_PACKAGES)
        try:
            import bcc as module
        except (ImportError, OSError) as error:
            raise BpfError("bcc is not installed (Debian: apt install python3-bpfcc)") from error
        finally:
            sys.path.remove(DEBIAN_PACKAGES)
    except OSError as error:
        raise BpfError(f"bcc does not load: {error}") from error
    return module


def _give_back() -> None:
    """Hand memory that the compiler has freed back to the kernel: 20 MB. Where the C library cannot, it stays ours."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class _RunOptions(ctypes.Structure):
    """``struct bpf_test_run_opts`` (libbpf 1.0, bpf.h)."""

    _fields_ = [
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_void_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    ]


class _LoadOptions(ctypes.Structure):
    """The beginning of ``struct bpf_prog_load_opts`` (libbpf 1.0, bpf.h); the rest is taken as zero."""

    _fields_ = [
        ("sz", ctypes.c_size_t),
        ("attempts", ctypes.c_int),
        ("expected_attach_type", ctypes.c_uint32),
        ("prog_btf_fd", ctypes.c_uint32),
        ("prog_flags", ctypes.c_uint32),
        ("prog_ifindex", ctypes.c_uint32),
        ("kern_version", ctypes.c_uint32),
        ("attach_btf_id", ctypes.c_uint32),
        ("attach_prog_fd", ctypes.c_uint32),
        ("attach_btf_obj_fd", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class Runner:
    """A loaded raw-tracepoint program that is attached to nothing and run on demand (BPF_PROG_RUN), 2 us a run."""

    ARGUMENTS = 4

    def __init__(self, fd: int):
        self._fd = fd
        self._arguments = (ctypes.c_uint64 * self.ARGUMENTS)()
        self._options = _RunOptions(
            sz=ctypes.sizeof(_RunOptions),
            ctx_in=ctypes.addressof(self._arguments),
            ctx_size_in=ctypes.sizeof(self._arguments),
        )
        self._run = libbpf().bpf_prog_test_run_opts
        self._run.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self._pointer = ctypes.addressof(self._options)

    def __call__(self, *arguments: int) -> int:
        """Run it once with these arguments; what the program returned, as a signed 32-bit number."""
        for position, value in enumerate(arguments):
            self._arguments[position] = value
        if self._run(self._fd, self._pointer):
            raise BpfError(f"running an eBPF program failed: {os.strerror(ctypes.get_errno())}")
        return ctypes.c_int32(self._options.retval).value


class Module:
    """A compiled text: its programs and maps. Closing it detaches and frees everything; so does the process' end."""

    def __init__(self, text: str, constants: dict[str, int]):
        flags = [f"-D{name}={value:#x}ULL" if value > 0xFFFFFFFF else f"-D{name}={value}" for name, value in constants.items()]
        self._maps: list[mmap.mmap] = []
        self._descriptors: list[int] = []
        self.programs: dict[str, int] = {}
        with _quiet_stderr() as said:
            try:
                self._bpf = bcc().BPF(text=text.encode(), cflags=flags)
            except Exception as error:  # bcc raises bare Exception
                raise BpfError(f"compiling an eBPF program failed: {_reason(said, error)}") from error
        _give_back()

    def load(self, name: str, kind: str = "RAW_TRACEPOINT") -> int:
        """Load a program; its file descriptor. ``kind`` is the name of bcc's constant of the program type."""
        direct.link(*self._text(name))
        with _quiet_stderr() as said:
            try:
                function = self._bpf.load_func(name.encode(), getattr(bcc().BPF, kind))
            except Exception as error:
                raise BpfError(f"the kernel refused the eBPF program {name}: {_reason(said, error)}") from error
        self.programs[name] = function.fd
        return function.fd

    def _text(self, name: str) -> tuple[int, int]:
        """(address, bytes) of a program's compiled instructions."""
        lib, module = bcc().lib, self._bpf.module
        return lib.bpf_function_start(module, name.encode()), lib.bpf_function_size(module, name.encode())

    def runner(self, name: str) -> Runner:
        """A program to be run on demand."""
        return Runner(self.load(name))

    def attach(self, name: str, tracepoint: str) -> None:
        """Attach a program to a raw tracepoint of the kernel."""
        self.load(name)
        try:
            self._bpf.attach_raw_tracepoint(tp=tracepoint.encode(), fn_name=name.encode())
        except Exception as error:
            raise BpfError(f"the kernel has no raw tracepoint {tracepoint}") from error

    def attach_fentry(self, name: str, function: str) -> bool:
        """Attach a program to the entry of a kernel function; False where that cannot be."""
        start, size = self._text(name)
        direct.link(start, size)
        try:
            options = _LoadOptions(
                sz=ctypes.sizeof(_LoadOptions),
                expected_attach_type=BPF_TRACE_FENTRY,
                attach_btf_id=Btf.vmlinux().function(function),
            )
        except BtfError:
            return False
        # Loaded with libbpf: BCC takes what to attach to from the program's name, spelt differently in each of its
        # versions, and a wrong spelling ends the process.
        with _quiet_stderr():
            fd = libbpf().bpf_prog_load(
                bcc().BPF.TRACING, name.encode(), b"GPL", ctypes.c_void_p(start), ctypes.c_size_t(size // INSTRUCTION),
                ctypes.byref(options),
            )  # fmt: skip
            link = libbpf().bpf_raw_tracepoint_open(None, fd) if fd >= 0 else -1
        if fd < 0 or link < 0:
            if fd >= 0:
                os.close(fd)
            return False
        self.programs[name] = fd
        # Closing the link detaches it.
        self._descriptors += (link, fd)
        return True

    def attach_kprobe(self, name: str, function: str) -> bool:
        """Attach a program to a kprobe on a kernel function; False where that cannot be."""
        if not KPROBES.exists():
            return False
        with _quiet_stderr():
            try:
                self.load(name, "KPROBE")
                self._bpf.attach_kprobe(event=function.encode(), fn_name=name.encode())
            except Exception:  # bcc raises bare Exception; what it says is for developers
                return False
        return True

    def memory(self, table: str) -> memoryview:
        """An array map that was made with BPF_F_MMAPABLE, as memory."""
        found = self._bpf[table.encode()]
        size = len(found) * ((ctypes.sizeof(found.Leaf) + 7) // 8 * 8)
        page = mmap.PAGESIZE
        mapped = mmap.mmap(found.map_fd, (size + page - 1) // page * page)
        self._maps.append(mapped)
        return memoryview(mapped)[:size]

    def table(self, name: str):
        """A map as bcc gives it."""
        return self._bpf[name.encode()]

    def close(self) -> None:
        """Detach the programs and free the maps. Views handed out by ``memory`` must not be used any more."""
        self._bpf.cleanup()
        for fd in self._descriptors:
            os.close(fd)
        self._descriptors.clear()
        for mapped in self._maps:
            with contextlib.suppress(BufferError):
                mapped.close()
        self._maps.clear()


def read_program(*names: str) -> str:
    """The text of program files, one after the other: BCC compiles one text, and they share their maps."""
    return "\n".join((HERE / "programs" / name).read_text() for name in names)


def available() -> None:
    """Raise BpfError when this process may not load eBPF programs or the machine lacks what they need."""
    if os.geteuid() != 0 and not _may_load():
        raise BpfError("no privilege for eBPF: run it as root (sudo bqltop ...)")
    try:
        libbpf()
    except BtfError as error:
        raise BpfError(str(error)) from error
    bcc()


def _may_load() -> bool:
    """Whether this process has CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN): bits 39, 38, 21 of CapEff."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            capabilities = int(line.split()[1], 16)
            return bool(capabilities >> 21 & 1 or (capabilities >> 39 & 1 and capabilities >> 38 & 1))
    return False


@contextlib.contextmanager
def _quiet_stderr():
    """Catch what clang and the verifier print on file descriptor 2: on a screen it would land in the picture."""
    with tempfile.TemporaryFile() as catch:
        saved = os.dup(2)
        os.dup2(catch.fileno(), 2)
        try:
            yield catch
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _reason(said, error: Exception) -> str:
    """The most telling line of what was printed; all of it with BQLTOP_DEBUG=1."""
    said.seek(0)
    text = said.read().decode(errors="replace").strip()
    if os.environ.get("BQLTOP_DEBUG"):
        return text or str(error)
    lines = [line for line in text.splitlines() if "error:" in line] or text.splitlines()[-1:]
    return lines[0].strip() if lines else str(error)
