# SPDX-License-Identifier: Apache-2.0
"""What the runtime library tells about this process, without starting anything."""
from __future__ import annotations

import ctypes
import os
from typing import NamedTuple, Optional

LIBRARY = "libascendcl.so"


class ServerError(RuntimeError):
    """The process and a server do not fit together."""


class Objects(NamedTuple):
    """What a process has alive, on all devices together."""

    device_bytes: int = 0
    allocations: int = 0
    host_allocations: int = 0
    physical_handles: int = 0
    reservations: int = 0
    mappings: int = 0


class _Counts(ctypes.Structure):
    """aclUnderstudyObjects; its first members are those of Objects, in the same order."""

    _fields_ = [(name, ctypes.c_uint64) for name in Objects._fields] + [
        ("reserved", ctypes.c_uint64 * 10)
    ]


def objects() -> Objects:
    """Counts what this process has alive: all zero before its first ACL call."""
    library = _loaded_library()
    if library is None:
        return Objects()
    counts = _Counts()
    ret = _function(library, "aclUnderstudyCountObjects")(ctypes.byref(counts))
    if ret != 0:
        raise ServerError(f"aclUnderstudyCountObjects failed with {ret}")
    return Objects(*(getattr(counts, name) for name in Objects._fields))


def runtime_directory() -> Optional[str]:
    """The directory of the server that this process uses, None before its first ACL call."""
    library = _loaded_library()
    if library is None:
        return None
    function = _function(library, "aclUnderstudyRuntimeDirectory")
    function.restype = ctypes.c_char_p
    path = function()
    return None if path is None else os.fsdecode(path)


def _loaded_library() -> Optional[ctypes.CDLL]:
    # A second copy would have devices of its own, so none is ever loaded here: a process without
    # the library has made no ACL call.
    try:
        return ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def _function(library: ctypes.CDLL, name: str) -> ctypes._NamedFuncPointer:
    try:
        return library[name]
    except AttributeError:
        raise ServerError(f"the {LIBRARY} of this process is not the software NPU's") from None
