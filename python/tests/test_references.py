# SPDX-License-Identifier: Apache-2.0
"""A million calls leave no reference, no object and no memory behind, whether they succeed or fail.

A call that kept one reference, or one integer, would show up thousands of times; the slack only
covers what the interpreter itself does meanwhile.
"""
import gc
import sys
import tracemalloc

import pytest

import acl
from support import (
    BLOCK, HBM, HOST_TO_DEVICE, HUGE_FIRST, MODULE_ID, UNKNOWN_ATTRIBUTE, configuration, prop,
)

CALLS = 20000
SLOW_CALLS = 4000
SLACK_REFERENCES = 100
SLACK_OBJECTS = 100
SLACK_BYTES = 64 << 10

PROP = prop()
LOCATION = PROP["location"]
CFG = configuration((MODULE_ID, {"moduleId": 33}))
BROKEN_PROP = {key: PROP[key] for key in ("handleType", "allocationType", "location")}
BROKEN_LOCATION = dict(PROP, location={"id": 0})
BROKEN_CFG = {"attrs": [{"attr": 1}], "numAttrs": 1}
STRANGE_CFG = configuration((UNKNOWN_ATTRIBUTE, 1))
PIDS = [100001, 100002]
MIXED_PIDS = [100001, "100002"]
HUGE_PID = [1 << 40]
KEY = "a key that nobody exported"
DATA = b"some data to copy" * 4
POINTER = acl.util.bytes_to_ptr(DATA)

WATCHED = [
    None, True, False, 0, 1, 2, 33, 64, "", b"", (), KEY, DATA,
    PROP, LOCATION, BROKEN_PROP, BROKEN_LOCATION, BROKEN_LOCATION["location"],
    CFG, CFG["attrs"], CFG["attrs"][0], CFG["attrs"][0]["value"], BROKEN_CFG, BROKEN_CFG["attrs"],
    STRANGE_CFG, STRANGE_CFG["attrs"][0], PIDS, PIDS[0], MIXED_PIDS, MIXED_PIDS[1], HUGE_PID,
    HUGE_PID[0],
]

# Newer interpreters have objects that live for ever. Their counts mean nothing: a module for the
# stable ABI of Python 3.8, which does not know such objects, lets them drift without harm.
IMMORTAL = 1 << 29
COUNTED = [thing for thing in WATCHED if sys.getrefcount(thing) < IMMORTAL]


def references():
    return [sys.getrefcount(thing) for thing in COUNTED]


def repeat(call, times):
    for _ in range(times):
        call()


