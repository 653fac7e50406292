# SPDX-License-Identifier: Apache-2.0
"""understudy run --check=order: uses of the same bytes that nothing puts in order are told by both
lines, programs that wait run in silence.

Each wrong body has its lines marked /*first*/ and /*second*/; the right one has what was missing.
"""

import signal

import pytest
from conftest import BUILD
from test_check import FOUND, check, line_of  # noqa: F401  (check is a fixture)

BEFORE = """
  aclrtStream one = NULL, two = NULL;
  aclrtEvent event = NULL;
  aclrtNotify notify = NULL;
  char *memory = NULL, *other = NULL;
  void* host = NULL;
  aclrtCreateStream(&one);
  aclrtCreateStream(&two);
  aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC);
  aclrtCreateNotify(&notify, 0);
  aclrtMalloc((void**)&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&other, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMallocHost(&host, 4 * MIB);
"""
AFTER = """
  aclrtSynchronizeDevice();
  aclrtFreeHost(host);
  aclrtFree(other);
  aclrtFree(memory);
  aclrtDestroyNotify(notify);
  aclrtDestroyEvent(event);
  aclrtDestroyStream(two);
  aclrtDestroyStream(one);
"""
SET = "aclrtMemsetAsync(memory, MIB, 1, MIB, one); /*first*/"
COPY = ("aclrtMemcpyAsync(other, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, two); /*second*/")

# name: (lines, where each that begins with + is left out of the wrong program)
PROGRAMS = {
    "read_behind_write": [SET, "+aclrtRecordEvent(event, one);", "+aclrtStreamWaitEvent(two, event);",
                          COPY],
    "write_behind_write": [SET, "+aclrtRecordEvent(event, one);",
                           "+aclrtStreamWaitEvent(two, event);",
                           "aclrtMemsetAsync(memory + 4096, 64, 2, 64, two); /*second*/"],
    "write_behind_read": [
        "aclrtMemcpyAsync(host, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_HOST, one); /*first*/",
        "+aclrtRecordEvent(event, one);", "+aclrtStreamWaitEvent(two, event);",
        "aclrtMemsetAsync(memory, MIB, 2, MIB, two); /*second*/"],
    "the_record_is_too_early": [
        "+", "aclrtRecordEvent(event, one);", SET, "+aclrtRecordEvent(event, one);",
        "aclrtStreamWaitEvent(two, event);", COPY],
    "notify": [SET, "+aclrtRecordNotify(notify, one);", "+aclrtWaitAndResetNotify(notify, two, 0);",
               COPY],
    "host_buffer_is_written_again": [
        "aclrtMemcpyAsync(memory, MIB, host, MIB, ACL_MEMCPY_HOST_TO_DEVICE, one); /*first*/",
        "+aclrtRecordEvent(event, one);", "+aclrtStreamWaitEvent(two, event);",
        "aclrtMemcpyAsync(host, MIB, other, MIB, ACL_MEMCPY_DEVICE_TO_HOST, two); /*second*/"],
    "call_reads_what_a_stream_writes": [
        "static char bytes[64];", SET, "+aclrtSynchronizeStream(one);",
        "aclrtMemcpy(bytes, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST); /*second*/"],
    "event_is_waited_for_by_the_program": [
        SET, "aclrtRecordEvent(event, one);", "+aclrtSynchronizeEvent(event);",
        "aclrtMemset(memory, 64, 0, 64); /*second*/"],
    "free_while_queued": [
        "void* third = NULL;", "aclrtMalloc(&third, MIB, ACL_MEM_MALLOC_HUGE_FIRST);",
        "aclrtMemsetAsync(third, MIB, 1, MIB, one); /*first*/", "+aclrtSynchronizeStream(one);",
        "aclrtFree(third); /*second*/"],
    "free_host_while_queued": [
        "void* third = NULL;", "aclrtMallocHost(&third, MIB);",
        "aclrtMemcpyAsync(memory, MIB, third, MIB, ACL_MEMCPY_HOST_TO_DEVICE, one); /*first*/",
        "+aclrtSynchronizeStream(one);", "aclrtFreeHost(third); /*second*/"],
    "unmap_while_queued": [
        "aclrtDrvMemHandle block = new_block();", "void* range = new_range();",
        "aclrtMapMem(range, 2 * MIB, 0, block, 0);",
        "aclrtMemsetAsync(range, MIB, 1, MIB, one); /*first*/", "+aclrtSynchronizeStream(one);",
        "aclrtUnmapMem(range); /*second*/", "aclrtSynchronizeStream(one);",
        "aclrtFreePhysical(block);", "aclrtReleaseMemAddress(range);"],
    "unregister_while_queued": [
        "static char bytes[1 << 16] __attribute__((aligned(4096)));",
        "aclrtHostRegisterV2(bytes, sizeof bytes, ACL_HOST_REG_PINNED);",
        "aclrtMemcpyAsync(memory, 4096, bytes, 4096, ACL_MEMCPY_HOST_TO_DEVICE, one); /*first*/",
        "+aclrtSynchronizeStream(one);", "aclrtHostUnregister(bytes); /*second*/"],
    "pool_frees_on_another_stream": [
        "aclrtMemPool pool = new_pool();", "void* part = NULL;",
        "aclrtMemPoolMallocAsync(&part, MIB, pool, one);",
        "aclrtMemsetAsync(part, MIB, 1, MIB, one); /*first*/", "+aclrtRecordEvent(event, one);",
        "+aclrtStreamWaitEvent(two, event);", "aclrtMemPoolFreeAsync(part, two); /*second*/",
        "aclrtSynchronizeDevice();", "aclrtMemPoolDestroy(pool);"],
}


