#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a memory snapshot for what its viewers need, pytorch.org/memory_viz and MindStudio Insight:

    scripts/check_torch_snapshot.py FILE...

The file is a pickle of protocol 2 to 4, made of the operations that memory_viz knows; no list grows
by more than 1000 values at once, because it passes them on as arguments. It is a dict:

    segments       list of segments: memory that was taken from a device and not given back
    device_traces  list, by device, of the entries of its trace in the order of time

A segment:

    device                     position in device_traces
    address, total_size        no two segments of a device overlap
    allocated_size             sum of the active blocks' sizes
    active_size                the same with blocks that wait to be freed
    requested_size             sum of the active blocks' requested sizes
    stream, segment_type       a number; "small" or "large"
    segment_pool_id            tuple of two numbers, (0, 0) for none
    is_expandable, frames      a bool; see below
    blocks                     tile the segment: each begins where the one before it ends

A block: address, size, requested_size (at most the size), state ("active_allocated",
"active_pending_free" or "inactive"), frames. A frame: filename, line, name.

An entry: action, addr, size, stream, time_us, frames. Played from the beginning, the entries lead to
the segments and active blocks of the snapshot; viewers play them backwards from there:

    segment_alloc, segment_map     memory where no segment is
    alloc                          in a segment, where no block is
    free_requested, free_completed of a block, in this order
    segment_free, segment_unmap    of a segment without blocks
    oom                            with device_free, what the device has left; changes nothing

