# SPDX-License-Identifier: Apache-2.0
"""understudy.record(): each in an interpreter of its own, because a process may be recorded once."""
import os
import pathlib

import pytest

import understudy
from understudy.library import installed_command

# Presets with a sanitizer build the library alone.
TREE = pathlib.Path(understudy.__file__).resolve().parents[2]
needs_the_command = pytest.mark.skipif(
    not (TREE / "bin/understudy").exists(), reason="this build has no command")

PRELUDE = """
import os, sys
import understudy

def fill(acl):
    pointer, ret = acl.rt.malloc(4096, 0)
    assert ret == 0
    return pointer

def content(path):
    with open(path, "rb") as file:
        return file.read()
"""


@pytest.fixture
def run(fresh, tmp_path):
    """run(source) runs Python source, whose first argument is the path of a recording."""
    path = tmp_path / "run.rec"

    def run_source(source, *arguments, **environment):
        fresh(PRELUDE + source, str(path), *arguments, **environment)
        return path.read_bytes() if path.exists() else b""

    return run_source


def test_what_happens_in_the_block_is_in_it(run):
    recorded = run("""
import acl
acl.rt.set_device(0)
with understudy.record(sys.argv[1]) as recording:
    assert recording.path == sys.argv[1]
    acl.rt.free(fill(acl))
acl.rt.synchronize_device()
""")
    assert recorded.startswith(b"NPSUREC1")
    assert b"aclrtMalloc(" in recorded and b"aclrtFree(" in recorded
    assert b"aclrtSetDevice(" not in recorded and b"aclrtSynchronizeDevice(" not in recorded


def test_stacks_are_lines_of_python(run):
    recorded = run("""
import acl
with understudy.record(sys.argv[1]):
    acl.rt.set_device(0)
    acl.rt.free(fill(acl))
""")
    assert b"<string>:6 fill\n<string>:17 <module>" in recorded
    assert b"<string>:16 <module>" in recorded  # also of the first call


def test_without_stacks_no_lines_are_in_it(run):
    recorded = run("""
with understudy.record(sys.argv[1], stacks=False):
    import acl
    acl.rt.set_device(0)
    acl.rt.free(fill(acl))
""")
    assert b"aclrtMalloc(" in recorded and b"<string>:" not in recorded


def test_it_imports_acl_itself(run):
    recorded = run("""
with understudy.record(sys.argv[1]):
    assert "acl" in sys.modules
    import acl
    acl.rt.get_device_count()
""")
    assert b"aclrtGetDeviceCount(" in recorded


def test_a_second_one_replaces_the_first(run):
    recorded = run("""
import acl
acl.rt.set_device(0)
for call in (acl.rt.get_device_count, acl.rt.synchronize_device):
    with understudy.record(os.path.relpath(sys.argv[1])):
        call()
""")
    assert b"aclrtSynchronizeDevice(" in recorded and b"aclrtGetDeviceCount(" not in recorded


def test_an_exception_ends_it(run):
    recorded = run("""
import acl
try:
    with understudy.record(sys.argv[1]):
        acl.rt.get_device_count()
        raise KeyError
except KeyError:
    pass
acl.rt.synchronize_device()
""")
    assert b"aclrtGetDeviceCount(" in recorded and b"aclrtSynchronizeDevice(" not in recorded


def test_one_in_another_is_refused(run):
    run("""
with understudy.record(sys.argv[1]):
    try:
        understudy.record(sys.argv[1] + ".other").__enter__()
    except understudy.ServerError as error:
        assert str(error) == ("aclUnderstudyStartRecording: the process is recorded already, in "
                              + sys.argv[1]), error
    else:
        assert False
""")


def test_one_in_a_process_that_is_recorded_is_refused(run, tmp_path):
    whole = tmp_path / "whole.rec"
    recorded = run("""
try:
    understudy.record(sys.argv[1]).__enter__()
except understudy.ServerError as error:
    assert os.environ["UNDERSTUDY_TRACE"] in str(error), error
else:
    assert False
""", UNDERSTUDY_TRACE=str(whole))
    assert recorded == b"" and whole.exists()


