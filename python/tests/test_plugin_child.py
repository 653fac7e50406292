# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: tests that crash, end early, fork or are interrupted."""
import fcntl
import os
import shutil
import signal

import pytest

from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]


def test_a_crash_is_one_failed_test(run):
    result = run(
        """
import ctypes

def test_before(npu): pass

def test_crash(rt):
    pointer, ret = rt.malloc(SIZE, 1)
    print("about to read")
    ctypes.string_at(pointer, 4)

def test_after(npu): pass
"""
    )
    result.assert_outcomes(passed=2, failed=1)
    assert "SIGSEGV: the test's process ended before the test" in result.outlines
    assert lines_with(result, "in test_crash")
    result.stdout.fnmatch_lines(["*Captured stdout call*", "about to read"])


@pytest.mark.parametrize(
    "source, end",
    [
        ("os._exit(0)", "exit code 0"),
        ("os._exit(7)", "exit code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("os.abort()", "SIGABRT"),
    ],
)
def test_an_early_end_is_a_failure(run, source, end):
    result = run(f"def test_end(npu): {source}\ndef test_after(npu): pass\n")
    result.assert_outcomes(passed=1, failed=1)
    assert f"{end}: the test's process ended before the test" in result.outlines


def test_a_crash_is_no_expected_failure(run):
    result = run("@pytest.mark.xfail\ndef test_crash(npu): os.abort()\n")
    result.assert_outcomes(failed=1)


def test_a_parent_that_uses_acl_does_not_disturb_its_children(run):
    result = run(
        """
import acl, understudy

def test_here():
    assert acl.init() == 0 and acl.rt.set_device(0) == 0
    assert acl.rt.malloc(SIZE, 1)[1] == 0
    assert understudy.objects().device_bytes > 0

def test_child(rt, npu):
    assert understudy.runtime_directory() == npu.directory
    assert understudy.objects() == understudy.Objects()

def test_here_again():
    assert understudy.objects().device_bytes > 0
"""
    )
    result.assert_outcomes(passed=3)


def test_a_test_that_forks_and_returns_twice_is_reported_once(run):
    result = run(
        """
def test_twice(npu):
    if os.fork() == 0:
        return
    assert os.wait()[1] == 1 << 8
"""
    )
    result.assert_outcomes(passed=1)


def test_a_child_that_lives_on_does_not_hold_the_session(run, pytester):
    os.mkfifo(pytester.path / "gate")
    result = run(
        """
def test_daemon(npu):
    if os.fork() == 0:
        open("gate").close()
        os._exit(0)
"""
    )
    result.assert_outcomes(passed=1)
    open(pytester.path / "gate", "w").close()  # waits for the child, and lets it go


def test_exit_and_interrupt_end_the_session(run):
    result = run("def test_exit(npu): pytest.exit('enough', 3)\ndef test_after(npu): pass\n")
    assert result.ret == 3 and lines_with(result, "enough")
    result = run("def test_stop(npu): raise KeyboardInterrupt\ndef test_after(npu): pass\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result = run("def test_key(npu): signal_parent(signal.SIGINT)\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_terminated_session_leaves_no_server(run, pytester):
    result = run(
        """
def test_stop(npu):
    open("directory", "w").write(npu.directory)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    signal_parent(signal.SIGTERM)

def test_after(npu): pass
"""
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not os.path.exists((pytester.path / "directory").read_text())


def test_a_handler_of_sigterm_stays(run):
    result = run(
        """
def handler(number, frame): raise KeyboardInterrupt

def test_handler(npu): assert signal.getsignal(signal.SIGTERM) is handler

signal.signal(signal.SIGTERM, handler)
"""
    )
    result.assert_outcomes(passed=1)


def test_no_test_outlives_pytest(run, pytester):
    result = run(
        """
import fcntl, threading

def test_orphan(npu):
    lock = open("lock", "w")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    open("directory", "w").write(npu.directory)
    os.kill(os.getppid(), signal.SIGKILL)
    threading.Event().wait(30)
    open("outlived", "w").close()
"""
    )
    assert result.ret == -signal.SIGKILL
    with open(pytester.path / "lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # waits for the end of the test
    assert not (pytester.path / "outlived").exists()
    shutil.rmtree((pytester.path / "directory").read_text())  # no process was left to do so


def test_a_timeout_by_signal_fails_the_test_alone(run, pytester):
    pytester.makeconftest(
        """
import signal
import pytest

def late(number, frame):
    pytest.fail("too late")

signal.signal(signal.SIGALRM, late)
"""
    )
    result = run(
        """
def test_endless(npu): signal_parent(signal.SIGALRM)
def test_after(npu): pass
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    assert "too late: the test's process ended before the test" in result.outlines


@pytest.mark.parametrize("options", [[], ["-s"]])
@pytest.mark.parametrize("act", ["sys.stdout = None", "sys.stdout.close()", "os.close(1)"])
def test_a_child_whose_output_is_gone_still_ends(run, act, options):
    result = run(f"def test_quiet(npu): {act}\ndef test_after(npu): pass\n", *options)
    assert result.outlines[-1].endswith("s =") or "in " in result.outlines[-1]
    assert len(lines_with(result, "test session starts")) == 1
    assert not lines_with(result, "INTERNALERROR")


def test_ended_children_may_be_ignored(run):
    result = run(
        """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

def test_passes(npu): pass
def test_fails(npu): assert False
"""
    )
    result.assert_outcomes(passed=1, failed=1)


def test_any_object_may_be_a_property(run, pytester):
    result = run(
        "def test_odd(npu, record_property): record_property('odd', lambda: 1)\n", "--junitxml=x"
    )
    result.assert_outcomes(passed=1)
    assert 'name="odd"' in (pytester.path / "x").read_text()
