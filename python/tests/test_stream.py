# SPDX-License-Identifier: Apache-2.0
"""acl.rt: streams, waiting for them, ending them, their attributes."""
import pytest

import acl
from support import (
    COMPLETE, DEVICE_FAULT, INVALID_HANDLE, INVALID_PARAM, LONG, NORMAL_ONLY, NOT_READY,
    NOT_SUPPORTED, NO_CONTEXT, OTHER_CONTEXT, RT_PARAM_INVALID, STREAM_ABORTED, STREAM_SYNC_TIMEOUT,
    Gate, made, on_bare_thread, opened_by_another_thread, read, refused_with, wait_ended_by,
)

FAILURE_MODE, OVERFLOW_CHECK, CUSTOM_TAG, PRIORITY = 1, 2, 3, 5
SIZE = 64


@pytest.fixture
def memory(device):
    """Device memory of SIZE zeros."""
    with made(acl.rt.malloc, acl.rt.free, SIZE, NORMAL_ONLY) as address:
        assert acl.rt.memset(address, SIZE, 0, SIZE) == 0
        yield address


def queue_set(address, value, stream):
    assert acl.rt.memset_async(address, SIZE, value, SIZE, stream) == 0


# Each refuses a stream in the same way; the answer is a status, or ends with one.
CALLS_ON_A_STREAM = [
    lambda stream: acl.rt.destroy_stream(stream),
    lambda stream: acl.rt.destroy_stream_force(stream),
    lambda stream: acl.rt.synchronize_stream(stream),
    lambda stream: acl.rt.synchronize_stream_with_timeout(stream, LONG),
    lambda stream: acl.rt.stream_query(stream),
    lambda stream: acl.rt.stream_abort(stream),
    lambda stream: acl.rt.stream_get_id(stream),
    lambda stream: acl.rt.set_stream_attribute(stream, CUSTOM_TAG, {"userCustomTag": 1}),
    lambda stream: acl.rt.get_stream_attribute(stream, CUSTOM_TAG),
    lambda stream: acl.rt.set_stream_failure_mode(stream, 0),
    lambda stream: acl.rt.set_stream_overflow_switch(stream, 1),
    lambda stream: acl.rt.get_stream_overflow_switch(stream),
]


# ---- Creation ----


def test_streams_are_distinct(device):
    first, ret = acl.rt.create_stream()
    assert ret == 0 and first > 0
    second, ret = acl.rt.create_stream()
    assert ret == 0 and second not in (0, first)
    assert acl.rt.destroy_stream(first) == 0
    assert acl.rt.destroy_stream(second) == 0


@pytest.mark.parametrize("priority", [0, 3, 7, 8, 2**32 - 1])
def test_priorities_are_kept_and_clamped(device, priority):
    stream, ret = acl.rt.create_stream_with_config(priority, 0)
    assert ret == 0
    attribute, ret = acl.rt.get_stream_attribute(stream, PRIORITY)
    assert ret == 0
    assert list(attribute.values()) == [min(priority, 7)]
    assert acl.rt.destroy_stream(stream) == 0


@pytest.mark.parametrize("flag", [0, 1, 2, 3])
def test_fast_flags_are_accepted(device, memory, flag):
    stream, ret = acl.rt.create_stream_with_config(0, flag)
    assert ret == 0
    queue_set(memory, 5, stream)
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(memory, SIZE) == b"\x05" * SIZE
    assert acl.rt.destroy_stream(stream) == 0


def test_flags_that_exclude_each_other_are_refused(device):
    before = acl.rt.get_stream_available_num()
    assert acl.rt.create_stream_with_config(0, 0x21) == (0, RT_PARAM_INVALID)
    assert acl.rt.get_stream_available_num() == before


def test_creating_needs_a_context():
    assert on_bare_thread(acl.rt.create_stream) == (0, NO_CONTEXT)
    assert on_bare_thread(acl.rt.create_stream_with_config, 0, 0) == (0, NO_CONTEXT)
    assert on_bare_thread(acl.rt.get_stream_available_num) == (0, NO_CONTEXT)


def test_streams_are_counted(device):
    count, ret = acl.rt.get_stream_available_num()
    assert ret == 0 and count > 0
    stream = acl.rt.create_stream()[0]
    assert acl.rt.get_stream_available_num() == (count - 1, 0)
    assert acl.rt.destroy_stream(stream) == 0
    assert acl.rt.get_stream_available_num() == (count, 0)


