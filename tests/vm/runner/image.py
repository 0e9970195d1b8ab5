"""Kernel images: taking the plain ELF out of a distribution's compressed one."""

import lzma
import subprocess
import zlib
from pathlib import Path

ELF = b"\x7fELF"


def _unxz(data: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(data)


def _gunzip(data: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(data)


def _unzstd(data: bytes) -> bytes:
    # zstd complains about what follows the frame, yet has written the frame out by then.
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True).stdout


DECOMPRESSORS = ((b"\xfd7zXZ\0", _unxz), (b"\x1f\x8b\x08", _gunzip), (b"\x28\xb5\x2f\xfd", _unzstd))


def extract_vmlinux(data: bytes) -> bytes | None:
    """
    The ELF image inside a bzImage, or None when it is packed in a way not known here.

    QEMU boots either; the ELF one saves the guest from decompressing itself, which costs seconds under emulation.
    """
    if data.startswith(ELF):
        return data
    for magic, decompress in DECOMPRESSORS:
        at = data.find(magic)
        while at >= 0:
            try:
                image = decompress(data[at:])
            except (lzma.LZMAError, zlib.error):
                image = b""
            if image.startswith(ELF):
                return image
            at = data.find(magic, at + 1)
    return None


def write_bootable(source: Path, target: Path) -> None:
    """Write `source` (vmlinux, bzImage, or either packed as .xz) to `target` in the form that boots fastest."""
    data = source.read_bytes()
    if source.suffix == ".xz":
        data = lzma.decompress(data)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(extract_vmlinux(data) or data)
    partial.rename(target)
