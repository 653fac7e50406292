# SPDX-License-Identifier: Apache-2.0
"""What failed in the software NPU: a bounded record that outlives its process."""
from __future__ import annotations

import atexit
import contextlib
import itertools
import mmap
import os
import struct
from typing import Iterator, List

from . import library

# So many lines are kept of the beginning, where causes are, and of the end.
_FIRST, _LAST = 10, 10
_LINE = struct.Struct("<I508s")  # its number from 1 on; longer lines are cut


class ErrorRecord:
    """A line for each call or task that failed since the latest clear(): the first and last ones.

    It lies in memory that fork children share, so that one that crashes leaves what it heard. One
    process at a time adds lines, on any of its threads.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, (_FIRST + _LAST) * _LINE.size)
        self._numbers = itertools.count()
        self._is_open = True
        self._listening_process = 0

    def listen(self) -> None:
        """Hears of this process's failures from now on, if it has loaded the software NPU."""
        if self._listening_process != os.getpid() and library.listen(self.add):
            self._listening_process = os.getpid()
            atexit.register(self.stop_listening)  # threads may fail longer than Python can hear

    def stop_listening(self) -> None:
        if self._listening_process == os.getpid():
            library.stop_listening()
            self._listening_process = 0

    @contextlib.contextmanager
    def left_to_child(self) -> Iterator[None]:
        """A fork child adds the lines meanwhile, once it has called take_over()."""
        self._is_open = False
        try:
            yield
        finally:
            self._is_open = True

    def take_over(self) -> None:
        self._is_open = True
        self.listen()

    def clear(self) -> None:
        self._memory[:] = bytes(len(self._memory))
        self._numbers = itertools.count()

    def add(self, line: str) -> None:
        if not self._is_open:
            return
        number = next(self._numbers)
        place = number if number < _FIRST else _FIRST + (number - _FIRST) % _LAST
        _LINE.pack_into(self._memory, place * _LINE.size, number + 1, line.encode())

    def lines(self) -> List[str]:
        """In the order in which they were added, and how many are missing where some are."""
        texts: List[str] = []
        expected = 1
        for number, line in sorted(_LINE.iter_unpack(self._memory[:])):
            if number == 0:
                continue
            if number != expected:
                texts.append(f"({number - expected} more)")
            texts.append(line.rstrip(b"\0").decode(errors="replace"))
            expected = number + 1
        return texts
