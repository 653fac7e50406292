# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the Python module, and a server of their own."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

# Before acl is imported: the tests of one run see devices that no other process uses.
_server = tempfile.mkdtemp(prefix="understudy-python-tests-")
os.environ["UNDERSTUDY_RUNTIME_DIR"] = _server

# So that a failed assert of theirs is explained as one of a test.
pytest.register_assert_rewrite("other_process", "pytest_runs", "support")

import acl  # noqa: E402
from other_process import Other  # noqa: E402
from support import (  # noqa: E402
    ALREADY_INITIALISED, BLOCK, HBM, HBM_HUGE, HBM_NORMAL, LONG, Gate, made, prop,
)


def pytest_sessionfinish():
    shutil.rmtree(_server, ignore_errors=True)


@pytest.fixture
def device():
    """Device 0, current in this thread, and released afterwards."""
    assert acl.init() in (0, ALREADY_INITIALISED)
    assert acl.rt.set_device(0) == 0
    yield 0
    assert acl.rt.reset_device(0) == 0


@pytest.fixture
def stream(device):
    """A stream of the current context."""
    with made(acl.rt.create_stream, acl.rt.destroy_stream) as handle:
        yield handle


@pytest.fixture
def gate(stream):
    """Holds the stream until gate.open()."""
    with Gate(stream) as gate:
        yield gate
        gate.open()
        acl.rt.synchronize_stream_with_timeout(stream, LONG)


@pytest.fixture
def handle(device):
    """2 MiB of physical memory on device 0."""
    with made(acl.rt.malloc_physical, acl.rt.free_physical, BLOCK, prop(), 0) as value:
        yield value


@pytest.fixture
def nothing_is_left(device):
    """The test gives back what it took of the device's memory, and a refused call takes nothing."""
    kinds = (HBM, HBM_HUGE, HBM_NORMAL)
    before = [acl.rt.get_mem_info(kind) for kind in kinds]
    yield
    assert [acl.rt.get_mem_info(kind) for kind in kinds] == before


@pytest.fixture
def start_other():
    """start_other() gives another process that makes calls; see other_process.py."""
    started = []

    def start():
        started.append(Other())
        return started[-1]

    yield start
    assert all(other.end() in (0, -signal.SIGKILL) for other in started)


@pytest.fixture
def other(start_other):
    return start_other()


@pytest.fixture
def fresh():
    """Runs Python source in an interpreter and on a server of its own; gives what it printed.

    fresh(source, "argument", UNDERSTUDY_PRODUCT="a3") fails the test if the program fails.
    """

    def run(source, *arguments, **environment):
        with tempfile.TemporaryDirectory(prefix="understudy-python-tests-") as directory:
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(source), *arguments],
                env={**os.environ, "UNDERSTUDY_RUNTIME_DIR": directory, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                universal_newlines=True,
                timeout=100,
            )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run
