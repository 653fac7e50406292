# SPDX-License-Identifier: Apache-2.0
"""What the runtime library tells about this process, without starting anything."""
from __future__ import annotations

import ctypes
import importlib
import os
import shutil
from typing import Callable, List, NamedTuple, Optional

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


class Place(NamedTuple):
    """A place of the program, and the objects of one kind that it made and that are alive."""

    sentence: str  # "2 streams on device 0, created at kv.py:41 by aclrtCreateStream"
    place: str
    objects: int
    bytes: int


class _Growth(ctypes.Structure):
    """aclUnderstudyGrowth."""

    _fields_ = [
        ("sentence", ctypes.c_char_p),
        ("place", ctypes.c_char_p),
        ("objects", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64 * 4),
    ]


class Finding(NamedTuple):
    """What a check has found."""

    check: str
    sentence: str
    text: str  # with the places of the program, in lines
    times: int


class _Finding(ctypes.Structure):
    """aclUnderstudyFinding."""

    _fields_ = [
        ("check", ctypes.c_char_p),
        ("sentence", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("times", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64 * 4),
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


class _RecordingOptions(ctypes.Structure):
    """aclUnderstudyRecordingOptions."""

    _fields_ = [
        ("limit", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64 * 6),
    ]


_RECORD_STACKS, _RECORD_RING = 1, 2
_CHECKS_WANT_PLACES = 1

_Listener = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Failure), ctypes.c_void_p)
_FindingVisitor = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Finding), ctypes.c_void_p)
_GrowthVisitor = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Growth), ctypes.c_void_p)
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


def mark() -> int:
    """A number for this moment, for places_since."""
    library = _loaded_library()
    if library is None:
        return 0
    function = _function(library, "aclUnderstudyMark")
    function.restype = ctypes.c_uint64
    return int(function())


def places_since(mark: int) -> Optional[List[Place]]:
    """Where objects were made since a mark that are alive; None if no check is chosen."""
    library = _loaded_library()
    if library is None:
        return None
    if _function(library, "aclUnderstudyWantsPlaces")() & _CHECKS_WANT_PLACES == 0:
        return None
    found: List[Place] = []

    def visit(growth: ctypes._Pointer[_Growth], _: object) -> None:
        one = growth.contents
        found.append(Place(_text(one.sentence), _text(one.place), one.objects, one.bytes))

    function = _function(library, "aclUnderstudyVisitGrowth")
    ret = function(ctypes.c_uint64(mark), _GrowthVisitor(visit), None)
    if ret != 0:
        raise ServerError(f"aclUnderstudyVisitGrowth failed with {ret}")
    return found


def take_findings() -> List[Finding]:
    """What checks have found in this process since the last time."""
    library = _loaded_library()
    if library is None or not is_here():
        return []
    found: List[Finding] = []

    def visit(finding: ctypes._Pointer[_Finding], _: object) -> None:
        one = finding.contents
        found.append(Finding(_text(one.check), _text(one.sentence), _text(one.text), one.times))

    ret = _function(library, "aclUnderstudyTakeFindings")(_FindingVisitor(visit), None)
    if ret != 0:
        raise ServerError(f"aclUnderstudyTakeFindings failed with {ret}")
    return found


def runtime_directory() -> Optional[str]:
    """The directory of the server that this process uses, None before its first ACL call."""
    library = _loaded_library()
    if library is None:
        return None
    function = _function(library, "aclUnderstudyRuntimeDirectory")
    function.restype = ctypes.c_char_p
    path = function()
    return None if path is None else os.fsdecode(path)


def start_recording(path: str, *, stacks: bool, limit: int, ring: bool) -> None:
    """Records what this process does; imports acl if nothing has loaded the library yet."""
    library = _loaded_library()
    if library is None:
        try:
            importlib.import_module("acl")
        except ImportError as error:
            raise ServerError(f"there is nothing to record: {error}") from error
        library = _loaded_library()
    if library is None:
        raise ServerError(f"there is nothing to record: acl does not use {LIBRARY}")
    flags = (_RECORD_STACKS if stacks else 0) | (_RECORD_RING if ring else 0)
    options = _RecordingOptions(limit=limit, flags=flags)
    _call(library, "aclUnderstudyStartRecording", os.fsencode(path), ctypes.byref(options))


def stop_recording() -> None:
    library = _loaded_library()
    if library is None:
        raise ServerError("this process is not recorded")
    _call(library, "aclUnderstudyStopRecording")


def installed_command() -> Optional[str]:
    """The command understudy: that of the tree that the loaded library is in, else one in PATH."""
    for path in _loaded_paths():
        command = os.path.join(os.path.dirname(path), os.pardir, "bin", "understudy")
        if os.access(command, os.X_OK):
            return os.path.normpath(command)
    return shutil.which("understudy")


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


def _call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    ret = _function(library, name)(*arguments)
    if ret == 0:
        return
    recent = _function(library, "aclGetRecentErrMsg")
    recent.restype = ctypes.c_char_p
    sentence = _text(recent() or b"").strip()
    raise ServerError(sentence or f"{name} failed with {ret}")


def _loaded_paths() -> List[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        lines = [line.rstrip("\n").split(maxsplit=5) for line in maps]
    return [line[5] for line in lines if len(line) == 6 and line[5].endswith("/" + LIBRARY)]


def _text(text: bytes) -> str:
    return str(text, errors="replace")


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
