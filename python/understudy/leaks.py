# SPDX-License-Identifier: Apache-2.0
"""One sentence about what is alive and was not before."""
from __future__ import annotations

import gc

from .library import Objects, objects

# What one of them is called, and the call that ends it.
_KINDS = {
    "allocations": ("allocation", "free"),
    "host_allocations": ("host allocation", "free_host"),
    "physical_handles": ("physical handle", "free_physical"),
    "reservations": ("reservation", "release_mem_address"),
    "mappings": ("mapping", "unmap_mem"),
}
_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "bytes": 1}


def leaks_since(before: Objects) -> str:
    """The sentence, or nothing if nothing leaks."""
    if all(now <= then for now, then in zip(objects(), before)):
        return ""
    gc.collect()  # owners in reference cycles free late, but do not leak
    return leak_sentence(before, objects())


def leak_sentence(before: Objects, after: Objects) -> str:
    more = {name: now - then for name, now, then in zip(Objects._fields, after, before)}
    found = [name for name in _KINDS if more[name] > 0]
    parts = [f"{more[name]} {_KINDS[name][0]}{'s' if more[name] > 1 else ''}" for name in found]
    if more["device_bytes"] > 0:
        parts.append(f"{_size(more['device_bytes'])} of device memory")
    calls = ", ".join(_KINDS[name][1] for name in found)
    advice = f" (acl.rt.{calls})" if calls else ""
    return f"test leaks: {', '.join(parts)}{advice}" if parts else ""


def _size(count: int) -> str:
    unit = next(unit for unit, size in _UNITS.items() if count % size == 0)
    return f"{count // _UNITS[unit]} {unit}"
