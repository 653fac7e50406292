# SPDX-License-Identifier: Apache-2.0
"""What is alive and was not before: one sentence, and the places where it was made."""
from __future__ import annotations

import collections
import gc
import os
from typing import List

from .calls import Calls, Place
from .library import Objects, objects
from .limit import Limit, size_text

# What one of them is called, and the call that ends it.
_KINDS = {
    "allocations": ("allocation", "free"),
    "host_allocations": ("host allocation", "free_host"),
    "physical_handles": ("physical handle", "free_physical"),
    "reservations": ("reservation", "release_mem_address"),
    "mappings": ("mapping", "unmap_mem"),
    "streams": ("stream", "destroy_stream"),
    "events": ("event", "destroy_event"),
    "notifies": ("notify", "destroy_notify"),
    "pools": ("memory pool", "mem_pool_destroy"),
}
_PLURALS = {"notify": "notifies"}
_MOST_PLACES = 20


def leaks_since(before: Objects, calls: Calls, folder: str, limit: Limit = Limit()) -> str:
    """The text, or nothing if no more leaks than may. Paths in the folder are relative to it."""
    if limit.allows(before, objects()):
        return ""
    gc.collect()  # owners in reference cycles free late, but do not leak
    after = objects()
    if limit.allows(before, after):
        return ""
    sentence = f"test leaks: {described(before, after)}"
    allowed = "" if limit == Limit() else f"; {limit}"
    return "\n".join([sentence + allowed, *_places(before, after, calls, folder)])


def described(before: Objects, after: Objects) -> str:
    """What is alive and was not, and the calls that end it; empty if nothing is."""
    more = {name: now - then for name, now, then in zip(Objects._fields, after, before)}
    found = [name for name in _KINDS if more[name] > 0]
    parts = [counted(more[name], name) for name in found]
    if more["device_bytes"] > 0:
        parts.append(f"{size_text(more['device_bytes'])} of device memory")
    calls = ", ".join(_KINDS[name][1] for name in found)
    advice = f" (acl.rt.{calls})" if calls else ""
    return f"{', '.join(parts)}{advice}" if parts else ""


def _places(before: Objects, after: Objects, calls: Calls, folder: str) -> List[str]:
    lines: List[str] = []
    for kind in _KINDS:
        places = calls.places(kind)
        # If there are more, some were ended unseen, and it is not known which.
        if len(places) <= getattr(after, kind) - getattr(before, kind):
            for place, count in collections.Counter(places).items():
                lines.append(f"  {counted(count, kind)} by {_text(place, folder)}")
    left_out = len(lines) - _MOST_PLACES
    return lines[:_MOST_PLACES] + ([f"  and {left_out} more places"] if left_out > 0 else [])


def _text(place: Place, folder: str) -> str:
    inside = os.path.join(folder, "")
    path = place.path[len(inside):] if place.path.startswith(inside) else place.path
    return f"{place.function} at {path}:{place.line}"


def counted(count: int, kind: str) -> str:
    name = _KINDS[kind][0]
    return f"{count} {name if count == 1 else _PLURALS.get(name, name + 's')}"