def test_ids_tell_streams_apart(device, stream):
    own, ret = acl.rt.stream_get_id(stream)
    assert ret == 0
    default, ret = acl.rt.stream_get_id(0)
    assert ret == 0
    assert own != default


# ---- Handles ----


@pytest.mark.parametrize("call", CALLS_ON_A_STREAM)
def test_a_destroyed_stream_is_refused(device, call):
    stream = acl.rt.create_stream()[0]
    assert acl.rt.destroy_stream(stream) == 0
    assert refused_with(INVALID_HANDLE, call(stream), empty=(0, {}))


@pytest.mark.parametrize("call", CALLS_ON_A_STREAM)
@pytest.mark.parametrize("invented", [1, 0xDEAD0000, 2**64 - 1])
def test_an_invented_stream_is_refused(device, call, invented):
    assert refused_with(INVALID_HANDLE, call(invented), empty=(0, {}))


def test_a_stream_of_another_context_is_refused(device, stream):
    own = acl.rt.get_context()[0]
    other = acl.rt.create_context(0)[0]
    assert acl.rt.synchronize_stream(stream) == OTHER_CONTEXT
    assert acl.rt.destroy_stream(stream) == OTHER_CONTEXT
    assert acl.rt.destroy_stream_force(stream) == OTHER_CONTEXT
    assert acl.rt.destroy_context(other) == 0
    assert acl.rt.set_context(own) == 0
    assert acl.rt.synchronize_stream(stream) == 0


def test_no_stream_cannot_be_destroyed(device):
    assert acl.rt.destroy_stream(0) == INVALID_PARAM
    assert acl.rt.destroy_stream_force(0) == INVALID_PARAM
    assert acl.rt.synchronize_stream(0) == 0


# ---- Waiting ----


def test_synchronizing_returns_when_the_tasks_are_done(stream, memory):
    queue_set(memory, 1, stream)
    queue_set(memory, 2, stream)
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(memory, SIZE) == b"\x02" * SIZE


def test_stream_0_is_the_default_stream(device, memory):
    queue_set(memory, 3, 0)
    assert acl.rt.synchronize_stream(0) == 0
    assert read(memory, SIZE) == b"\x03" * SIZE
    assert acl.rt.synchronize_stream_with_timeout(0, LONG) == 0
    assert acl.rt.stream_query(0) == (COMPLETE, 0)


def test_the_status_says_whether_something_is_pending(stream, gate):
    assert acl.rt.stream_query(stream) == (NOT_READY, 0)
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.stream_query(stream) == (COMPLETE, 0)


def test_when_the_time_is_over_the_tasks_stay_queued(stream, gate, memory):
    queue_set(memory, 4, stream)
    assert acl.rt.synchronize_stream_with_timeout(stream, 1) == STREAM_SYNC_TIMEOUT
    assert read(memory, SIZE) == bytes(SIZE)
    gate.open()
    assert acl.rt.synchronize_stream_with_timeout(stream, LONG) == 0
    assert read(memory, SIZE) == b"\x04" * SIZE
    assert acl.rt.synchronize_stream_with_timeout(stream, -1) == 0


@pytest.mark.parametrize("timeout", [0, -2, -(2**31)])
def test_bad_limits_are_refused(stream, timeout):
    assert acl.rt.synchronize_stream_with_timeout(stream, timeout) == RT_PARAM_INVALID


@pytest.mark.parametrize(
    "wait",
    [
        lambda stream: acl.rt.synchronize_stream(stream),
        lambda stream: acl.rt.synchronize_stream_with_timeout(stream, -1),
        lambda stream: acl.rt.synchronize_device(),
    ],
)
def test_other_threads_run_while_one_waits(stream, gate, wait):
    with opened_by_another_thread(gate):
        assert wait(stream) == 0


# ---- Failing tasks ----


def test_a_task_whose_memory_is_gone_fails_on_its_stream(stream, gate, memory):
    doomed, ret = acl.rt.malloc(SIZE, NORMAL_ONLY)
    assert ret == 0
    queue_set(doomed, 1, stream)
    queue_set(memory, 2, stream)
    assert acl.rt.free(doomed) == 0
    gate.open()
    assert acl.rt.synchronize_stream(stream) == DEVICE_FAULT
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(memory, SIZE) == b"\x02" * SIZE


