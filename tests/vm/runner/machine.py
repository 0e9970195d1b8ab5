"""One virtual machine: the host's root file system under another kernel, for one command."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import initramfs
from .kernels import Kernel
from .tools import Unavailable, find_virtiofsd, last_line, qemu_version

SECOND_STAGE = Path(__file__).with_name("guest-init.sh")
CONSOLE_EXCERPT = 100
"""Lines of the console that are shown when a guest is stuck or dead: an oops takes some sixty."""

OOPS = re.compile(r"\b(BUG: .*|Oops: .*|general protection fault.*|watchdog: BUG.*|Kernel panic .*)")
"""How a kernel says that it has had enough; the first such line names the cause."""

KERNEL_ARGUMENTS = (
    "rdinit=/init console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off tsc=reliable "
    "no_timer_check net.ifnames=0 random.trust_cpu=on raid=noautodetect"
)


@dataclass(frozen=True)
class Settings:
    """How the guest is built."""

    memory: str = "2G"
    cpus: int = 2
    accelerator: str | None = None
    """QEMU's -accel; None: emulation, which works everywhere (build machines have no usable /dev/kvm)."""
    timeout: float = 2400.0
    """Seconds for the whole command."""
    silence: float = 300.0
    """Seconds without any word from the guest after which it counts as stuck."""


@dataclass
class Outcome:
    """What became of one boot."""

    status: int | None = None
    """The command's exit status; None when the guest did not get to the end."""
    release: str | None = None
    seconds: float = 0.0
    trouble: str | None = None
    """Why there is no status, in one line."""
    died: bool = False
    """The guest ended by itself, instead of being stuck."""
    console: list[str] = field(default_factory=list)
    """The last lines of the console, when there was trouble."""


