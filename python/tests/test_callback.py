# SPDX-License-Identifier: Apache-2.0
"""acl.rt: callbacks of streams, served by threads of Python and of acl.util."""
import contextlib
import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import acl
from support import (
    INVALID_DEVICE, INVALID_HANDLE, INVALID_PARAM, LONG, NOBODY_SERVES, NOTHING_CAME,
    RT_PARAM_INVALID, STREAM_SUBSCRIBE, STREAM_SYNC_TIMEOUT, THREAD_SUBSCRIBE, Data,
    unraisable_exceptions,
)

NO_BLOCK, BLOCK = 0, 1


def start_python_thread(function, arguments):
    thread = threading.Thread(target=function, args=(arguments,))
    thread.start()
    return thread.ident, thread.join


def start_native_thread(function, arguments):
    thread_id, ret = acl.util.start_thread(function, arguments)
    assert ret == 0

    def join():
        assert acl.util.stop_thread(thread_id) == 0

    return thread_id, join


both_kinds_of_threads = pytest.mark.parametrize("start", [start_python_thread, start_native_thread])


@pytest.fixture
def served(stream):
    """A stream whose callbacks this thread serves."""
    assert acl.rt.subscribe_report(threading.get_ident(), stream) == 0
    yield stream
    assert acl.rt.unsubscribe_report(threading.get_ident(), stream) == 0


def serve_when_told(arguments):
    """Body of a thread: serves as many callbacks as asked for, and notes the answers."""
    context, subscribed, count, answers = arguments
    answers.append(acl.rt.set_context(context))
    assert subscribed.wait(LONG / 1000)
    for _ in range(count):
        answers.append(acl.rt.process_report(LONG))


@contextlib.contextmanager
def served_by(start, streams, count):
    """A thread that serves the streams; it has ended, and all went well, when the block is left."""
    subscribed, answers = threading.Event(), []
    given = [acl.rt.get_context()[0], subscribed, count, answers]
    thread_id, join = start(serve_when_told, given)
    for stream in streams:
        assert acl.rt.subscribe_report(thread_id, stream) == 0
    subscribed.set()
    yield thread_id
    join()
    assert answers == [0] * (count + 1)
    for stream in streams:
        assert acl.rt.unsubscribe_report(thread_id, stream) == 0


# ---- What runs, where and when ----


@pytest.mark.parametrize("block", [NO_BLOCK, BLOCK])
def test_fn_gets_the_list_itself_in_the_subscribed_thread(served, block):
    data, seen = ["first"], []
    assert acl.rt.launch_callback(seen.append, data, block, served) == 0
    assert seen == []
    assert acl.rt.process_report(LONG) == 0
    assert len(seen) == 1 and seen[0] is data
    assert acl.rt.process_report(1) == NOTHING_CAME


def test_later_tasks_wait_for_a_blocking_callback(served):
    data = []
    assert acl.rt.launch_callback(lambda given: given.append(1), data, BLOCK, served) == 0
    assert acl.rt.synchronize_stream_with_timeout(served, 1) == STREAM_SYNC_TIMEOUT
    assert data == []
    assert acl.rt.process_report(LONG) == 0
    assert acl.rt.synchronize_stream(served) == 0
    assert data == [1]


def test_later_tasks_do_not_wait_for_another_one(served):
    data = []
    assert acl.rt.launch_callback(lambda given: given.append(1), data, NO_BLOCK, served) == 0
    assert acl.rt.synchronize_stream(served) == 0
    assert data == []
    assert acl.rt.process_report(LONG) == 0
    assert data == [1]


def test_one_report_is_one_callback_in_stream_order(served):
    seen = []
    for number in range(20):
        assert acl.rt.launch_callback(seen.append, [number], number % 2, served) == 0
    for expected in range(20):
        assert acl.rt.process_report(LONG) == 0
        assert len(seen) == expected + 1
    assert seen == [[number] for number in range(20)]


@both_kinds_of_threads
def test_a_thread_serves_while_another_waits_for_the_stream(stream, start):
    def note_thread(given):
        given.append(threading.get_ident())

    ran_in = []
    with served_by(start, [stream], 50) as thread_id:
        for number in range(50):
            assert acl.rt.launch_callback(note_thread, ran_in, number % 2, stream) == 0
        assert acl.rt.synchronize_stream(stream) == 0
    assert ran_in == [thread_id] * 50