# ---- Ending ----


def test_destroying_waits_for_the_tasks(device, memory):
    stream = acl.rt.create_stream()[0]
    queue_set(memory, 6, stream)
    assert acl.rt.destroy_stream(stream) == 0
    assert read(memory, SIZE) == b"\x06" * SIZE


def test_force_drops_what_has_not_begun(device, memory):
    stream = acl.rt.create_stream()[0]
    with Gate(stream) as gate:
        queue_set(memory, 7, stream)
        assert acl.rt.destroy_stream_force(stream) == 0
        gate.open()
        assert acl.rt.synchronize_device() == 0
        assert read(memory, SIZE) == bytes(SIZE)


def test_abort_drops_the_tasks_and_the_stream_goes_on(stream, gate, memory):
    queue_set(memory, 8, stream)
    assert acl.rt.stream_abort(stream) == 0
    assert acl.rt.stream_query(stream) == (COMPLETE, 0)
    assert read(memory, SIZE) == bytes(SIZE)
    queue_set(memory, 9, stream)
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(memory, SIZE) == b"\x09" * SIZE


def test_a_waiting_thread_learns_of_the_abort(stream):
    assert wait_ended_by(lambda: acl.rt.stream_abort(stream), stream) == STREAM_ABORTED


# ---- Attributes ----


@pytest.mark.parametrize(
    "attribute, member, value",
    [
        (FAILURE_MODE, "failureMode", 0),
        (OVERFLOW_CHECK, "overflowSwitch", 1),
        (CUSTOM_TAG, "userCustomTag", 0xC0FFEE),
        (PRIORITY, "streamPriority", 4),
    ],
)
def test_attributes_are_stored_per_stream(stream, attribute, member, value):
    before = acl.rt.get_stream_attribute(0, attribute)
    assert acl.rt.set_stream_attribute(stream, attribute, {member: value}) == 0
    assert acl.rt.get_stream_attribute(stream, attribute) == ({member: value}, 0)
    assert acl.rt.get_stream_attribute(0, attribute) == before


def test_only_the_member_of_the_attribute_counts(stream):
    everything = {"failureMode": 99, "overflowSwitch": 98, "userCustomTag": 97, "reserve": 96}
    assert acl.rt.set_stream_attribute(stream, CUSTOM_TAG, everything) == 0
    assert acl.rt.get_stream_attribute(stream, CUSTOM_TAG) == ({"userCustomTag": 97}, 0)
    assert acl.rt.get_stream_attribute(stream, OVERFLOW_CHECK) == ({"overflowSwitch": 0}, 0)


@pytest.mark.parametrize("attribute", [0, 6, 99, -1])
def test_unknown_attributes_are_refused(stream, attribute):
    value = {"failureMode": 0, "userCustomTag": 1, "reserve": 0}
    assert acl.rt.set_stream_attribute(stream, attribute, value) == RT_PARAM_INVALID
    assert acl.rt.get_stream_attribute(stream, attribute) == ({}, RT_PARAM_INVALID)


def test_the_failure_mode_is_chosen_once(device):
    context = acl.rt.create_context(0)[0]
    stream = acl.rt.create_stream()[0]
    for bad_mode in (2, 2**32, 2**64 - 1):
        assert acl.rt.set_stream_failure_mode(stream, bad_mode) == RT_PARAM_INVALID
    assert acl.rt.get_stream_attribute(stream, FAILURE_MODE) == ({"failureMode": 0}, 0)
    assert acl.rt.set_stream_failure_mode(stream, 1) == 0
    assert acl.rt.set_stream_failure_mode(stream, 0) == NOT_SUPPORTED
    assert acl.rt.get_stream_attribute(stream, FAILURE_MODE) == ({"failureMode": 1}, 0)
    assert acl.rt.destroy_context(context) == 0


def test_the_overflow_switch_is_stored_per_stream(stream):
    assert acl.rt.get_stream_overflow_switch(stream) == (0, 0)
    assert acl.rt.set_stream_overflow_switch(stream, 1) == 0
    assert acl.rt.get_stream_overflow_switch(stream) == (1, 0)
    assert acl.rt.get_stream_overflow_switch(0) == (0, 0)
