"""Debian's kernels, fetched with apt from the mirror that this machine's apt already uses, and not installed."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .image import write_bootable
from .tools import Unavailable, last_line

META_PACKAGE = "linux-image-amd64"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
IMAGE_PARTS = re.compile(r"linux-(image|binary|modules|base)-\d")


def debian_mirror() -> str:
    """The address of the first Debian mirror in apt's own configuration."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise Unavailable("this machine has no apt") from None
    for address in result.stdout.splitlines():
        if address.rstrip("/").endswith("/debian"):
            return address
    raise Unavailable("apt's configuration on this machine names no Debian mirror")


class Suite:
    """One suite of the mirror, with package lists of its own, so that the machine's apt state is never touched."""

    def __init__(self, suite: str, cache: Path):
        self.suite = suite
        self.cache = cache
        self.folder = cache / "apt" / suite

    def prepare(self) -> None:
        """Write the source list and fetch the package lists."""
        address = debian_mirror()
        for part in ("lists/partial", "archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        signed_by = f" signed-by={KEYRING}" if KEYRING.exists() else ""
        (self.folder / "list").write_text(f"deb [arch=amd64{signed_by}] {address} {self.suite} main\n")
        self.apt("apt-get", "update")
        # apt-get update ends with 0 when a suite does not exist, and says so in a warning only
        if not any((self.folder / "lists").glob("*_Packages*")):
            raise Unavailable(f"the mirror gave no package list for suite {self.suite}")

    def apt(self, tool: str, *arguments: str, cwd: Path | None = None) -> str:
        """Run apt-get or apt-cache on this suite alone and return its output; Unavailable with apt's words when it fails."""
        options = {
            "Dir::Etc::sourcelist": self.folder / "list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::Cache": self.folder,
            "Acquire::Languages": "none",
            "APT::Sandbox::User": "root",
        }
        settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        result = subprocess.run([tool, *settings, *arguments], capture_output=True, text=True, cwd=cwd)
        if result.returncode:
            raise Unavailable(f"{tool} {arguments[0]} for {self.suite}: {last_line(result.stderr)}")
        return result.stdout

    def kernel_packages(self) -> list[str]:
        """The packages behind the meta package: one image up to 6.x, image + binary + modules + base since 7.x."""
        seen, todo = [], [META_PACKAGE]
        while todo:
            package = todo.pop()
            if package in seen:
                continue
            seen.append(package)
            text = self.apt("apt-cache", "depends", "--important", package)
            todo += [name for name in re.findall(r"Depends: (linux-\S+)", text) if name != "linux-base"]
        packages = [name for name in seen if IMAGE_PARTS.match(name)]
        if not packages:
            raise Unavailable(f"{META_PACKAGE} of {self.suite} depends on no kernel image")
        return packages


@contextmanager
def locked(cache: Path):
    """One fetch at a time in this cache, also between several runners."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached_release(suite: str, cache: Path) -> str | None:
    """The release that this suite gave last time, when it is still in the cache."""
    try:
        release = json.loads((cache / "apt" / suite / "kernel.json").read_text())["release"]
    except (OSError, ValueError, KeyError):
        return None
    return release if (cache / release / "vmlinux").exists() else None


def fetch(suite_name: str, cache: Path) -> str:
    """
    Fetch the suite's newest kernel into CACHE/<release>/{vmlinux,lib/modules/<release>} and return the release.

    Raises Unavailable with the reason in one line.
    """
    with locked(cache):
        suite = Suite(suite_name, cache)
        suite.prepare()
        with tempfile.TemporaryDirectory(dir=cache, prefix="unpack-") as work:
            release = _unpack(suite, Path(work), cache)
        (suite.folder / "kernel.json").write_text(json.dumps({"release": release}))
        return release


def _unpack(suite: Suite, work: Path, cache: Path) -> str:
    """Download and unpack the kernel's packages in `work`, then move what is needed into the cache."""
    suite.apt("apt-get", "download", *suite.kernel_packages(), cwd=work)
    root = work / "root"
    for package in sorted(work.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    modules = next((path for top in ("usr/lib/modules", "lib/modules") for path in (root / top).glob("*")), None)
    if modules is None:
        raise Unavailable(f"the kernel packages of {suite.suite} hold no modules")
    # up to 6.x the image is /boot/vmlinuz-RELEASE; since 7.x it lies beside the modules
    image = next((path for path in (*(root / "boot").glob("vmlinuz-*"), modules / "vmlinuz") if path.exists()), None)
    if image is None:
        raise Unavailable(f"the kernel packages of {suite.suite} hold no image")
    release = modules.name
    new = work / "new"
    (new / "lib/modules").mkdir(parents=True)
    write_bootable(image, new / "vmlinux")
    os.rename(modules, new / "lib/modules" / release)
    subprocess.run(["depmod", "-b", new, release], check=True)
    shutil.rmtree(cache / release, ignore_errors=True)
    os.rename(new, cache / release)
    return release