def test_wrong_choices_are_named(tmp_path):
    with pytest.raises(ValueError, match="no size"):
        understudy.record(tmp_path / "x.rec", limit="much")
    with pytest.raises(understudy.ServerError, match="limit 1 is not"):
        understudy.record(tmp_path / "x.rec", limit=1).__enter__()
    with pytest.raises(understudy.ServerError, match="missing/x.rec"):
        understudy.record(tmp_path / "missing" / "x.rec").__enter__()
    assert not (tmp_path / "x.rec").exists()


def test_a_limit_and_a_ring(run):
    recorded = run("""
import acl
for ring in (False, True):
    with understudy.record(sys.argv[1], stacks=False, limit="1M", ring=ring):
        for _ in range(60000):
            acl.rt.get_device_count()
        acl.rt.synchronize_device()
    length = os.path.getsize(sys.argv[1])
    assert length <= 1 << 20, length
""")
    assert b"aclrtSynchronizeDevice(" in recorded


def test_without_a_library_there_is_nothing_to_record(tmp_path, fresh):
    (tmp_path / "acl.py").write_text("raise ImportError('no acl here')\n")
    fresh("""
import sys
sys.path.insert(0, sys.argv[1])
import understudy
try:
    understudy.record("x.rec").__enter__()
except understudy.ServerError as error:
    assert str(error) == "there is nothing to record: no acl here", error
else:
    assert False
""", str(tmp_path))


def test_threads_that_call_meanwhile_are_no_trouble(run):
    run("""
import acl, threading
ends = threading.Event()
def call():
    while not ends.is_set():
        acl.rt.free(fill(acl))
acl.rt.set_device(0)
def work():
    acl.rt.set_device(0)
    call()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for number in range(20):
    with understudy.record(sys.argv[1], stacks=number % 2 == 0, limit="1M", ring=number % 3 == 0):
        acl.rt.free(fill(acl))
    assert b"aclrtMalloc(" in content(sys.argv[1])
ends.set()
for thread in threads: thread.join()
""")


@needs_the_command
def test_it_can_be_shown_while_it_is_made_and_after(run, tmp_path):
    run("""
import acl
acl.rt.set_device(0)
with understudy.record(sys.argv[1]) as recording:
    acl.rt.free(fill(acl))
    assert "aclrtMalloc" in recording.summary()
assert "aclrtFree" in recording.summary()
assert recording.page(sys.argv[2]) == sys.argv[2]
""", str(tmp_path / "out.html"))
    assert "<html" in (tmp_path / "out.html").read_text()


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A command that prints its arguments instead of what a recording shows."""
    path = tmp_path / "understudy"
    path.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n[ "$2" != /failing.rec ]\n')
    path.chmod(0o700)
    monkeypatch.setattr("understudy.recording.installed_command", lambda: str(path))


def test_summary_and_page_are_those_of_the_command(command, tmp_path):
    recording = understudy.record("/run.rec")
    assert recording.summary() == "trace\n/run.rec\n"
    assert recording.page(tmp_path / "out.html") == str(tmp_path / "out.html")
    with pytest.raises(understudy.ServerError, match="trace failed: 1"):
        understudy.record("/failing.rec").summary()


@needs_the_command
def test_the_command_is_that_of_the_tree_of_the_library(monkeypatch):
    command = installed_command()
    assert command is not None and os.access(command, os.X_OK)
    with open("/proc/self/maps") as maps:
        assert os.path.dirname(os.path.dirname(command)) in maps.read()


def test_without_the_command_that_is_said(monkeypatch):
    monkeypatch.setattr("understudy.recording.installed_command", lambda: None)
    with pytest.raises(understudy.ServerError, match="neither beside the library nor in PATH"):
        understudy.record("run.rec").summary()
