"""The programs the runner needs, and how they come to be there."""

import os
import re
import shutil
import subprocess
from pathlib import Path


class Unavailable(Exception):
    """Something (a kernel, a tool) could not be had; the text says why, in one line."""


# program -> Debian package that brings it
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "modprobe": "kmod",
    "cpio": "cpio",
    "zstd": "zstd",
    "busybox": "busybox-static",
}

# Debian 12 ships virtiofsd (the C one) with QEMU's common package; from Debian 13 on it is a package of its own (in Rust).
VIRTIOFSD_PLACES = (Path("/usr/libexec/virtiofsd"), Path("/usr/lib/qemu/virtiofsd"))


def find_virtiofsd() -> Path | None:
    """Where virtiofsd is; None when it is not installed."""
    return next((place for place in VIRTIOFSD_PLACES if place.exists()), None)


def missing_packages() -> list[str]:
    """Debian packages that are still to be installed for the runner to work."""
    search_path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    packages = [package for program, package in PROGRAMS.items() if not shutil.which(program, path=search_path)]
    return packages


def last_line(text: str) -> str:
    """The last line that says something: what apt and dpkg put their reason in."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def apt_install(packages: list[str]) -> None:
    """Install Debian packages; Unavailable when that fails."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        # A fresh container has no package lists at all: fetch them once, then try again.
        subprocess.run(["apt-get", "update"], capture_output=True, env=environment)
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        raise Unavailable(f"apt-get install {' '.join(packages)}: {last_line(result.stderr)}")


def ensure_tools() -> None:
    """Install what is missing; Unavailable (with the reason) when the machine cannot run VMs."""
    packages = missing_packages()
    if packages:
        print("vm: installing", " ".join(packages), flush=True)
        apt_install(packages)
    if find_virtiofsd() is None:
        print("vm: installing virtiofsd", flush=True)
        apt_install(["virtiofsd"])
    if find_virtiofsd() is None:
        raise Unavailable("virtiofsd is neither in QEMU's packages nor in one of its own")


def qemu_version(qemu: str = "qemu-system-x86_64") -> tuple[int, int]:
    """(major, minor) of QEMU."""
    text = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"version (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)
