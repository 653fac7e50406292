# SPDX-License-Identifier: Apache-2.0
"""acl.rt: last errors, tasks that fail and their callbacks, aborting, time limits of operators."""
import gc
import weakref

import pytest

import acl
from support import (
    BAD_IDS, BLOCK, DEVICE_ABORTED, DEVICE_FAULT, HOST_TO_DEVICE, INVALID_DEVICE, INVALID_HANDLE,
    INVALID_PARAM, LONG, NORMAL_ONLY, Gate, on_bare_thread, prop, read, unraisable_exceptions,
    wait_ended_by,
)

THREAD_LEVEL = 0
MISSING = 0xFFFFFFFF
SIZE = 64


def fail_on(stream):
    """Queues a copy whose mapping is gone when it runs; gives the id of the task."""
    source, ret = acl.rt.malloc_host(SIZE)
    assert ret == 0
    address, ret = acl.rt.reserve_mem_address(BLOCK, 0, 0, 0)
    assert ret == 0
    block, ret = acl.rt.malloc_physical(BLOCK, prop(), 0)
    assert ret == 0
    assert acl.rt.map_mem(address, BLOCK, 0, block, 0) == 0
    with Gate(stream):
        assert acl.rt.memcpy_async(address, SIZE, source, SIZE, HOST_TO_DEVICE, stream) == 0
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


def details(info):
    return {
        "task": acl.rt.get_task_id_from_exception_info(info),
        "stream": acl.rt.get_stream_id_from_exception_info(info),
        "thread": acl.rt.get_thread_id_from_exception_info(info),
        "device": acl.rt.get_device_id_from_exception_info(info),
        "code": acl.rt.get_error_code_from_exception_info(info),
    }


def test_the_callback_learns_what_failed_where(stream, no_callback_afterwards):
    told = []
    assert acl.rt.set_exception_info_callback(lambda info: told.append((info, details(info)))) == 0
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
    memory, ret = acl.rt.malloc(SIZE, NORMAL_ONLY)
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
    assert set(details(0).values()) == {MISSING}


# ---- Ids of tasks ----


def test_the_last_task_id_rises_with_the_tasks(stream):
    before = 0
    memory, ret = acl.rt.malloc(SIZE, NORMAL_ONLY)
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
    memory, ret = acl.rt.malloc(SIZE, NORMAL_ONLY)
    assert ret == 0
    assert acl.rt.memset(memory, SIZE, 1, SIZE) == 0
    with Gate(stream):
        assert acl.rt.memset_async(memory, SIZE, 2, SIZE, stream) == 0
        assert acl.rt.device_task_abort(0, LONG) == 0
        assert acl.rt.stream_query(stream) == (0, 0)
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(memory, SIZE) == b"\x01" * SIZE
    assert acl.rt.free(memory) == 0


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_unknown_devices_are_not_aborted(stream, bad_id):
    with Gate(stream):
        assert acl.rt.device_task_abort(bad_id, 0) != 0
        assert acl.rt.stream_query(stream) == (1, 0)
    assert acl.rt.synchronize_stream(stream) == 0


def test_a_waiting_thread_learns_of_the_abort(stream):
    answer = wait_ended_by(lambda: acl.rt.device_task_abort(0, 0), stream)
    assert answer == DEVICE_ABORTED


# ---- Time limits of operators ----


def test_time_limits_are_stored_in_their_units(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        interval, ret = acl.rt.get_op_timeout_interval()
        assert ret == 0 and interval > 0
        assert acl.rt.set_op_execute_time_out(10) == 0
        steps = -(-10_000_000 // interval)
        assert acl.rt.get_op_execute_timeout() == (steps * interval // 1000, 0)
        actual, ret = acl.rt.set_op_execute_timeout_v2(20_000_000)
        assert ret == 0 and actual >= 20_000_000 and actual % interval == 0
        assert acl.rt.get_op_execute_timeout() == (actual // 1000, 0)
        """
    )


def test_a_limit_out_of_range_changes_nothing(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        assert acl.rt.set_op_execute_time_out(10) == 0
        before = acl.rt.get_op_execute_timeout()
        for call in (lambda: acl.rt.set_op_execute_time_out(2**32),
                     lambda: acl.rt.set_op_wait_timeout(-1)):
            try:
                call()
            except OverflowError:
                continue
            raise SystemExit("not refused")
        assert acl.rt.get_op_execute_timeout() == before
        """
    )