@both_kinds_of_threads
def test_one_thread_serves_several_streams_and_stream_0(device, start):
    streams = [acl.rt.create_stream()[0] for _ in range(3)] + [0]
    seen = []
    with served_by(start, streams, len(streams)):
        for stream in streams:
            assert acl.rt.launch_callback(seen.append, [stream], BLOCK, stream) == 0
        for stream in streams:
            assert acl.rt.synchronize_stream(stream) == 0
    assert sorted(seen) == sorted([stream] for stream in streams)
    for stream in streams[:-1]:
        assert acl.rt.destroy_stream(stream) == 0


def test_a_report_without_limit_waits_for_a_callback(served):
    context, seen = acl.rt.get_context()[0], []

    def launch():
        assert acl.rt.set_context(context) == 0
        return acl.rt.launch_callback(seen.append, [], BLOCK, served)

    with ThreadPoolExecutor(1) as threads:
        launching = threads.submit(launch)
        assert acl.rt.process_report(-1) == 0
        assert launching.result() == 0
    assert seen == [[]]


def test_a_callback_may_ask_the_runtime(served):
    answers = []

    def ask(event):
        answers.append(acl.rt.get_device())
        answers.append(acl.rt.stream_query(served))
        answers.append(acl.rt.query_event_status(event[0]))
        answers.append(acl.rt.set_device(-1))

    event = acl.rt.create_event()[0]
    assert acl.rt.launch_callback(ask, [event], BLOCK, served) == 0
    assert acl.rt.record_event(event, served) == 0
    assert acl.rt.process_report(LONG) == 0
    assert answers == [(0, 0), (1, 0), (0, 0), INVALID_DEVICE]
    assert acl.rt.synchronize_stream(served) == 0
    assert acl.rt.destroy_event(event) == 0


def test_a_callback_that_was_sent_outlives_its_stream(device):
    own, seen = threading.get_ident(), []
    stream = acl.rt.create_stream()[0]
    assert acl.rt.subscribe_report(own, stream) == 0
    assert acl.rt.launch_callback(seen.append, ["sent"], NO_BLOCK, stream) == 0
    assert acl.rt.destroy_stream(stream) == 0
    assert seen == []
    assert acl.rt.process_report(LONG) == 0
    assert seen == [["sent"]]


# ---- Exceptions ----


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("block", [NO_BLOCK, BLOCK])
def test_an_exception_is_unraisable_and_the_stream_goes_on(served, block, error):
    def fail(data):
        raise error(data[0])

    seen = []
    assert acl.rt.launch_callback(fail, ["of a callback"], block, served) == 0
    assert acl.rt.launch_callback(seen.append, [], block, served) == 0
    with unraisable_exceptions() as caught:
        assert acl.rt.process_report(LONG) == 0
        assert acl.rt.process_report(LONG) == 0
    assert caught == [(error, "of a callback")]
    assert seen == [[]]
    assert acl.rt.synchronize_stream(served) == 0


# ---- References ----


def test_function_and_list_live_until_the_callback_ran(served):
    seen = []

    def callback(data):
        seen.append(len(data))

    data = Data([1, 2, 3])
    watched = [weakref.ref(callback), weakref.ref(data)]
    assert acl.rt.launch_callback(callback, data, BLOCK, served) == 0
    del callback, data
    gc.collect()
    assert all(watch() is not None for watch in watched)
    assert acl.rt.process_report(LONG) == 0
    assert seen == [3]
    gc.collect()
    assert [watch() for watch in watched] == [None, None]


def test_references_are_given_back_whatever_happens(served):
    def callback(data):
        raise ValueError

    data = []
    before = sys.getrefcount(callback), sys.getrefcount(data)
    with unraisable_exceptions():
        for block in (NO_BLOCK, BLOCK):
            for _ in range(10):
                assert acl.rt.launch_callback(callback, data, block, served) == 0
                assert acl.rt.process_report(LONG) == 0
    assert acl.rt.launch_callback(callback, data, 2, served) == INVALID_PARAM
    assert acl.rt.launch_callback(callback, data, BLOCK, 0) == NOBODY_SERVES
    assert acl.rt.launch_callback(callback, data, BLOCK, 1) == INVALID_HANDLE
    assert (sys.getrefcount(callback), sys.getrefcount(data)) == before