Numbers are below 2**63: what is longer becomes a BigInt in JavaScript, which adds to no number.
Nothing has a field `category`: with it, memory_viz calls an array that it misspells."""

import bisect
import io
import pickle
import pickletools
import sys

# What the unpickler of memory_viz has, by the names of pickletools.
OPERATIONS = {
    "PROTO", "FRAME", "STOP", "MARK", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "EMPTY_DICT",
    "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "DICT", "NONE",
    "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE",
    "BINUNICODE", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"}
VALUES = OPERATIONS - {"PROTO", "FRAME", "STOP", "MARK", "APPEND", "APPENDS", "SETITEM", "SETITEMS",
                       "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "DICT", "MEMOIZE", "BINPUT",
                       "LONG_BINPUT"}
MOST_AT_ONCE = 1000
MOST = 2 ** 63
STATES = ("active_allocated", "active_pending_free", "inactive")
TAKING = ("segment_alloc", "segment_map")
GIVING = ("segment_free", "segment_unmap")
ACTIONS = (*TAKING, *GIVING, "alloc", "free_requested", "free_completed", "oom", "snapshot")

NUMBER, TEXT, FLAG, LIST, PAIR = "number", "text", "flag", "list", "pair"
SEGMENT = {"device": NUMBER, "address": NUMBER, "total_size": NUMBER, "allocated_size": NUMBER,
           "active_size": NUMBER, "requested_size": NUMBER, "stream": NUMBER, "segment_type": TEXT,
           "segment_pool_id": PAIR, "is_expandable": FLAG, "frames": LIST, "blocks": LIST}
BLOCK = {"address": NUMBER, "size": NUMBER, "requested_size": NUMBER, "state": TEXT, "frames": LIST}
FRAME = {"filename": TEXT, "line": NUMBER, "name": TEXT}
ENTRY = {"action": TEXT, "addr": NUMBER, "size": NUMBER, "stream": NUMBER, "time_us": NUMBER,
         "frames": LIST}


def is_number(value):
    return type(value) is int and 0 <= value < MOST


IS_OF = {NUMBER: is_number, TEXT: lambda value: isinstance(value, str),
         FLAG: lambda value: isinstance(value, bool), LIST: lambda value: isinstance(value, list),
         PAIR: lambda value: isinstance(value, tuple) and len(value) == 2
         and all(map(is_number, value))}


class Broken(Exception):
    """What is wrong with a snapshot."""


def require(condition, sentence):
    if not condition:
        raise Broken(sentence)


def check_fields(value, fields, where):
    require(isinstance(value, dict), f"{where} is no dict")
    for name, kind in fields.items():
        require(name in value, f"{where} has no field {name}")
        require(IS_OF[kind](value[name]), f"{where}: {name} is {value[name]!r} and no {kind}")
    require("category" not in value, f"{where} has a field category")


class Ranges:
    """Ranges of addresses that do not overlap, by their beginnings."""

    def __init__(self):
        self.starts = []
        self.sizes = {}

    def add(self, start, size, where):
        place = bisect.bisect_left(self.starts, start)
        before = self.starts[place - 1] if place else None
        after = self.starts[place] if place < len(self.starts) else None
        free = (before is None or before + self.sizes[before] <= start) and (
            after is None or after >= start + max(size, 1))
        require(free, f"{where} overlaps with another at {start:#x}")
        self.starts.insert(place, start)
        self.sizes[start] = size

    def remove(self, start, size, where):
        require(self.sizes.get(start) == size, f"{where} ends what is not there: {start:#x}")
        del self.starts[bisect.bisect_left(self.starts, start)]
        del self.sizes[start]

    def covers(self, start, size):
        place = bisect.bisect_right(self.starts, start)
        if not place:
            return False
        first = self.starts[place - 1]
        return start + size <= first + self.sizes[first]

    def has_any_in(self, start, size):
        place = bisect.bisect_left(self.starts, start)
        return place < len(self.starts) and self.starts[place] < start + size


class FrameCheck:
    """Checks lists of frames, each once: entries share them."""

    def __init__(self):
        self.seen = set()

    def __call__(self, frames, where):
        if id(frames) in self.seen:
            return
        self.seen.add(id(frames))
        for frame in frames:
            check_fields(frame, FRAME, f"a frame of {where}")


def check_segment(segment, where, check_frames):
    check_fields(segment, SEGMENT, where)
    check_frames(segment["frames"], where)
    require(segment["segment_type"] in ("small", "large"), f"{where}: segment_type is unknown")
    require(segment["total_size"] > 0, f"{where} is empty")
    require(segment["address"] + segment["total_size"] < MOST, f"{where} ends beyond 2**63")
    end = segment["address"]
    sums = dict.fromkeys(("allocated", "active", "requested"), 0)
    for number, block in enumerate(segment["blocks"]):
        name = f"block {number} of {where}"
        check_fields(block, BLOCK, name)
        check_frames(block["frames"], name)
        require(block["state"] in STATES, f"{name}: state is unknown")
        require(block["address"] == end, f"{name} does not begin where the one before it ends")
        require(0 < block["size"], f"{name} is empty")
        require(block["requested_size"] <= block["size"], f"{name}: requested_size is too large")
        end += block["size"]
        if block["state"] == "active_allocated":
            sums["allocated"] += block["size"]
            sums["requested"] += block["requested_size"]
        if block["state"] != "inactive":
            sums["active"] += block["size"]
    require(end == segment["address"] + segment["total_size"], f"the blocks of {where} do not fill it")
    for name, size in sums.items():
        require(segment[f"{name}_size"] == size, f"{where}: {name}_size is not the sum of its blocks")


class Trace:
    """What the entries of a device lead to."""

    def __init__(self):
        self.segments = Ranges()
        self.blocks = Ranges()
        self.requested = set()
        self.time = 0

    def play(self, entry, where):
        action, address, size = entry["action"], entry["addr"], entry["size"]
        require(action in ACTIONS, f"{where}: action is unknown")
        require(entry["time_us"] >= self.time, f"{where} is earlier than the one before it")
        self.time = entry["time_us"]
        if action in TAKING:
            self.segments.add(address, size, where)
        elif action in GIVING:
            require(not self.blocks.has_any_in(address, size), f"{where} ends memory in use")
            self.segments.remove(address, size, where)
        elif action == "alloc":
            require(self.segments.covers(address, size), f"{where} is in no segment")
            self.blocks.add(address, size, where)
        elif action == "free_requested":
            require(self.blocks.sizes.get(address) == size, f"{where} frees what was not allocated")
            require(address not in self.requested, f"{where} frees again")
            self.requested.add(address)
        elif action == "free_completed":
            require(address in self.requested, f"{where} completes what was not requested")
            self.requested.remove(address)
            self.blocks.remove(address, size, where)
        elif action == "oom":
            require(is_number(entry.get("device_free")), f"{where} has no device_free")


def check_end(trace, segments, device):
    """The trace leads to the segments."""
    pieces = {segment["address"]: segment["total_size"] for segment in segments}
    require(trace.segments.sizes == pieces, f"the trace of device {device} ends in other segments")
    active = {block["address"]: block["requested_size"] for segment in segments
              for block in segment["blocks"] if block["state"] != "inactive"}
    require(trace.blocks.sizes == active, f"the trace of device {device} ends in other blocks")


def check_snapshot(snapshot):
    """Raises Broken with the first thing that is wrong."""
    check_fields(snapshot, {"segments": LIST, "device_traces": LIST}, "the snapshot")
    check_frames = FrameCheck()
    by_device = [[] for _ in snapshot["device_traces"]]
    for number, segment in enumerate(snapshot["segments"]):
        check_segment(segment, f"segment {number}", check_frames)
        require(segment["device"] < len(by_device), f"segment {number} is of a device without trace")
        by_device[segment["device"]].append(segment)
    for device, entries in enumerate(snapshot["device_traces"]):
        require(isinstance(entries, list), f"the trace of device {device} is no list")
        trace = Trace()
        for number, entry in enumerate(entries):
            where = f"entry {number} of device {device}"
            check_fields(entry, ENTRY, where)
            check_frames(entry["frames"], where)
            trace.play(entry, where)
        check_end(trace, by_device[device], device)


def check_operations(data):
    """Only what memory_viz can read, so that loading it runs no code either."""
    depths = []
    for operation, argument, _ in pickletools.genops(data):
        name = operation.name
        require(name in OPERATIONS, f"the pickle has the operation {name}")
        if name == "PROTO":
            require(2 <= argument <= 4, f"the pickle is of protocol {argument}")
        elif name == "MARK":
            depths.append(0)
        elif name in ("APPENDS", "SETITEMS"):
            require(depths and depths.pop() <= MOST_AT_ONCE, f"{name} has too many operands")
        elif name in ("TUPLE", "LIST", "DICT") and depths:
            depths.pop()
            if depths:
                depths[-1] += 1
        elif name in VALUES and depths:
            depths[-1] += 1
        elif name in ("TUPLE2", "TUPLE3", "SETITEM", "APPEND") and depths:
            depths[-1] -= {"TUPLE2": 1, "TUPLE3": 2, "SETITEM": 2, "APPEND": 1}[name]


def load(data):
    """The snapshot in a pickle. Raises Broken if the viewers cannot read it."""
    try:
        check_operations(data)
        return pickle.load(io.BytesIO(data))
    except (ValueError, EOFError, IndexError, pickle.UnpicklingError) as error:
        raise Broken(f"this is no pickle: {error}") from None


def main():
    status = 0
    for path in sys.argv[1:]:
        try:
            with open(path, "rb") as file:
                check_snapshot(load(file.read()))
            print(f"{path}: good")
        except (OSError, Broken) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
