# SPDX-License-Identifier: Apache-2.0
"""acl.rt: events: recording, asking, waiting, time. Three queries, two of them with 0 for done."""
import pytest

import acl
from support import (
    EVENT_SYNC_TIMEOUT, INVALID_HANDLE, INVALID_PARAM, LONG, NEVER_RECORDED, NORMAL_ONLY,
    NOT_SUPPORTED, NO_CONTEXT, NO_TIME, RT_PARAM_INVALID, SYNC, TIME_REVERSED, on_bare_thread,
    opened_by_another_thread, read, refused_with,
)

CAPTURE, TIME_LINE, IPC = 2, 8, 0x40
SIZE = 64


@pytest.fixture
def create(device):
    """create(function, *arguments) gives an event that ends with the test."""
    events = []

    def create(function, *arguments):
        event, ret = function(*arguments)
        assert ret == 0 and event > 0
        events.append(event)
        return event

    yield create
    for event in events:
        assert acl.rt.destroy_event(event) == 0


@pytest.fixture
def event(create):
    """A classic event with every flag."""
    return create(acl.rt.create_event)


def record_and_reach(event, stream=0):
    assert acl.rt.record_event(event, stream) == 0
    assert acl.rt.synchronize_event(event) == 0


# Each refuses an event in the same way; the answer is a status, or ends with one.
CALLS_ON_AN_EVENT = [
    lambda event: acl.rt.destroy_event(event),
    lambda event: acl.rt.record_event(event, 0),
    lambda event: acl.rt.reset_event(event, 0),
    lambda event: acl.rt.query_event(event),
    lambda event: acl.rt.query_event_status(event),
    lambda event: acl.rt.query_event_wait_status(event),
    lambda event: acl.rt.synchronize_event(event),
    lambda event: acl.rt.synchronize_event_with_timeout(event, LONG),
    lambda event: acl.rt.event_elapsed_time(event, event),
    lambda event: acl.rt.stream_wait_event(0, event),
    lambda event: acl.rt.event_get_timestamp(event),
    lambda event: acl.rt.get_event_id(event),
]


# ---- Creation ----


@pytest.mark.parametrize("flag", [SYNC, CAPTURE, TIME_LINE, SYNC | CAPTURE | TIME_LINE])
def test_both_families_take_the_three_flags(create, flag):
    for function in (acl.rt.create_event_with_flag, acl.rt.create_event_ex_with_flag):
        record_and_reach(create(function, flag))


@pytest.mark.parametrize("flag", [0, 4, 0x80, 0x30, 2**32 - 1])
def test_unknown_flags_are_refused(device, flag):
    count = acl.rt.get_event_avail_num()
    assert acl.rt.create_event_with_flag(flag) == (0, RT_PARAM_INVALID)
    assert acl.rt.create_event_ex_with_flag(flag) == (0, RT_PARAM_INVALID)
    assert acl.rt.get_event_avail_num() == count


def test_ipc_is_a_flag_of_ex_events_alone(create):
    create(acl.rt.create_event_ex_with_flag, IPC)
    assert acl.rt.create_event_ex_with_flag(IPC | SYNC) == (0, RT_PARAM_INVALID)
    assert acl.rt.create_event_with_flag(IPC) == (0, RT_PARAM_INVALID)


def test_creating_needs_a_context():
    assert on_bare_thread(acl.rt.create_event) == (0, NO_CONTEXT)
    assert on_bare_thread(acl.rt.create_event_with_flag, SYNC) == (0, NO_CONTEXT)
    assert on_bare_thread(acl.rt.create_event_ex_with_flag, SYNC) == (0, NO_CONTEXT)
    assert on_bare_thread(acl.rt.get_event_avail_num) == (0, NO_CONTEXT)


def test_events_are_counted(device):
    count, ret = acl.rt.get_event_avail_num()
    assert ret == 0 and count > 0
    event = acl.rt.create_event_with_flag(SYNC)[0]
    assert acl.rt.get_event_avail_num() == (count - 1, 0)
    assert acl.rt.destroy_event(event) == 0
    assert acl.rt.get_event_avail_num() == (count, 0)


def test_ids_tell_events_apart(create):
    answers = [acl.rt.get_event_id(create(acl.rt.create_event)) for _ in range(5)]
    assert all(ret == 0 for _, ret in answers)
    assert len(set(answers)) == 5


