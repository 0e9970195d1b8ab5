"""The first user space of the guest: busybox and the few modules that reach the host's root file system."""

import gzip
import lzma
import os
import shutil
import subprocess
from pathlib import Path

from .kernels import Kernel
from .tools import Unavailable, last_line

# what stands between the kernel and its root: virtio's bus, the shared file system, the ports for output, the overlay
BOOT_MODULES = ("virtio_pci", "virtiofs", "virtio_console", "overlay")

FIRST_STAGE = Path(__file__).with_name("guest-initramfs.sh")


def boot_modules(kernel: Kernel) -> list[Path]:
    """The module files to load, in load order; those built into the kernel are left out."""
    if kernel.modules is None:
        return []
    releases = sorted(path.name for path in kernel.modules.iterdir())
    if len(releases) != 1:
        raise Unavailable(f"{kernel.modules} holds {len(releases)} releases instead of one")
    base = kernel.modules.parent.parent
    environment = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    result = subprocess.run(
        ["modprobe", "-d", base, "-S", releases[0], "-a", "--show-depends", *BOOT_MODULES],
        capture_output=True,
        text=True,
        env=environment,
    )
    if result.returncode:
        raise Unavailable(f"modules of {releases[0]}: {last_line(result.stderr)}")
    words = [line.split() for line in result.stdout.splitlines()]
    return list(dict.fromkeys(Path(word[1]) for word in words if word[0] == "insmod"))


def read_module(path: Path) -> bytes:
    """The module's ELF text: unpacked here, for not every busybox unpacks every format."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
    return data


def build(kernel: Kernel, work: Path) -> Path:
    """Write WORK/initramfs.img for this kernel and return its path."""
    top = work / "initramfs"
    for folder in ("bin", "modules", "proc", "sys", "dev", "host", "upper", "root"):
        (top / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", top / "bin/busybox")
    (top / "bin/sh").symlink_to("busybox")
    for number, module in enumerate(boot_modules(kernel)):
        (top / f"modules/{number:02}.ko").write_bytes(read_module(module))
    shutil.copy(FIRST_STAGE, top / "init")
    (top / "init").chmod(0o755)
    image = work / "initramfs.img"
    names = "\n".join(str(path.relative_to(top)) for path in [top, *sorted(top.rglob("*"))])
    with open(image, "wb") as output:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), stdout=output, cwd=top, check=True)
    shutil.rmtree(top)
    return image
