# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: a test that fails shows what the software NPU said of failed calls."""
import itertools

import pytest

from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]

TITLE = " software NPU: errors "


def errors(result):
    """The lines of the sections, in their order."""
    found = []
    for at, line in enumerate(result.outlines):
        if TITLE in line:
            is_error = lambda line: not line.startswith(("---", "===", "___"))  # noqa: E731
            found.append(list(itertools.takewhile(is_error, result.outlines[at + 1 :])))
    return found


def subjects(lines):
    return [line.partition(": ")[0] for line in lines]


@pytest.mark.parametrize("options", [[], ["--npu-in-process"]])
def test_errors_since_its_start_are_shown_with_a_failure(run, options):
    result = run(
        """
import acl

def test_passes(npu): assert acl.rt.free(0) != 0

def test_fails(npu):
    assert acl.rt.free(0) != 0
    assert acl.get_recent_err_msg()
    assert acl.rt.set_device(99) == 0

def test_fails_alone(npu): assert False
""",
        *options,
    )
    result.assert_outcomes(passed=1, failed=2)
    (lines,) = errors(result)
    assert subjects(lines) == ["aclrtFree failed with 100000", "aclrtSetDevice failed with 107001"]
    assert "99" in lines[1]


def test_other_threads_and_tasks_are_heard(run):
    result = run(
        """
import threading

def test_threads(rt):
    thread = threading.Thread(target=rt.free_host, args=(0,))
    thread.start()
    thread.join()
    address, ret = rt.reserve_mem_address(2 * SIZE, 0, 0, 0)
    handle, ret = rt.malloc_physical(SIZE, PROP, 0)
    assert rt.map_mem(address, SIZE, 0, handle, 0) == 0
    stream, ret = rt.create_stream()
    assert rt.memset_async(address, 2 * SIZE, 0, SIZE + 1, stream) == 0
    assert rt.synchronize_stream_with_timeout(stream, 60000) == 0
"""
    )
    (lines,) = errors(result)
    host, task, synchronization = subjects(lines)
    assert host == "aclrtFreeHost failed with 100000"
    assert task.startswith("a task of stream ") and " on device 0 failed with 507" in task
    assert synchronization.startswith("aclrtSynchronizeStreamWithTimeout failed with 507")


def test_many_are_cut_in_the_middle(run):
    result = run("def test_many(rt): assert sum(rt.set_device(1000 + n) for n in range(50)) == 0\n")
    (lines,) = errors(result)
    assert len(lines) == 21 and lines[10] == "(30 more)"
    assert "1000" in lines[0] and "1009" in lines[9]
    assert "1040" in lines[11] and "1049" in lines[20]


def test_a_crash_shows_them_too(run):
    result = run("def test_crash(rt):\n    rt.free(0)\n    os.abort()\n")
    result.assert_outcomes(failed=1)
    (lines,) = errors(result)
    assert subjects(lines) == ["aclrtFree failed with 100000"]


def test_a_leak_shows_them_too(run):
    result = run("def test_leak(rt):\n    rt.free_host(rt.malloc_host(64)[0] + 1)\n")
    assert lines_with(result, "test leaks: 1 host allocation")
    (lines,) = errors(result)
    assert len(lines) == 1 and lines[0].startswith("aclrtFreeHost failed with ")


def test_setup_and_teardown_have_their_own(run):
    result = run(
        """
@pytest.fixture
def good(rt):
    yield
    assert rt.free_host(0) == 0

@pytest.fixture
def bad(rt):
    assert rt.free(0) == 0

def test_teardown(good, rt): assert rt.free(0) == 0
def test_setup(bad): pass
"""
    )
    result.assert_outcomes(failed=1, errors=2)
    assert sorted(map(len, errors(result))) == [1, 2]


def test_a_test_without_npu_shows_them(run):
    result = run(
        """
import acl

def test_here():
    acl.init()
    assert acl.rt.free(0) == 0
"""
    )
    (lines,) = errors(result)
    assert subjects(lines)[-1] == "aclrtFree failed with 100000"


def test_why_there_is_no_server_is_heard(run):
    result = run(
        """
@pytest.mark.npu(memory="a lot")
def test_settings(npu):
    import acl
    assert acl.init() == 0
"""
    )
    (lines,) = errors(result)
    assert lines[0].startswith("aclInit failed with ") and "a lot" in lines[0]