@pytest.mark.parametrize("call", CALLS_ON_AN_EVENT)
def test_no_event_is_refused(device, call):
    assert refused_with(INVALID_PARAM, call(0))


@pytest.mark.parametrize("call", CALLS_ON_AN_EVENT)
def test_a_destroyed_event_is_refused(device, call):
    event = acl.rt.create_event()[0]
    assert acl.rt.destroy_event(event) == 0
    assert refused_with(INVALID_HANDLE, call(event))


@pytest.mark.parametrize("call", CALLS_ON_AN_EVENT)
@pytest.mark.parametrize("invented", [1, 0xDEAD0000, 2**64 - 1])
def test_an_invented_event_is_refused(device, call, invented):
    assert refused_with(INVALID_HANDLE, call(invented))


# ---- Recording and asking ----


def test_the_three_queries_follow_the_captured_tasks(stream, event, gate):
    assert acl.rt.record_event(event, stream) == 0
    assert acl.rt.query_event(event) == (1, 0)
    assert acl.rt.query_event_status(event) == (0, 0)
    gate.open()
    assert acl.rt.synchronize_event(event) == 0
    assert acl.rt.query_event(event) == (0, 0)
    assert acl.rt.query_event_status(event) == (1, 0)


def test_the_wait_status_follows_the_waits(stream, event, gate):
    assert acl.rt.query_event_wait_status(event) == (0, 0)
    record_and_reach(event)
    other, ret = acl.rt.create_stream()
    assert ret == 0
    assert acl.rt.record_event(event, stream) == 0
    assert acl.rt.stream_wait_event(other, event) == 0
    assert acl.rt.query_event_wait_status(event) == (1, 0)
    gate.open()
    assert acl.rt.synchronize_stream(other) == 0
    assert acl.rt.query_event_wait_status(event) == (0, 0)
    assert acl.rt.destroy_stream(other) == 0


def test_before_the_first_record_ex_is_complete_and_classic_is_not(create):
    assert acl.rt.query_event_status(create(acl.rt.create_event_ex_with_flag, SYNC)) == (1, 0)
    assert acl.rt.query_event_status(create(acl.rt.create_event_with_flag, SYNC)) == (0, 0)


def test_the_old_queries_do_not_know_ex_events(create):
    event = create(acl.rt.create_event_ex_with_flag, SYNC)
    assert acl.rt.query_event(event) == (0, NOT_SUPPORTED)
    assert acl.rt.query_event_wait_status(event) == (0, NOT_SUPPORTED)


