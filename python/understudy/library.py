# SPDX-License-Identifier: Apache-2.0
"""What the runtime library tells about this process, without starting anything."""
from __future__ import annotations

import ctypes
import os
from typing import Callable, NamedTuple, Optional

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
    streams: int = 0
    events: int = 0
    notifies: int = 0
    pools: int = 0


class _Counts(ctypes.Structure):
    """aclUnderstudyObjects; its members are those of Objects, in the same order, and others."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in Objects._fields[:6]),
        ("held_calls", ctypes.c_uint64),
        *((name, ctypes.c_uint64) for name in Objects._fields[6:]),
        ("reserved", ctypes.c_uint64 * 5),
    ]


class _Failure(ctypes.Structure):
    """aclUnderstudyFailure."""

    _fields_ = [
        ("function", ctypes.c_char_p),
        ("sentence", ctypes.c_char_p),
        ("code", ctypes.c_int),
        ("device_id", ctypes.c_int32),
        ("stream_id", ctypes.c_uint32),
        ("task_id", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64 * 4),
    ]

    def __str__(self) -> str:
        if self.function is not None:
            subject = str(self.function, errors="replace")
        else:
            subject = f"a task of stream {self.stream_id} on device {self.device_id}"
        return f"{subject} failed with {self.code}: {str(self.sentence, errors='replace')}"


_Listener = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Failure), ctypes.c_void_p)
_no_listener = _Listener(0)
# What the library calls; it must live for as long as that.
_listener = _no_listener


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


def listen(hear: Callable[[str], object]) -> bool:
    """Has hear called with a sentence about each call or task of this process that fails.

    It runs on the thread that failed. False, and nothing happens, without the software NPU. A fork
    child starts without a listener.
    """

    def hear_failure(failure: ctypes._Pointer[_Failure], _: object) -> None:
        hear(str(failure.contents))

    return _set_listener(_Listener(hear_failure))


def stop_listening() -> None:
    """Returns when no thread is in the listener any more."""
    _set_listener(_no_listener)


def is_here() -> bool:
    """Whether this process has loaded the software NPU's library."""
    library = _loaded_library()
    return library is not None and hasattr(library, "aclUnderstudySetErrorListener")


def _set_listener(listener: ctypes._FuncPointer) -> bool:
    global _listener
    library = _loaded_library()
    if library is None or not is_here():
        return False
    ret = _function(library, "aclUnderstudySetErrorListener")(listener, None)
    if ret != 0:
        raise ServerError(f"aclUnderstudySetErrorListener failed with {ret}")
    _listener = listener  # the one before is not in use any more
    return True


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