class Machine:
    """Boots `kernel` once and runs `script` (bash) in it as root, in `folder`."""

    def __init__(self, kernel: Kernel, folder: Path, settings: Settings = Settings()):
        self.kernel = kernel
        self.folder = folder
        self.settings = settings
        self.outcome = Outcome()
        self._last_word = time.monotonic()

    def run(self, script: str, on_output: Callable[[str], None], on_report: Callable[[dict], None]) -> Outcome:
        """
        Run the script; `on_output` gets its lines, `on_report` the JSON objects it writes to $BQLTOP_VM_REPORT.

        Both are called from threads of their own, before this function returns.
        """
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="bqltop-vm-") as work_name:
            work = Path(work_name)
            self._write_job(work, script)
            image = initramfs.build(self.kernel, work)
            share = self._start_virtiofsd(work)
            try:
                self._run_qemu(work, image, on_output, on_report)
            finally:
                end(share)
            if self.outcome.trouble:
                self.outcome.console = tail(work / "console")
                oops = next(filter(None, map(OOPS.search, self.outcome.console)), None)
                self.outcome.trouble += f": {oops[1]}" if oops else ""
        self.outcome.seconds = time.monotonic() - started
        return self.outcome

    def _write_job(self, work: Path, script: str) -> None:
        """Leave the guest its orders: it sees the work folder through the shared root."""
        modules = self.kernel.modules.absolute() if self.kernel.modules else ""
        (work / "settings").write_text(f"VM_MODULES={shlex.quote(str(modules))}\nVM_FOLDER={shlex.quote(str(self.folder))}\n")
        (work / "job").write_text(script + "\n")

    def _start_virtiofsd(self, work: Path) -> subprocess.Popen:
        """Share / and wait for the socket."""
        program = find_virtiofsd()
        socket = work / "virtiofs"
        if program == Path("/usr/lib/qemu/virtiofsd"):
            arguments = [f"--socket-path={socket}", "-o", "source=/,cache=always,sandbox=chroot,no_xattr"]
        else:
            arguments = [f"--socket-path={socket}", "--shared-dir=/", "--cache=always", "--sandbox=chroot"]
        with open(work / "virtiofsd.log", "wb") as log:
            process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(500):
            if socket.exists():
                return process
            if process.poll() is not None:
                break
            time.sleep(0.01)
        end(process)
        raise Unavailable(f"virtiofsd did not start: {last_line((work / 'virtiofsd.log').read_text())}")

    def _run_qemu(self, work: Path, image: Path, on_output, on_report) -> None:
        """Boot, pass on what the guest says, and see to it that it ends."""
        output_read, output_write = os.pipe()
        report_read, report_write = os.pipe()
        command = self._qemu_command(work, image, output_write, report_write)
        with open(work / "qemu.log", "wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(output_write, report_write)
            )
        os.close(output_write)
        os.close(report_write)
        readers = [
            threading.Thread(target=self._read_lines, args=(output_read, on_output), daemon=True),
            threading.Thread(target=self._read_reports, args=(report_read, on_report), daemon=True),
        ]
        self._last_word = time.monotonic()
        for reader in readers:
            reader.start()
        try:
            self._wait(process)
        finally:
            end(process)
            for reader in readers:
                reader.join(5)
        if self.outcome.status is None and not self.outcome.trouble:
            said = (work / "qemu.log").read_text(errors="replace").strip()
            self.outcome.died = True
            # once the guest runs, what QEMU said was a warning
            self.outcome.trouble = f"QEMU: {last_line(said)}" if said and not self.outcome.release else "the guest died"

    def _wait(self, process: subprocess.Popen) -> None:
        """Wait for the guest to power off; note the trouble when it takes too long or falls silent."""
        deadline = time.monotonic() + self.settings.timeout
        while process.poll() is None:
            time.sleep(0.1)
            now = time.monotonic()
            if now > deadline:
                self.outcome.trouble = f"stopped after {self.settings.timeout:.0f} s, the time for one boot"
            elif now - self._last_word > self.settings.silence:
                self.outcome.trouble = f"stuck: no word from the guest for {self.settings.silence:.0f} s"
            else:
                continue
            # a guest that reported its end and hangs in power-off has done its work
            if self.outcome.status is not None:
                self.outcome.trouble = None
            return

    def _read_lines(self, descriptor: int, callback: Callable[[str], None]) -> None:
        with open(descriptor, errors="replace") as stream:
            for line in stream:
                self._last_word = time.monotonic()
                callback(line.rstrip("\r\n"))

    def _read_reports(self, descriptor: int, callback: Callable[[dict], None]) -> None:
        def take(line: str) -> None:
            try:
                report = json.loads(line)
            except ValueError:
                return
            if report.get("event") == "boot":
                self.outcome.release = report["release"]
            elif report.get("event") == "exit":
                self.outcome.status = report["status"]
            callback(report)

        self._read_lines(descriptor, take)

    def _qemu_command(self, work: Path, image: Path, output: int, report: int) -> list[str]:
        """QEMU's arguments: no firmware devices that cost boot time, one shared root, two ports out."""
        settings = self.settings
        # QEMU before 10 has a race in patching code across emulation threads: kernels crash at random
        threads = "single" if qemu_version() < (10, 0) else "multi"
        accelerator = settings.accelerator or f"tcg,thread={threads}"
        processor = "max" if accelerator.startswith("tcg") else "host"
        arguments = f"{KERNEL_ARGUMENTS} vm_work={work} vm_init={SECOND_STAGE}"
        return [
            "qemu-system-x86_64",
            "-accel",
            accelerator,
            "-cpu",
            processor,
            "-M",
            "q35,usb=off,sata=off,smbus=off,vmport=off",
            "-m",
            settings.memory,
            "-smp",
            str(settings.cpus),
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-monitor",
            "none",
            # virtiofs works on memory that both processes map
            "-object",
            f"memory-backend-memfd,id=memory,size={settings.memory},share=on",
            "-numa",
            "node,memdev=memory",
            "-kernel",
            str(self.kernel.image),
            "-initrd",
            str(image),
            "-append",
            arguments,
            "-device",
            "virtio-rng-pci",
            # a card with rings and coalescing, on no wire: knobs that no virtual device has
            "-netdev",
            "hubport,id=card,hubid=0",
            "-device",
            "e1000e,netdev=card",
            "-serial",
            f"file:{work}/console",
            "-chardev",
            f"socket,id=root,path={work}/virtiofs",
            "-device",
            "vhost-user-fs-pci,queue-size=1024,chardev=root,tag=hostroot",
            "-device",
            "virtio-serial-pci,max_ports=4",
            # through pipes of our own: QEMU would open a redirected standard output anew, at offset 0
            "-chardev",
            f"file,id=output,path=/dev/fd/{output}",
            "-device",
            "virtserialport,chardev=output,name=output",
            "-chardev",
            f"file,id=report,path=/dev/fd/{report}",
            "-device",
            "virtserialport,chardev=report,name=report",
        ]


def end(process: subprocess.Popen) -> None:
    """End a process of ours, gently first."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(path: Path, lines: int = CONSOLE_EXCERPT) -> list[str]:
    """The last lines of a file; none when it is not there."""
    try:
        return path.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        return []