def test_a_reset_event_is_as_before_its_record(create, stream):
    event = create(acl.rt.create_event_with_flag, SYNC)
    record_and_reach(event, stream)
    assert acl.rt.query_event_status(event) == (1, 0)
    assert acl.rt.reset_event(event, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.query_event_status(event) == (0, 0)


def test_ex_events_and_those_without_sync_cannot_be_reset(create, stream):
    for event in (
        create(acl.rt.create_event_ex_with_flag, SYNC),
        create(acl.rt.create_event_with_flag, TIME_LINE),
    ):
        record_and_reach(event, stream)
        assert acl.rt.reset_event(event, stream) == NOT_SUPPORTED
        assert acl.rt.query_event_status(event) == (1, 0)


def test_record_and_reset_take_the_event_first(stream, event):
    assert acl.rt.record_event(stream, event) == INVALID_HANDLE
    assert acl.rt.reset_event(stream, event) == INVALID_HANDLE
    assert acl.rt.stream_wait_event(event, stream) == INVALID_HANDLE


# ---- Waiting ----


def test_a_stream_waits_for_the_event_of_another(stream, event, gate):
    memory, ret = acl.rt.malloc(SIZE, NORMAL_ONLY)
    assert ret == 0
    waiter = acl.rt.create_stream()[0]
    assert acl.rt.memset_async(memory, SIZE, 1, SIZE, stream) == 0
    assert acl.rt.record_event(event, stream) == 0
    assert acl.rt.stream_wait_event(waiter, event) == 0
    assert acl.rt.memset_async(memory, SIZE, 2, SIZE, waiter) == 0
    assert acl.rt.stream_query(waiter) == (1, 0)
    gate.open()
    assert acl.rt.synchronize_stream(waiter) == 0
    assert read(memory, SIZE) == b"\x02" * SIZE
    assert acl.rt.destroy_stream(waiter) == 0
    assert acl.rt.free(memory) == 0


def test_an_event_never_recorded_is_not_waited_for(event):
    assert acl.rt.synchronize_event(event) == 0
    assert acl.rt.synchronize_event_with_timeout(event, LONG) == 0


def test_a_classic_event_without_sync_must_be_recorded_first(create, stream):
    event = create(acl.rt.create_event_with_flag, TIME_LINE)
    assert acl.rt.stream_wait_event(stream, event) in (RT_PARAM_INVALID, NOT_SUPPORTED)
    assert acl.rt.stream_query(stream) == (0, 0)


def test_when_the_time_is_over_the_event_is_still_pending(stream, event, gate):
    assert acl.rt.record_event(event, stream) == 0
    assert acl.rt.synchronize_event_with_timeout(event, 1) == EVENT_SYNC_TIMEOUT
    assert acl.rt.query_event_status(event) == (0, 0)
    gate.open()
    assert acl.rt.synchronize_event_with_timeout(event, LONG) == 0
    assert acl.rt.synchronize_event_with_timeout(event, -1) == 0
    assert acl.rt.query_event_status(event) == (1, 0)


@pytest.mark.parametrize("timeout", [0, -2, -(2**31)])
def test_bad_limits_are_refused(event, timeout):
    assert acl.rt.synchronize_event_with_timeout(event, timeout) == RT_PARAM_INVALID


def test_other_threads_run_while_one_waits_for_an_event(stream, event, gate):
    assert acl.rt.record_event(event, stream) == 0
    with opened_by_another_thread(gate):
        assert acl.rt.synchronize_event(event) == 0


def test_the_limit_of_queued_waits_is_seconds(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        stream = acl.rt.create_stream()[0]
        event = acl.rt.create_event_with_flag(1)[0]
        assert acl.rt.set_op_wait_timeout(1) == 0
        assert acl.rt.stream_wait_event(stream, event) == 0
        assert acl.rt.synchronize_stream(stream) == 107020
        assert acl.rt.set_op_wait_timeout(0) == 0
        assert acl.rt.stream_wait_event(stream, event) == 0
        assert acl.rt.synchronize_stream_with_timeout(stream, 1) == 507046
        assert acl.rt.record_event(event, 0) == 0
        assert acl.rt.synchronize_stream(stream) == 0
        """
    )


# ---- Time ----


def test_elapsed_time_agrees_with_the_timestamps(create):
    start, end = create(acl.rt.create_event), create(acl.rt.create_event)
    record_and_reach(start)
    record_and_reach(end)
    first, ret = acl.rt.event_get_timestamp(start)
    assert ret == 0 and type(first) is int and first > 0
    last, ret = acl.rt.event_get_timestamp(end)
    assert ret == 0 and last >= first
    elapsed, ret = acl.rt.event_elapsed_time(start, end)
    assert ret == 0 and type(elapsed) is float
    assert elapsed == pytest.approx((last - first) / 1000, rel=1e-5, abs=0.002)
    assert acl.rt.event_elapsed_time(start, start) == (0.0, 0)


def test_an_end_before_its_start_is_refused(create):
    earlier, later = create(acl.rt.create_event), create(acl.rt.create_event)
    record_and_reach(earlier)
    before = acl.rt.event_get_timestamp(earlier)
    record_and_reach(later)
    while acl.rt.event_get_timestamp(later) == before:
        record_and_reach(later)
    assert acl.rt.event_elapsed_time(later, earlier) == (0.0, TIME_REVERSED)


def test_an_event_without_time_line_has_no_time(create):
    event = create(acl.rt.create_event_ex_with_flag, SYNC)
    record_and_reach(event)
    assert acl.rt.event_get_timestamp(event) == (0, NO_TIME)
    elapsed, ret = acl.rt.event_elapsed_time(event, event)
    assert ret == NO_TIME and type(elapsed) is float and elapsed == 0.0


def test_an_event_never_recorded_has_no_time(event):
    assert acl.rt.event_get_timestamp(event) == (0, NEVER_RECORDED)
    assert acl.rt.event_elapsed_time(event, event) == (0.0, NEVER_RECORDED)


def test_an_event_not_yet_reached_has_no_time(stream, event, gate):
    assert acl.rt.record_event(event, stream) == 0
    assert acl.rt.event_get_timestamp(event) == (0, NO_TIME)
    assert acl.rt.event_elapsed_time(event, event) == (0.0, NO_TIME)
