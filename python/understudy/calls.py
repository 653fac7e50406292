# SPDX-License-Identifier: Apache-2.0
"""Notes where a program makes objects: the place of each acl.* call that made one.

The functions of acl that make and end objects are replaced by ones that take notes, as soon as a
program imports acl. Code that bound such a function before goes unseen.
"""
from __future__ import annotations

import functools
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from .library import Objects, objects

_HERE = os.path.dirname(__file__) + os.sep

# Functions that make objects of a kind, and those that end one by their first argument.
_BY_RESULT: Dict[str, Tuple[Sequence[str], Sequence[str]]] = {
    "allocations": (
        ("rt.malloc", "rt.malloc_align32", "rt.malloc_cached", "rt.malloc_with_cfg",
         "rt.malloc_for_task_scheduler", "rt.mem_alloc_managed", "rt.mem_pool_malloc_async",
         "media.dvpp_malloc"),
        ("rt.free", "rt.mem_pool_free_async", "media.dvpp_free"),
    ),
    "host_allocations": (("rt.malloc_host", "rt.malloc_host_with_cfg"), ("rt.free_host",)),
    "physical_handles": (
        ("rt.malloc_physical", "rt.mem_retain_allocation_handle",
         "rt.mem_import_from_shareable_handle", "rt.mem_import_from_shareable_handle_v2"),
        ("rt.free_physical",),
    ),
    "reservations": (
        ("rt.reserve_mem_address", "rt.reserve_mem_address_no_uc_memory"),
        ("rt.release_mem_address",),
    ),
    "streams": (
        ("rt.create_stream", "rt.create_stream_with_config"),
        ("rt.destroy_stream", "rt.destroy_stream_force"),
    ),
    "events": (
        ("rt.create_event", "rt.create_event_with_flag", "rt.create_event_ex_with_flag"),
        ("rt.destroy_event",),
    ),
    "notifies": (("rt.create_notify", "rt.notify_import_by_key"), ("rt.destroy_notify",)),
    "pools": (("rt.mem_pool_create",), ("rt.mem_pool_destroy",)),
}
# The same for those that know the object by their first argument.
_BY_ARGUMENT: Dict[str, Tuple[Sequence[str], Sequence[str]]] = {
    "mappings": (("rt.map_mem", "rt.mem_map_no_access"), ("rt.unmap_mem",)),
    "allocations": (("rt.ipc_mem_import_by_key",), ("rt.ipc_mem_close",)),
}
# These may end any number of objects.
_END_MANY = ("finalize", "finalize_reference", "rt.reset_device", "rt.reset_device_force",
             "rt.destroy_context")
# A program that makes none of the calls above makes one of these.
_OTHERS = ("init", "rt.set_device", "rt.create_context", "rt.set_context", "rt.memcpy", "rt.memset")

_Function = Callable[..., Any]


class Place(NamedTuple):
    """Of a call that made an object."""

    function: str
    path: str
    line: int


class Calls:
    """What the acl.* calls of this process made, since the latest begin(). Any thread may call."""

    def __init__(self) -> None:
        self.used = False  # there was a call
        self._places: Dict[Tuple[str, Any], List[Place]] = {}

    def begin(self) -> None:
        self.used = False
        self._places.clear()

    def places(self, kind: str) -> List[Place]:
        """Where the objects of a kind were made that have not been ended."""
        found = [places for key, places in list(self._places.items()) if key[0] == kind]
        return [place for places in found for place in places]

    def watch(self, acl: ModuleType) -> None:
        """Replaces the functions of the module."""
        for by_result, table in ((True, _BY_RESULT), (False, _BY_ARGUMENT)):
            for kind, (makers, enders) in table.items():
                for name in makers:
                    self._replace(acl, name, self._maker(name, kind, by_result))
                for name in enders:
                    self._replace(acl, name, self._ender(kind))
        for name in _END_MANY:
            self._replace(acl, name, self._ender_of_many)
        for name in _OTHERS:
            self._replace(acl, name, self._other)

    @staticmethod
    def _replace(acl: ModuleType, name: str, make: Callable[[_Function], _Function]) -> None:
        part, _, last = name.rpartition(".")
        module = getattr(acl, part, None) if part else acl
        function = getattr(module, last, None)
        if function is not None:  # another module of that name may have less
            setattr(module, last, functools.wraps(function)(make(function)))

    def _maker(self, name: str, kind: str, by_result: bool) -> Callable[[_Function], _Function]:
        def make(function: _Function) -> _Function:
            def call(*arguments: Any) -> Any:
                self.used = True
                result = function(*arguments)
                if _status(result) == 0:
                    key = kind, result[0] if by_result else arguments[0]
                    self._places.setdefault(key, []).append(_caller(f"acl.{name}"))
                return result

            return call

        return make

    def _ender(self, kind: str) -> Callable[[_Function], _Function]:
        def make(function: _Function) -> _Function:
            def call(*arguments: Any) -> Any:
                self.used = True
                # Before the call: after it, another thread may have an object of the same name.
                places = self._take(kind, arguments)
                has_ended = False
                try:
                    result = function(*arguments)
                    has_ended = _status(result) == 0
                    return result
                finally:
                    left = places[1:] if has_ended else places  # it may have been made twice
                    if left:
                        self._places.setdefault((kind, arguments[0]), []).extend(left)

            return call

        return make

    def _take(self, kind: str, arguments: Tuple[Any, ...]) -> List[Place]:
        try:
            return self._places.pop((kind, arguments[0]), [])
        except (IndexError, TypeError):  # the call will refuse what names no object
            return []

    def _ender_of_many(self, function: _Function) -> _Function:
        def call(*arguments: Any) -> Any:
            self.used = True
            before = objects()
            result = function(*arguments)
            for kind, then, now in zip(Objects._fields, before, objects()):
                if now < then:  # which of them is not known; no place is better than a wrong one
                    for key in [key for key in list(self._places) if key[0] == kind]:
                        self._places.pop(key, None)
            return result

        return call

    def _other(self, function: _Function) -> _Function:
        def call(*arguments: Any) -> Any:
            self.used = True
            return function(*arguments)

        return call


def _status(result: Any) -> Any:
    return result[-1] if isinstance(result, tuple) else result


def _caller(function: str) -> Place:
    """The place outside of this package."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return Place(function, frame.f_code.co_filename, frame.f_lineno)
