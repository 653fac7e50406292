# SPDX-License-Identifier: Apache-2.0
"""acl.rt: last errors, tasks that fail and who is told, aborting, time limits of operators."""
import contextlib
import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import acl

INVALID_PARAM = 100000
INVALID_DEVICE = 107001
DEVICE_ABORTED = 107022
INVALID_HANDLE = 107017
DEVICE_FAULT = 507013
THREAD_LEVEL = 0
MISSING = 0xFFFFFFFF
BAD_IDS = [-1, 8, 2**31 - 1, -(2**31)]
BLOCK_SIZE = 2 * 2**20
LONG = 60000
SIZE = 64
BLOCK = {
    "handleType": 0,
    "allocationType": 0,
    "memAttr": 4,
    "location": {"id": 0, "type": 1},
    "reserve": 0,
}


def on_bare_thread(call, *arguments):
    """What the call answers in a thread that has no context."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call, *arguments).result()


@contextlib.contextmanager
def unraisable_exceptions():
    """Collects what goes to sys.unraisablehook, without keeping the objects."""
    caught = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: caught.append((told.exc_type, str(told.exc_value)))
    try:
        yield caught
    finally:
        sys.unraisablehook = before


@contextlib.contextmanager
def held(stream):
    """Queued tasks of the stream begin only after the block."""
    event, ret = acl.rt.create_event_with_flag(1)
    assert ret == 0
    assert acl.rt.stream_wait_event(stream, event) == 0
    yield
    assert acl.rt.destroy_event(event) == 0


def fail_on(stream):
    """Queues a copy whose mapping is gone when it runs; gives the id of the task."""
    source, ret = acl.rt.malloc_host(SIZE)
    assert ret == 0
    address, ret = acl.rt.reserve_mem_address(BLOCK_SIZE, 0, 0, 0)
    assert ret == 0
    block, ret = acl.rt.malloc_physical(BLOCK_SIZE, BLOCK, 0)
    assert ret == 0
    assert acl.rt.map_mem(address, BLOCK_SIZE, 0, block, 0) == 0
    with held(stream):
        assert acl.rt.memcpy_async(address, SIZE, source, SIZE, 1, stream) == 0
        task, ret = acl.rt.get_thread_last_task_id()
        assert ret == 0
        assert acl.rt.unmap_mem(address) == 0
    assert acl.rt.synchronize_stream(stream) == DEVICE_FAULT
    assert acl.rt.free_physical(block) == 0
    assert acl.rt.release_mem_address(address) == 0
    assert acl.rt.free_host(source) == 0
    return task


@pytest.fixture
def no_callback_afterwards():
    yield
    assert acl.rt.set_exception_info_callback() == 0


# ---- The last error ----


def test_peek_keeps_and_get_clears_the_last_error():
    acl.rt.get_last_error(THREAD_LEVEL)
    assert acl.rt.peek_at_last_error(THREAD_LEVEL) == 0
    assert acl.rt.set_device(-1) == INVALID_DEVICE
    assert acl.rt.peek_at_last_error(THREAD_LEVEL) == INVALID_DEVICE
    assert acl.rt.peek_at_last_error(THREAD_LEVEL) == INVALID_DEVICE
    assert acl.rt.get_last_error(THREAD_LEVEL) == INVALID_DEVICE
    assert acl.rt.get_last_error(THREAD_LEVEL) == 0


def test_argument_errors_and_successes_do_not_change_the_last_error(device):
    assert acl.rt.destroy_stream(1) == INVALID_HANDLE
    assert acl.rt.free(0) == INVALID_PARAM
    assert acl.rt.get_device() == (0, 0)
    with pytest.raises(TypeError):
        acl.rt.set_device("0")
    assert acl.rt.get_last_error(THREAD_LEVEL) == INVALID_HANDLE


@pytest.mark.parametrize("level", [1, -1, 99])
def test_there_is_one_level(level):
    assert acl.rt.set_device(-1) == INVALID_DEVICE
    assert acl.rt.peek_at_last_error(level) == INVALID_PARAM
    assert acl.rt.get_last_error(level) == INVALID_PARAM
    assert acl.rt.get_last_error(THREAD_LEVEL) == INVALID_DEVICE


def test_every_thread_has_its_last_error():
    assert acl.rt.set_device(-1) == INVALID_DEVICE
    assert on_bare_thread(acl.rt.peek_at_last_error, THREAD_LEVEL) == 0
    assert acl.rt.get_last_error(THREAD_LEVEL) == INVALID_DEVICE


# ---- Tasks that fail ----


def test_a_copy_whose_mapping_is_gone_fails_on_its_stream(stream):
    acl.rt.get_last_error(THREAD_LEVEL)
    acl.get_recent_err_msg()
    fail_on(stream)
    assert acl.rt.get_last_error(THREAD_LEVEL) == DEVICE_FAULT
    assert "aclrtSynchronizeStream" in acl.get_recent_err_msg()
    assert acl.rt.synchronize_stream(stream) == 0


def read(info):
    return {
        "task": acl.rt.get_task_id_from_exception_info(info),
        "stream": acl.rt.get_stream_id_from_exception_info(info),
        "thread": acl.rt.get_thread_id_from_exception_info(info),
        "device": acl.rt.get_device_id_from_exception_info(info),
        "code": acl.rt.get_error_code_from_exception_info(info),
    }


def test_the_callback_learns_what_failed_where(stream, no_callback_afterwards):
    told = []
    assert acl.rt.set_exception_info_callback(lambda info: told.append((info, read(info)))) == 0
    task = fail_on(stream)
    assert len(told) == 1
    info, failure = told[0]
    assert type(info) is int and info > 0
    assert failure.pop("thread") != MISSING
    stream_id = acl.rt.stream_get_id(stream)[0]
    assert failure == {"task": task, "stream": stream_id, "device": 0, "code": DEVICE_FAULT}


def test_a_healthy_device_calls_nobody(stream, no_callback_afterwards):
    told = []
    assert acl.rt.set_exception_info_callback(told.append) == 0
    memory, ret = acl.rt.malloc(SIZE, 2)
    assert ret == 0
    assert acl.rt.memset_async(memory, SIZE, 1, SIZE, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.memset_async(memory, SIZE, 1, SIZE + 1, stream) != 0
    assert acl.rt.synchronize_device() == 0
    assert acl.rt.free(memory) == 0
    assert told == []


@pytest.mark.parametrize("removal", [(), (None,)])
def test_the_callback_is_replaced_and_removed(stream, removal):
    first, second = [], []
    assert acl.rt.set_exception_info_callback(first.append) == 0
    assert acl.rt.set_exception_info_callback(second.append) == 0
    fail_on(stream)
    assert (len(first), len(second)) == (0, 1)
    assert acl.rt.set_exception_info_callback(*removal) == 0
    fail_on(stream)
    assert (len(first), len(second)) == (0, 1)
    assert acl.rt.set_exception_info_callback(*removal) == 0


def test_a_refused_callback_leaves_the_old_one(stream, no_callback_afterwards):
    told = []
    assert acl.rt.set_exception_info_callback(told.append) == 0
    with pytest.raises(TypeError, match="parameter must be callable"):
        acl.rt.set_exception_info_callback(1)
    fail_on(stream)
    assert len(told) == 1


def test_an_exception_in_the_callback_is_unraisable(stream, no_callback_afterwards):
    def fail(info):
        raise ValueError("of a callback")

    assert acl.rt.set_exception_info_callback(fail) == 0
    with unraisable_exceptions() as caught:
        fail_on(stream)
    assert caught == [(ValueError, "of a callback")]
    assert acl.rt.synchronize_stream(stream) == 0


def test_the_callback_lives_while_it_is_set():
    def callback(info):
        pass

    watch = weakref.ref(callback)
    assert acl.rt.set_exception_info_callback(callback) == 0
    del callback
    gc.collect()
    assert watch() is not None
    assert acl.rt.set_exception_info_callback() == 0
    gc.collect()
    assert watch() is None


def test_no_info_reads_as_missing():
    assert set(read(0).values()) == {MISSING}


@pytest.mark.parametrize("moment", ["never", "at the end"])
def test_the_program_ends_with_a_callback_set(fresh, moment):
    printed = fresh(
        """
        import sys
        import threading
        import acl
        assert acl.rt.set_device(0) == 0
        stream, held = [acl.rt.create_stream()[0] for _ in range(2)]
        for waiting in (stream, held):
            event = acl.rt.create_event_with_flag(1)[0]
            assert acl.rt.stream_wait_event(waiting, event) == 0
            opener = opener if waiting == held else event
        called = threading.Event()

        def compute(info):
            called.set()
            while True:
                pass

        class Last:
            # Goes when the interpreter is nearly gone, and gives the others a chance to run.
            def __del__(self, wait=acl.rt.synchronize_stream_with_timeout, stream=held):
                wait(stream, 500)

        sys.last = Last()
        assert acl.rt.set_exception_info_callback(compute) == 0
        memory = acl.rt.malloc(64, 2)[0]
        assert acl.rt.memset_async(memory, 64, 1, 64, stream) == 0
        assert acl.rt.free(memory) == 0
        if sys.argv[1] != "never":
            assert acl.rt.record_event(opener, 0) == 0
            called.wait()
        print("end")
        """,
        moment,
    )
    assert printed.split() == ["end"]


# ---- Ids of tasks ----


def test_the_last_task_id_rises_with_the_tasks(stream):
    before = 0
    memory, ret = acl.rt.malloc(SIZE, 2)
    assert ret == 0
    for _ in range(10):
        assert acl.rt.memset_async(memory, SIZE, 1, SIZE, stream) == 0
        task, ret = acl.rt.get_thread_last_task_id()
        assert ret == 0 and task > before
        before = task
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.get_thread_last_task_id() == (before, 0)
    assert acl.rt.free(memory) == 0


def test_a_thread_that_queued_nothing_has_no_last_task(stream):
    assert on_bare_thread(acl.rt.get_thread_last_task_id)[0] == 0


# ---- Aborting ----


def test_an_abort_drops_the_tasks_of_the_device(stream):
    memory, ret = acl.rt.malloc(SIZE, 2)
    assert ret == 0
    assert acl.rt.memset(memory, SIZE, 1, SIZE) == 0
    with held(stream):
        assert acl.rt.memset_async(memory, SIZE, 2, SIZE, stream) == 0
        assert acl.rt.device_task_abort(0, LONG) == 0
        assert acl.rt.stream_query(stream) == (0, 0)
    assert acl.rt.synchronize_stream(stream) == 0
    copy = bytes(SIZE)
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(copy), SIZE, memory, SIZE, 2) == 0
    assert copy == b"\x01" * SIZE
    assert acl.rt.free(memory) == 0


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_unknown_devices_are_not_aborted(stream, bad_id):
    with held(stream):
        assert acl.rt.device_task_abort(bad_id, 0) != 0
        assert acl.rt.stream_query(stream) == (1, 0)
    assert acl.rt.synchronize_stream(stream) == 0


def test_a_waiting_thread_learns_of_the_abort(stream):
    context = acl.rt.get_context()[0]

    def wait():
        assert acl.rt.set_context(context) == 0
        return acl.rt.synchronize_stream(stream)

    # An abort that comes before the wait meets nothing; then all of it again.
    for _ in range(1000):
        with held(stream), ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(wait)
            acl.rt.synchronize_stream_with_timeout(stream, 1)
            assert acl.rt.device_task_abort(0, 0) == 0
            answer = waiting.result()
        if answer != 0:
            break
    assert answer == DEVICE_ABORTED


# ---- Time limits of operators ----


def test_time_limits_are_stored_in_their_units(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        assert acl.rt.set_op_execute_time_out(10) == 0
        assert acl.rt.get_op_execute_timeout() == (10000, 0)
        actual, ret = acl.rt.set_op_execute_timeout_v2(20_000_000)
        assert ret == 0 and actual >= 20_000_000
        assert acl.rt.get_op_execute_timeout() == (actual // 1000, 0)
        interval, ret = acl.rt.get_op_timeout_interval()
        assert ret == 0 and interval > 0
        """
    )


def test_a_limit_out_of_range_changes_nothing(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        assert acl.rt.set_op_execute_time_out(10) == 0
        for call in (lambda: acl.rt.set_op_execute_time_out(2**32),
                     lambda: acl.rt.set_op_wait_timeout(-1)):
            try:
                call()
            except OverflowError:
                continue
            raise SystemExit("not refused")
        assert acl.rt.get_op_execute_timeout() == (10000, 0)
        """
    )
