"""Offsets, sizes and constants from the running kernel's own BTF, through libbpf.

Nothing here knows the layout of a kernel structure: ``Btf.offset("netdev_queue", "dql.num_queued")`` asks the kernel
that runs. libbpf is always there where BCC is (libbcc links it). Loading vmlinux takes some 15 ms, a look-up some
tens of microseconds.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator

from bqltop.fault import Fault

KIND_INT, KIND_PTR, KIND_ARRAY, KIND_STRUCT, KIND_UNION, KIND_ENUM = 1, 2, 3, 4, 5, 6
KIND_TYPEDEF, KIND_VOLATILE, KIND_CONST, KIND_RESTRICT, KIND_FUNC, KIND_TYPE_TAG = 8, 9, 10, 11, 12, 18
_TRANSPARENT = {KIND_TYPEDEF, KIND_VOLATILE, KIND_CONST, KIND_RESTRICT, KIND_TYPE_TAG}


class BtfError(Fault, LookupError):
    """The kernel has no BTF, or its BTF has no such structure, member or constant."""


class _Type(ctypes.Structure):
    """``struct btf_type`` (include/uapi/linux/btf.h)."""

    _fields_ = [("name_off", ctypes.c_uint32), ("info", ctypes.c_uint32), ("size_or_type", ctypes.c_uint32)]

    @property
    def kind(self) -> int:
        return (self.info >> 24) & 0x1F

    @property
    def vlen(self) -> int:
        return self.info & 0xFFFF

    @property
    def kind_flag(self) -> bool:
        return bool(self.info >> 31)


class _Triple(ctypes.Structure):
    """``struct btf_member`` and, with other names, ``struct btf_array``: three words."""

    _fields_ = [("first", ctypes.c_uint32), ("second", ctypes.c_uint32), ("third", ctypes.c_uint32)]


class _Pair(ctypes.Structure):
    """``struct btf_enum``."""

    _fields_ = [("name_off", ctypes.c_uint32), ("value", ctypes.c_int32)]


@functools.cache
def libbpf() -> ctypes.CDLL:
    """libbpf with the prototypes we use. Raises BtfError when the library is not installed."""
    try:
        lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError as error:
        raise BtfError("libbpf is not installed (Debian: apt install libbpf1)") from error
    lib.btf__load_vmlinux_btf.restype = ctypes.c_void_p
    lib.btf__load_module_btf.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    lib.btf__load_module_btf.restype = ctypes.c_void_p
    lib.btf__find_by_name_kind.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32]
    lib.btf__type_by_id.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    lib.btf__type_by_id.restype = ctypes.POINTER(_Type)
    lib.btf__name_by_offset.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    lib.btf__name_by_offset.restype = ctypes.c_char_p
    lib.btf__resolve_size.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    lib.btf__resolve_size.restype = ctypes.c_int64
    return lib


class Btf:
    """The types of the kernel, or of the kernel and one module."""

    def __init__(self, handle: int):
        self._lib, self._handle = libbpf(), handle

    @classmethod
    @functools.cache
    def vmlinux(cls) -> Btf:
        """BTF of the running kernel. Raises BtfError when it was built without (CONFIG_DEBUG_INFO_BTF)."""
        handle = libbpf().btf__load_vmlinux_btf()
        if not handle:
            raise BtfError("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")
        return cls(handle)

    @classmethod
    @functools.cache
    def module(cls, name: str) -> Btf:
        """BTF of a loaded module on top of the kernel's; of the kernel alone where the module is built in."""
        base = cls.vmlinux()
        handle = libbpf().btf__load_module_btf(name.encode(), base._handle)
        return cls(handle) if handle else base

    def size(self, name: str, kind: int = KIND_STRUCT) -> int:
        """Size of a structure in bytes."""
        return self._type(self._find(name, kind)).size_or_type

    def offset(self, struct: str, path: str) -> int:
        """Byte offset of ``path`` ("dql.num_queued") in ``struct``; anonymous members are looked through."""
        return self._walk(struct, path)[0]

    def member_size(self, struct: str, path: str) -> int:
        """Size of a member in bytes (an array: all of it)."""
        return self._lib.btf__resolve_size(self._handle, self._walk(struct, path)[1])

    def has(self, struct: str, path: str) -> bool:
        """Whether this kernel's ``struct`` has such a member."""
        try:
            self._walk(struct, path)
        except BtfError:
            return False
        return True

    def constant(self, enum: str, name: str) -> int:
        """Value of one name of an enum; ``enum`` may be the typedef of an anonymous one."""
        type_id = self._find_any(enum, (KIND_ENUM, KIND_TYPEDEF))
        enum_type, enum_id = self._resolve(type_id)
        entries = ctypes.cast(self._payload(enum_id), ctypes.POINTER(_Pair))
        for i in range(enum_type.vlen):
            if self._name(entries[i].name_off) == name:
                return entries[i].value
        raise BtfError(f"enum {enum} has no {name} on this kernel")

    def structure(self, name: str) -> int:
        """BTF id of a structure."""
        return self._find(name, KIND_STRUCT)

    def function(self, name: str) -> int:
        """BTF id of a function, by which fentry attaches and programs call it."""
        return self._find(name, KIND_FUNC)

    def _walk(self, struct: str, path: str) -> tuple[int, int]:
        """(byte offset, type id) of a member path."""
        type_id, offset = self._find(struct, KIND_STRUCT), 0
        for name in path.split("."):
            found = self._member(type_id, name)
            if found is None:
                raise BtfError(f"struct {struct} has no {path} on this kernel")
            offset, type_id = offset + found[0], found[1]
        return offset, type_id

    def _member(self, type_id: int, wanted: str) -> tuple[int, int] | None:
        for name, offset, member_type in self._members(type_id):
            if name == wanted:
                return offset, member_type
            if not name:
                inner = self._member(member_type, wanted)
                if inner is not None:
                    return offset + inner[0], inner[1]
        return None

    def _members(self, type_id: int) -> Iterator[tuple[str, int, int]]:
        """(name, byte offset, type id) of each member of a structure or union."""
        record, type_id = self._resolve(type_id)
        if record.kind not in (KIND_STRUCT, KIND_UNION):
            return
        members = ctypes.cast(self._payload(type_id), ctypes.POINTER(_Triple))
        mask = 0xFFFFFF if record.kind_flag else 0xFFFFFFFF
        for i in range(record.vlen):
            yield self._name(members[i].first), (members[i].third & mask) // 8, members[i].second

    def _resolve(self, type_id: int) -> tuple[_Type, int]:
        """Follow typedefs and qualifiers to the type itself."""
        record = self._type(type_id)
        while record.kind in _TRANSPARENT:
            type_id = record.size_or_type
            record = self._type(type_id)
        return record, type_id

    def _find(self, name: str, kind: int) -> int:
        type_id = self._lib.btf__find_by_name_kind(self._handle, name.encode(), kind)
        if type_id < 0:
            raise BtfError(f"this kernel's BTF has no {name}")
        return type_id

    def _find_any(self, name: str, kinds: tuple[int, ...]) -> int:
        for kind in kinds:
            type_id = self._lib.btf__find_by_name_kind(self._handle, name.encode(), kind)
            if type_id >= 0:
                return type_id
        raise BtfError(f"this kernel's BTF has no {name}")

    def _type(self, type_id: int) -> _Type:
        return self._lib.btf__type_by_id(self._handle, type_id).contents

    def _payload(self, type_id: int) -> int:
        """Address of what follows a type's record: its members or values."""
        return ctypes.addressof(self._type(type_id)) + ctypes.sizeof(_Type)

    def _name(self, offset: int) -> str:
        return self._lib.btf__name_by_offset(self._handle, offset).decode()