def bodies(name):
    lines = PROGRAMS[name]
    right = "\n".join("  " + line.removeprefix("+") for line in lines)
    wrong = "\n".join("  " + line for line in lines if not line.startswith("+"))
    return BEFORE + wrong + AFTER, BEFORE + right + AFTER


@pytest.mark.parametrize("name", PROGRAMS)
def test_disorder_is_told_by_both_lines(check, name):  # noqa: F811
    wrong, _ = bodies(name)
    result = check(wrong, "--check=order")
    assert result.returncode == FOUND, result.stdout + result.stderr
    told = [line for line in result.stderr.splitlines() if line.startswith("understudy: order:")]
    assert len(told) == 1, result.stderr
    for mark in ("first", "second"):
        assert line_of(wrong, mark) in told[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_order_is_silent(check, name):  # noqa: F811
    _, right = bodies(name)
    result = check(right, "--check=order,leaks,history")
    assert (result.returncode, result.stderr) == (0, "")


# Legal programs in which order comes from where it is easily missed.
LEGAL = {
    "other_columns_of_the_same_rows": """
  aclrtMemcpy2dAsync(memory, 4096, host, 4096, 1024, 64, ACL_MEMCPY_HOST_TO_DEVICE, one);
  aclrtMemcpy2dAsync(memory + 1024, 4096, host, 4096, 1024, 64, ACL_MEMCPY_HOST_TO_DEVICE, two);
""",
    "both_read": """
  aclrtMemset(memory, MIB, 1, MIB);
  aclrtMemcpyAsync(host, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_HOST, one);
  aclrtMemcpyAsync(other, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, two);
""",
    "the_event_was_reached_before_the_wait": """
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtRecordEvent(event, one);
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  while (status == ACL_EVENT_RECORDED_STATUS_NOT_READY) aclrtQueryEventStatus(event, &status);
  aclrtStreamWaitEvent(two, event);
  aclrtMemsetAsync(memory, MIB, 2, MIB, two);
""",
    "a_poll_says_that_the_stream_is_done": """
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  while (status == ACL_STREAM_STATUS_NOT_READY) aclrtStreamQuery(one, &status);
  aclrtMemsetAsync(memory, MIB, 2, MIB, two);
""",
    "over_a_third_stream": """
  aclrtStream three = NULL;
  aclrtEvent next = NULL;
  aclrtCreateStream(&three);
  aclrtCreateEventWithFlag(&next, ACL_EVENT_SYNC);
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtRecordEvent(event, one);
  aclrtStreamWaitEvent(three, event);
  aclrtRecordEvent(next, three);
  aclrtStreamWaitEvent(two, next);
  aclrtMemsetAsync(memory, MIB, 2, MIB, two);
  aclrtSynchronizeDevice();
  aclrtDestroyEvent(next);
  aclrtDestroyStream(three);
""",
    "a_value_lets_the_other_stream_go_on": """
  aclrtMemset(other, 64, 0, 64);
  aclrtValueWait(other, 1, 0, two);
  aclrtMemsetAsync(memory, MIB, 2, MIB, two);
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtValueWrite(other, 1, 0, one);
""",
    "a_call_writes_what_a_waiting_stream_will_read": """
  aclrtWaitAndResetNotify(notify, two, 0);
  aclrtMemcpyAsync(other, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, two);
  aclrtMemset(memory, MIB, 1, MIB);
  aclrtRecordNotify(notify, one);
""",
    "allocated_again": """
  for (int i = 0; i < 50; ++i) {
    void* again = NULL;
    aclrtMalloc(&again, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemsetAsync(again, MIB, 1, MIB, i % 2 ? one : two);
    aclrtSynchronizeStream(i % 2 ? one : two);
    aclrtFree(again);
  }
""",
    "more_of_a_pool_than_was_asked_for": """
  aclrtMemPool pool = new_pool();
  void* part = NULL;
  aclrtMemPoolMallocAsync(&part, 2 * MIB, pool, one);
  aclrtMemPoolFreeAsync(part, one);
  while (aclrtStreamQuery(one, &(aclrtStreamStatus){0}) != ACL_SUCCESS) {}
  aclrtMemPoolMallocAsync(&part, MIB, pool, two);
  aclrtMemsetAsync(part, 2 * MIB, 1, 2 * MIB, two);
  aclrtMemPoolFreeAsync(part, two);
  aclrtSynchronizeDevice();
  aclrtMemPoolDestroy(pool);
""",
    "ordinary_memory_is_freed_in_the_order_of_a_stream": """
  for (int i = 0; i < 500; ++i) {
    void* part = NULL;
    aclrtMalloc(&part, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemsetAsync(part, MIB / 16, 1, MIB / 16, i % 2 ? one : two);
    aclrtMemPoolFreeAsync(part, i % 2 ? one : two);
  }
""",
    "the_program_polls_a_value": """
  aclrtMemset(other, 64, 0, 64);
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtValueWrite(other, 1, 0, one);
  uint64_t value = 0;
  while (value == 0) aclrtMemcpy(&value, 8, other, 8, ACL_MEMCPY_DEVICE_TO_HOST);
  aclrtMemset(memory, MIB, 2, MIB);
""",
    "a_time_says_that_the_event_was_reached": """
  aclrtEvent timed = NULL;
  uint64_t time = 0;
  aclrtCreateEventWithFlag(&timed, ACL_EVENT_TIME_LINE);
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtRecordEvent(timed, one);
  while (aclrtEventGetTimestamp(timed, &time) != ACL_SUCCESS) {}
  aclrtMemset(memory, MIB, 2, MIB);
  aclrtDestroyEvent(timed);
""",
    "a_poll_says_that_waits_are_over": """
  aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_NOT_READY;
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtRecordEvent(event, one);
  aclrtStreamWaitEvent(two, event);
  while (waits == ACL_EVENT_WAIT_STATUS_NOT_READY) aclrtQueryEventWaitStatus(event, &waits);
  aclrtMemset(memory, MIB, 2, MIB);
""",
    "the_process_was_locked_and_backed_up": """
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtSnapShotProcessLock(getpid(), NULL);
  aclrtSnapShotProcessBackup(getpid(), NULL);
  aclrtSnapShotProcessRestore(getpid(), NULL);
  aclrtSnapShotProcessUnlock(getpid(), NULL);
  aclrtMemset(memory, MIB, 2, MIB);
""",
    "aborted": """
  aclrtWaitAndResetNotify(notify, one, 0);
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtStreamAbort(one);
  aclrtMemset(memory, MIB, 2, MIB);
""",
    "free_on_a_stream_that_is_stopped": """
  aclrtMemPool pool = new_pool();
  void *part = NULL, *gone = NULL;
  aclrtMemPoolMallocAsync(&part, MIB, pool, one);
  aclrtMalloc(&gone, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtSetStreamFailureMode(one, ACL_STOP_ON_FAILURE);
  aclrtWaitAndResetNotify(notify, one, 0);
  aclrtMemPoolFreeAsync(gone, one);
  aclrtMemsetAsync(gone, 64, 1, 64, one);
  aclrtRecordNotify(notify, two);
  if (aclrtSynchronizeStream(one) == 0) return 1;
  if (aclrtMemPoolFreeAsync(part, one) != 0) return 2;
  aclrtMemPoolDestroy(pool);
""",
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_program_is_silent(check, name):  # noqa: F811
    result = check(BEFORE + LEGAL[name] + AFTER, "--check=order")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_free_of_a_pool_is_no_task(check):  # noqa: F811
    body = """
  aclrtMemPool pool = new_pool();
  void* part = NULL;
  uint32_t before = 0, after = 0;
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtGetThreadLastTaskId(&before);
  aclrtMemPoolMallocAsync(&part, MIB, pool, one);
  aclrtMemPoolFreeAsync(part, one);
  aclrtGetThreadLastTaskId(&after);
  if (after != before) return 3;
  aclrtSynchronizeDevice();
  aclrtMemPoolDestroy(pool);
"""
    result = check(BEFORE + body + AFTER, "--check=order")
    assert (result.returncode, result.stderr) == (0, "")


HELD = """
#include <stdatomic.h>
static atomic_int is_held, may_go_on;
static void hold(void* unused) { (void)unused; is_held = 1; while (!may_go_on) {} }
int main(void) {"""


def test_tasks_that_an_abort_dropped_use_nothing(check):  # noqa: F811
    """Behind a function that still runs."""
    from test_check import BEGINNING
    body = """
  void* third = NULL;
  aclrtMalloc(&third, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtLaunchHostFunc(one, hold, NULL);
  aclrtMemsetAsync(third, MIB, 1, MIB, one);
  while (!is_held) {}
  aclrtStreamAbort(one);
  aclrtFree(third);
  may_go_on = 1;
"""
    begin = BEGINNING.replace("int main(void) {", HELD)
    result = check(BEFORE + body + AFTER, "--check=order", begin=begin)
    assert (result.returncode, result.stderr) == (0, "")


FUNCTION = """
static void* function_memory;
static void fill(void* unused) { (void)unused; aclrtMemset(function_memory, 64, 3, 64); }
int main(void) {"""


def test_a_function_that_a_stream_calls_comes_in_its_order(check):  # noqa: F811
    from test_check import BEGINNING
    body = """
  function_memory = memory;
  aclrtMemsetAsync(memory, MIB, 1, MIB, one);
  aclrtLaunchHostFunc(one, fill, NULL);
  aclrtMemsetAsync(memory, MIB, 2, MIB, one);
  aclrtRecordEvent(event, one);
  aclrtStreamWaitEvent(two, event);
  aclrtMemsetAsync(memory, MIB, 3, MIB, two);
"""
    begin = BEGINNING.replace("int main(void) {", FUNCTION)
    result = check(BEFORE + body + AFTER, "--check=order", begin=begin)
    assert (result.returncode, result.stderr) == (0, "")


def test_memory_that_two_streams_free_is_told(check):  # noqa: F811
    body = BEFORE + """
  void* twice = NULL;
  aclrtMalloc(&twice, MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtWaitAndResetNotify(notify, one, 0);
  aclrtMemPoolFreeAsync(twice, one); /*first*/
  aclrtMemPoolFreeAsync(twice, two); /*second*/
  aclrtSynchronizeStream(two);
  aclrtRecordNotify(notify, two);
"""
    result = check(body + AFTER, "--check=order")
    assert result.returncode == FOUND, result.stderr
    for mark in ("first", "second"):
        assert line_of(body, mark) in result.stderr


# Programs that wait for ever, but for the limit that a signal is.
ENDLESS = {
    "no_record": """
  alarm(3);
  aclrtWaitAndResetNotify(notify, one, 0); /*queued*/
  aclrtSynchronizeStream(one); /*waits*/
""",
    "each_waits_for_the_other": """
  aclrtNotify other_notify = NULL;
  aclrtCreateNotify(&other_notify, 0);
  alarm(3);
  aclrtWaitAndResetNotify(notify, one, 0); /*queued*/
  aclrtRecordNotify(other_notify, one);
  aclrtWaitAndResetNotify(other_notify, two, 0);
  aclrtRecordNotify(notify, two);
  aclrtSynchronizeStream(one); /*waits*/
""",
    "behind_an_event": """
  alarm(3);
  aclrtWaitAndResetNotify(notify, one, 0); /*queued*/
  aclrtRecordEvent(event, one);
  aclrtStreamWaitEvent(two, event);
  aclrtSynchronizeEvent(event); /*waits*/
""",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_wait_that_cannot_end_is_told(check, name):  # noqa: F811
    body = BEFORE + ENDLESS[name]
    result = check(body, "--check=order")
    assert result.returncode == -signal.SIGALRM, result.stderr
    told = [line for line in result.stderr.splitlines() if line.startswith("understudy: order:")]
    assert len(told) == 1 and "waits for ever" in told[0], result.stderr
    for mark in ("queued", "waits"):
        assert line_of(body, mark) in told[0]


THREAD = """
static aclrtNotify thread_notify;
static aclrtStream thread_stream;
#include <pthread.h>
static void* record(void* unused) {
  (void)unused;
  aclrtSetDevice(0);
  aclrtRecordNotify(thread_notify, thread_stream);
  return NULL;
}
int main(void) {"""


def test_wait_that_another_thread_ends_is_silent(check):  # noqa: F811
    from test_check import BEGINNING
    result = check(BEFORE + """
  pthread_t thread;
  thread_notify = notify;
  thread_stream = two;
  aclrtWaitAndResetNotify(notify, one, 0);
  pthread_create(&thread, NULL, record, NULL);
  aclrtSynchronizeStream(one);
  pthread_join(thread, NULL);
""" + AFTER, "--check=order", begin=BEGINNING.replace("int main(void) {", THREAD))
    assert (result.returncode, result.stderr) == (0, "")


GRAPHS = BUILD / "bin" / "command_order_graphs"


def test_ten_thousand_legal_graphs_are_silent(understudy):
    result = understudy("run", "--check=order", "--", GRAPHS, "legal", "1", "10000")
    assert (result.returncode, result.stderr) == (0, "")


def test_every_planted_disorder_is_found(understudy):
    missed = [seed for seed in range(1, 101)
              if understudy("run", "--check=order", "--", GRAPHS, "planted",
                            str(seed)).returncode != FOUND]
    assert not missed, f"seeds {missed}"
