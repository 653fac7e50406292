# SPDX-License-Identifier: Apache-2.0
"""How much a piece of a program may leave alive, and sizes as people write them."""
from __future__ import annotations

import re
from typing import NamedTuple, Optional, Union

from .library import Objects

_SHOWN_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "bytes": 1}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:I?B)?")


class Limit(NamedTuple):
    """What may be left alive."""

    bytes: int = 0
    objects: Optional[int] = 0  # None: any number

    @classmethod
    def of(cls, bytes: Union[int, str] = 0, objects: Optional[int] = None) -> Limit:
        """Some memory cannot be left without an object that has it: any number, if none is named."""
        count = parse_size(bytes)
        if objects is not None and objects < 0:
            raise ValueError(f"objects is {objects} and must not be negative")
        return cls(count, 0 if objects is None and count == 0 else objects)

    def allows(self, before: Objects, after: Objects) -> bool:
        more = [max(0, now - then) for now, then in zip(after, before)]
        return more[0] <= self.bytes and (self.objects is None or sum(more[1:]) <= self.objects)

    def __str__(self) -> str:
        if self == Limit():
            return "nothing may stay"
        parts = [f"{size_text(self.bytes)} of device memory"] if self.bytes else []
        if self.objects is not None:
            parts.append(f"{self.objects} object{'' if self.objects == 1 else 's'}")
        return f"{' and '.join(parts)} may stay"


def parse_size(size: Union[int, str]) -> int:
    """Bytes of "1MB", "64 KiB" or "4G": K, M, G and T are powers of 1024."""
    if isinstance(size, int) and size >= 0:
        return size
    found = _SIZE.fullmatch(str(size).strip().upper())
    if not found:
        raise ValueError(f'{size!r} is no size such as 4096, "64K" or "1MB"')
    return int(float(found[1]) * _UNITS[found[2]])


def size_text(count: int) -> str:
    unit = next(unit for unit, size in _SHOWN_UNITS.items() if count % size == 0)
    return f"{count // _SHOWN_UNITS[unit]} {unit}"