def alive():
    """Bytes and objects of the interpreter, and the references to what is watched."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0], len(gc.get_objects()), references()


def check(call, times):
    """Runs the call often and compares what is alive before and after."""
    tracemalloc.start()
    try:
        repeat(call, 100)  # caches and free lists fill up
        memory, objects, counts = alive()
        repeat(call, times)
        memory_after, objects_after, counts_after = alive()
    finally:
        tracemalloc.stop()
        acl.get_recent_err_msg()
    changes = [after - before for before, after in zip(counts, counts_after)]
    assert max(map(abs, changes)) <= SLACK_REFERENCES, list(zip(COUNTED, changes))
    assert objects_after - objects <= SLACK_OBJECTS
    assert memory_after - memory <= SLACK_BYTES


@pytest.fixture(scope="module")
def things():
    """Objects that the calls below need."""
    acl.init()
    assert acl.rt.set_device(0) == 0
    made = {
        "device": acl.rt.malloc(BLOCK, HUGE_FIRST),
        "host": acl.rt.malloc_host(BLOCK),
        "handle": acl.rt.malloc_physical(BLOCK, PROP, 0),
        "place": acl.rt.reserve_mem_address(BLOCK, 0, 0, 0),
        "stream": acl.rt.create_stream(),
        "event": acl.rt.create_event(),
        "context": acl.rt.get_context(),
    }
    assert [ret for _, ret in made.values()] == [0] * len(made)
    values = {name: value for name, (value, _) in made.items()}
    values["token"], ret = acl.rt.mem_export_to_shareable_handle(values["handle"], 0, 0)
    assert ret == 0
    yield values
    assert acl.rt.destroy_event(values["event"]) == 0
    assert acl.rt.destroy_stream(values["stream"]) == 0
    assert acl.rt.release_mem_address(values["place"]) == 0
    assert acl.rt.free_physical(values["handle"]) == 0
    assert acl.rt.free_host(values["host"]) == 0
    assert acl.rt.free(values["device"]) == 0
    assert acl.rt.reset_device(0) == 0


SUCCEEDING = {
    "init": lambda t: acl.init(),
    "init with text": lambda t: acl.init(""),
    "soc name": lambda t: acl.get_soc_name(),
    "version": lambda t: acl.get_version(),
    "data type size": lambda t: acl.data_type_size(1),
    "recent error": lambda t: acl.get_recent_err_msg(),
    "data buffer": lambda t: acl.destroy_data_buffer(acl.create_data_buffer(t["device"], 64)),
    "device": lambda t: acl.rt.get_device(),
    "device count": lambda t: acl.rt.get_device_count(),
    "device info": lambda t: acl.rt.get_device_info(0, 301),
    "uuid": lambda t: acl.rt.device_get_uuid(0),
    "utilization": lambda t: acl.rt.get_device_utilization_rate(0),
    "context": lambda t: acl.rt.set_context(acl.rt.get_context()[0]),
    "stream query": lambda t: acl.rt.stream_query(t["stream"]),
    "stream attribute": lambda t: acl.rt.get_stream_attribute(t["stream"], 1),
    "stream synchronize": lambda t: acl.rt.synchronize_stream(t["stream"]),
    "event status": lambda t: acl.rt.query_event_status(t["event"]),
    "event record": lambda t: acl.rt.record_event(t["event"], t["stream"]),
    "mem info": lambda t: acl.rt.get_mem_info(HBM),
    "malloc": lambda t: acl.rt.free(acl.rt.malloc(64, HUGE_FIRST)[0]),
    "malloc with cfg": lambda t: acl.rt.free(acl.rt.malloc_with_cfg(64, HUGE_FIRST, CFG)[0]),
    "malloc host": lambda t: acl.rt.free_host(acl.rt.malloc_host(64)[0]),
    "malloc host with cfg": lambda t: acl.rt.free_host(acl.rt.malloc_host_with_cfg(64, CFG)[0]),
    "physical": lambda t: acl.rt.free_physical(acl.rt.malloc_physical(BLOCK, PROP, 0)[0]),
    "granularity": lambda t: acl.rt.mem_get_allocation_granularity(PROP, 0),
    "attributes": lambda t: acl.rt.pointer_get_attributes(t["device"]),
    "memset": lambda t: acl.rt.memset(t["device"], 64, 1, 64),
    "memcpy": lambda t: acl.rt.memcpy(t["device"], 64, POINTER, 64, HOST_TO_DEVICE),
    "memcpy async": lambda t: acl.rt.memcpy_async(t["host"], 64, t["device"], 64, 2, t["stream"]),
    "value write": lambda t: acl.rt.value_write(t["device"], 1, 0, t["stream"]),
    "pid list": lambda t: acl.rt.mem_set_pid_to_shareable_handle(t["token"], PIDS),
    "bytes to ptr": lambda t: acl.util.bytes_to_ptr(DATA),
    "ptr to bytes": lambda t: acl.util.ptr_to_bytes(POINTER, 64),
    "ptr to no bytes": lambda t: acl.util.ptr_to_bytes(POINTER, 0),
}

SLOW = {
    "reserve": lambda t: acl.rt.release_mem_address(acl.rt.reserve_mem_address(BLOCK, 0, 0, 0)[0]),
    "stream": lambda t: acl.rt.destroy_stream(acl.rt.create_stream()[0]),
    "event": lambda t: acl.rt.destroy_event(acl.rt.create_event()[0]),
    "notify": lambda t: acl.rt.destroy_notify(acl.rt.create_notify(0)[0]),
    "map": lambda t: (
        acl.rt.map_mem(t["place"], BLOCK, 0, t["handle"], 0), acl.rt.unmap_mem(t["place"])),
    "key": lambda t: acl.rt.ipc_mem_close(
        acl.rt.ipc_mem_get_export_key(t["device"], BLOCK, 65, 1)[0]),
}

# A call and the status at the end of what it gives.
REFUSED = {
    "malloc": (lambda t: acl.rt.malloc(0, HUGE_FIRST), 100000),
    "malloc with cfg": (lambda t: acl.rt.malloc_with_cfg(64, HUGE_FIRST, STRANGE_CFG), 107000),
    "physical": (lambda t: acl.rt.malloc_physical(1, PROP, 0), 107000),
    "reserve": (lambda t: acl.rt.reserve_mem_address(0, 0, 0, 0), 100000),
    "free": (lambda t: acl.rt.free(0x1234000), 107000),
    "memcpy": (lambda t: acl.rt.memcpy(t["device"], 1, POINTER, 64, HOST_TO_DEVICE), 107000),
    "mem info": (lambda t: acl.rt.get_mem_info(99), 107016),
    "attributes": (lambda t: acl.rt.pointer_get_attributes(0), 100000),
    "export": (lambda t: acl.rt.mem_export_to_shareable_handle(0, 0, 0), 100000),
    "key": (lambda t: acl.rt.ipc_mem_get_export_key(0, BLOCK, 65, 0), 100000),
    "device": (lambda t: acl.rt.set_device(-1), 107001),
    "stream": (lambda t: acl.rt.stream_query(12345), 107017),
    "notifies": (lambda t: acl.rt.notify_batch_reset([12345, 54321]), 107017),
    "notify key": (lambda t: acl.rt.notify_import_by_key(KEY, 0), 107017),
}

RAISING = {
    "malloc without arguments": (lambda t: acl.rt.malloc(), TypeError),
    "malloc of text": (lambda t: acl.rt.malloc("64", 0), TypeError),
    "malloc beyond 32 bits": (lambda t: acl.rt.malloc(64, 1 << 40), OverflowError),
    "malloc with list": (lambda t: acl.rt.malloc_with_cfg(64, 0, PIDS), TypeError),
    "malloc with broken cfg": (lambda t: acl.rt.malloc_with_cfg(64, 0, BROKEN_CFG), KeyError),
    "physical of list": (lambda t: acl.rt.malloc_physical(BLOCK, PIDS, 0), TypeError),
    "physical without key": (lambda t: acl.rt.malloc_physical(BLOCK, BROKEN_PROP, 0), KeyError),
    "granularity without type": (
        lambda t: acl.rt.mem_get_allocation_granularity(BROKEN_LOCATION, 0), KeyError),
    "pid list with text": (
        lambda t: acl.rt.mem_set_pid_to_shareable_handle(t["token"], MIXED_PIDS), TypeError),
    "pid list beyond 32 bits": (
        lambda t: acl.rt.ipc_mem_set_import_pid(KEY, HUGE_PID), OverflowError),
    "pid list of none": (lambda t: acl.rt.ipc_mem_set_import_pid(KEY, None), TypeError),
    "notifies with text": (lambda t: acl.rt.notify_batch_reset([1, KEY]), TypeError),
    "key of bytes": (lambda t: acl.rt.ipc_mem_close(DATA), TypeError),
    "bytes of text": (lambda t: acl.util.bytes_to_ptr(KEY), TypeError),
    "bytes of nowhere": (lambda t: acl.util.ptr_to_bytes(0, 64), ValueError),
}


@pytest.mark.parametrize("name", SUCCEEDING)
def test_success_leaves_nothing(things, name):
    call = SUCCEEDING[name]
    check(lambda: call(things), CALLS)


@pytest.mark.parametrize("name", SLOW)
def test_making_and_ending_leaves_nothing(things, name):
    call = SLOW[name]
    check(lambda: call(things), SLOW_CALLS)


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_leaves_nothing(things, name):
    call, code = REFUSED[name]

    def refused():
        result = call(things)
        assert (result[-1] if isinstance(result, tuple) else result) == code

    check(refused, CALLS)


@pytest.mark.parametrize("name", RAISING)
def test_exception_leaves_nothing(things, name):
    call, error = RAISING[name]

    def raising():
        try:
            call(things)
        except error:
            return
        raise AssertionError(f"{name} did not raise {error.__name__}")

    check(raising, CALLS)


def test_it_was_a_million_calls():
    quick = len(SUCCEEDING) + len(REFUSED) + len(RAISING)
    assert quick * CALLS + len(SLOW) * SLOW_CALLS >= 1000000