@pytest.mark.parametrize(
    "drop",
    [
        lambda stream: acl.rt.unsubscribe_report(threading.get_ident(), stream),
        lambda stream: acl.rt.stream_abort(stream),
        lambda stream: acl.rt.device_task_abort(0, LONG),
        lambda stream: 0,
    ],
    ids=["unsubscribed", "stream aborted", "device aborted", "destroyed by force"],
)
def test_references_of_dropped_callbacks_end_with_the_stream(device, drop):
    stream = acl.rt.create_stream()[0]
    watched = launch_two(stream)
    assert drop(stream) == 0
    assert acl.rt.destroy_stream_force(stream) == 0
    assert are_gone(watched)


def launch_two(stream):
    """Launches callbacks that no thread serves yet; weak references to their lists."""
    assert acl.rt.subscribe_report(threading.get_ident(), stream) == 0
    lists = [Data(), Data()]
    for block, data in enumerate(lists):
        assert acl.rt.launch_callback(print, data, block, stream) == 0
    return [weakref.ref(data) for data in lists]


def are_gone(watched):
    gc.collect()
    return all(watch() is None for watch in watched)


def test_references_end_when_their_callbacks_are_dropped(stream):
    watched = launch_two(stream)
    assert not are_gone(watched)
    assert acl.rt.stream_abort(stream) == 0
    assert are_gone(watched)
    assert acl.rt.unsubscribe_report(threading.get_ident(), stream) == 0
    watched = launch_two(stream)
    assert acl.rt.unsubscribe_report(threading.get_ident(), stream) == 0
    acl.rt.synchronize_stream(stream)
    assert acl.rt.stream_abort(0) == 0  # any call that drops tasks looks after all of them
    assert are_gone(watched)


@pytest.mark.parametrize(
    "end", ["reset_device_force(0)", "finalize()", "finalize_reference()[1]"]
)
def test_references_end_with_the_device(fresh, end):
    fresh(
        """
        import gc, sys, threading, weakref
        import acl

        class Data(list):
            pass

        assert acl.init() == 0 and acl.rt.set_device(0) == 0
        stream = acl.rt.create_stream()[0]
        assert acl.rt.subscribe_report(threading.get_ident(), stream) == 0
        data = Data()
        assert acl.rt.launch_callback(print, data, 1, stream) == 0
        watch = weakref.ref(data)
        del data
        call = "acl.rt." if sys.argv[1].startswith("reset") else "acl."
        assert eval(call + sys.argv[1]) == 0
        gc.collect()
        assert watch() is None
        """,
        end,
    )


# ---- What is refused ----


@pytest.mark.parametrize("block", [2, -1, 2**31 - 1])
def test_unknown_block_types_are_refused(served, block):
    assert acl.rt.launch_callback(print, [], block, served) == INVALID_PARAM
    assert acl.rt.process_report(1) == NOTHING_CAME


def test_a_stream_that_nobody_serves_launches_nothing(stream):
    for unserved in (stream, 0):
        assert acl.rt.launch_callback(print, [], BLOCK, unserved) == NOBODY_SERVES
        assert acl.rt.stream_query(unserved) == (0, 0)


def test_a_stream_has_one_thread(served):
    own = threading.get_ident()
    assert acl.rt.subscribe_report(own, served) == STREAM_SUBSCRIBE
    assert acl.rt.subscribe_report(own + 1, served) == RT_PARAM_INVALID
    assert acl.rt.unsubscribe_report(own + 1, served) == THREAD_SUBSCRIBE


def test_what_was_not_subscribed_cannot_be_ended(stream):
    assert acl.rt.unsubscribe_report(threading.get_ident(), stream) == STREAM_SUBSCRIBE
    assert acl.rt.unsubscribe_report(threading.get_ident(), 0) == STREAM_SUBSCRIBE


@pytest.mark.parametrize("timeout", [0, -2, -(2**31)])
def test_bad_limits_are_refused(served, timeout):
    assert acl.rt.process_report(timeout) == INVALID_PARAM


def test_a_thread_that_serves_nothing_gets_no_report(device):
    assert acl.rt.process_report(1) == THREAD_SUBSCRIBE


def test_an_unsubscribed_stream_is_as_before(stream):
    own = threading.get_ident()
    for _ in range(3):
        assert acl.rt.subscribe_report(own, stream) == 0
        assert acl.rt.unsubscribe_report(own, stream) == 0
        assert acl.rt.launch_callback(print, [], BLOCK, stream) == NOBODY_SERVES
        assert acl.rt.process_report(1) == THREAD_SUBSCRIBE
