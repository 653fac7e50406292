# SPDX-License-Identifier: Apache-2.0
"""Objects that a piece of a program leaves alive, or that grow with every cycle of it.

Counts come from the library always; the places of the program that made the objects where a check
is chosen (Server(check="leaks"), UNDERSTUDY_CHECK=leaks).
"""
from __future__ import annotations

import contextlib
import gc
from types import TracebackType
from typing import Any, Callable, Iterator, List, Optional, Type, Union

from .leaks import counted, described
from .library import Objects, Place, mark, objects, places_since
from .limit import Limit, size_text

_MOST_PLACES = 20
_HINT = '  (choose a check for the places of the program: Server(check="leaks"), --npu-check)'


class LeakError(AssertionError):
    """More is alive than a limit allows, or it grows with every cycle."""

    __module__ = "understudy"


class limit_leaks(contextlib.ContextDecorator):
    """with limit_leaks("1MB"): fails with a LeakError if more is alive at its end than before.

    bytes is device memory, objects the number of all objects together. Without objects, none may
    be left if bytes is 0, and any number otherwise. An exception of the block comes first.
    """

    def __init__(self, bytes: Union[int, str] = 0, objects: Optional[int] = None) -> None:
        self.limit = Limit.of(bytes, objects)

    def _recreate_cm(self) -> limit_leaks:
        return type(self)(self.limit.bytes, self.limit.objects)

    def __enter__(self) -> limit_leaks:
        self._before = objects()
        self._mark = mark()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        __tracebackhide__ = True  # pytest shows the line of the test
        if kind is not None or self.limit.allows(self._before, objects()):
            return
        gc.collect()  # owners in reference cycles free late, but do not leak
        after = objects()
        if not self.limit.allows(self._before, after):
            sentence = f"leaks: {described(self._before, after)}; {self.limit}"
            raise LeakError("\n".join([sentence, *place_lines(places_since(self._mark))]))


class ratchet:
    """for _ in ratchet(cycles=10, warmup=2): fails with a LeakError if every cycle leaves more.

    All cycles run; from the end of the warm-up on, the objects of a kind, or the device memory,
    must not grow in each of them. ratchet(10)(function) calls a function in each cycle. A loop that
    is left early is not judged.
    """

    def __init__(self, cycles: int = 10, warmup: int = 2) -> None:
        if warmup < 0 or cycles - warmup < 2:
            raise ValueError(f"{cycles} cycles with {warmup} to warm up: at least 2 are compared")
        self.cycles = cycles
        self.warmup = warmup

    def __iter__(self) -> Iterator[int]:
        __tracebackhide__ = True
        counts: List[Objects] = []
        begin = 0
        for cycle in range(self.cycles):
            if cycle == self.warmup:
                begin = mark()
                counts = [_settled()]
            yield cycle
            if cycle >= self.warmup:
                counts.append(_settled())
        _judge(counts, begin)

    def __call__(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        __tracebackhide__ = True
        for _ in self:
            function(*arguments, **keywords)


def _settled() -> Objects:
    gc.collect()
    return objects()


def _judge(counts: List[Objects], begin: int) -> None:
    __tracebackhide__ = True
    grown = []
    for name in Objects._fields:
        steps = [getattr(now, name) - getattr(then, name) for then, now in zip(counts, counts[1:])]
        if min(steps) > 0:
            grown.append(_steps_text(name, steps))
    if not grown:
        return
    cycles = len(counts) - 1
    places = places_since(begin)
    if places is not None:  # what every cycle leaves, not what one of them left
        places = [place for place in places if place.objects >= cycles]
    sentence = f"grows in each of {cycles} cycles: by {', '.join(grown)} a cycle"
    raise LeakError("\n".join([sentence, *place_lines(places)]))


def _steps_text(name: str, steps: List[int]) -> str:
    low, high = min(steps), max(steps)
    if name == "device_bytes":
        least = "" if low == high else f"{size_text(low)} to "
        return f"{least}{size_text(high)} of device memory"
    return f"{'' if low == high else f'{low} to '}{counted(high, name)}"


def place_lines(places: Optional[List[Place]]) -> List[str]:
    """A line for each place of the program; None: they are not known."""
    if places is None:
        return [_HINT]
    lines = [f"  {place.sentence}" for place in places]
    left_out = len(lines) - _MOST_PLACES
    return lines[:_MOST_PLACES] + ([f"  and {left_out} more places"] if left_out > 0 else [])
