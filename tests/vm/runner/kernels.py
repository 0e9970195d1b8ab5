"""Which kernels the tests are run on, and where each comes from."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from . import debian
from .image import write_bootable
from .tools import Unavailable

ENVIRONMENT = "BQLTOP_VM_KERNELS"
LAB_KERNEL = "vmlinux-7.3.4-vethbql.xz"


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be booted."""

    name: str
    image: Path
    modules: Path | None
    """The folder that holds <release>/modules.dep; None when everything needed is built in."""


@dataclass(frozen=True)
class DebianSource:
    """The newest kernel of the first of `suites` that can be had."""

    name: str
    suites: tuple[str, ...]
    cache: Path

    def describe(self) -> str:
        for suite in self.suites:
            if release := debian.cached_release(suite, self.cache):
                return f"Debian {suite}: {release}, in the cache"
        return f"Debian {' or '.join(self.suites)}: to be fetched with apt"

    def get(self, refresh: bool = False) -> Kernel:
        """The kernel, from the cache unless `refresh` asks for the newest; Unavailable with one reason per suite."""
        reasons = []
        for suite in self.suites:
            release = debian.cached_release(suite, self.cache)
            if refresh or not release:
                try:
                    release = debian.fetch(suite, self.cache)
                except Unavailable as reason:
                    reasons.append(str(reason))
            if release:
                folder = self.cache / release
                return Kernel(self.name, folder / "vmlinux", folder / "lib/modules")
        raise Unavailable("; ".join(reasons))


@dataclass(frozen=True)
class ImageSource:
    """A kernel image that is already on this machine: a vmlinux, a bzImage, or one of them packed with xz."""

    name: str
    path: Path
    cache: Path
    about: str = field(default="", compare=False)

    def describe(self) -> str:
        return f"{self.path}{'' if self.path.exists() else ' (not there)'}{self.about and ': ' + self.about}"

    def get(self, refresh: bool = False) -> Kernel:
        """The kernel; Unavailable when the file is not there."""
        if not self.path.is_file():
            raise Unavailable(f"{self.path} is not there{self.about and ': ' + self.about}")
        image = self.path
        if image.suffix == ".xz":
            stamp = self.path.stat()
            image = self.cache / f"{self.path.stem}-{stamp.st_size:x}-{int(stamp.st_mtime):x}" / "vmlinux"
            if refresh or not image.exists():
                write_bootable(self.path, image)
        modules = self.path.parent / "lib/modules"
        return Kernel(self.name, image, modules if modules.is_dir() else None)


Source = DebianSource | ImageSource


def cache_folder() -> Path:
    """Where kernels are kept: outside the repository, so that `git clean` and a fresh checkout cost no download."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "bqltop-kernels"


def sources(repository: Path) -> list[Source]:
    """The matrix: what BQLTOP_VM_KERNELS names, or else Debian's kernels and the veth-BQL kernel of the lab."""
    cache = cache_folder()
    if named := os.environ.get(ENVIRONMENT):
        return parse_images(named, cache)
    return [
        DebianSource("bookworm", ("bookworm",), cache),
        DebianSource("trixie", ("trixie",), cache),
        DebianSource("newest", ("trixie-backports", "forky", "sid"), cache),
        ImageSource(
            "vethbql",
            repository.parent / "shared/lab" / LAB_KERNEL,
            cache,
            about="7.3.4 with the veth BQL series, which no released kernel has",
        ),
    ]


def parse_images(text: str, cache: Path) -> list[Source]:
    """`name=path,path,...` -> sources; an image without a name is called after its file, or its folder if that is a release."""
    found: list[Source] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, path = part.partition("=")
        if not equals:
            image = Path(part)
            path, name = part, image.parent.name if image.name in ("vmlinux", "vmlinuz") else image.stem
        found.append(ImageSource(name, Path(path).absolute(), cache))
    return found


def select(available: list[Source], wanted: list[str]) -> list[Source]:
    """The sources called `wanted`, in that order; all of them when nothing was asked for. ValueError on an unknown name."""
    if not wanted:
        return available
    by_name = {source.name: source for source in available}
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise ValueError(f"no kernel called {unknown[0]}; there are: {', '.join(by_name)}")
    return [by_name[name] for name in wanted]
