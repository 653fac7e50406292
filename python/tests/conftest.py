# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python module share: a server of their own, and devices and streams on it."""
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest

# Before anyone imports acl: the tests of one run see devices that nobody else uses.
_server = tempfile.mkdtemp(prefix="understudy-python-tests-")
os.environ["UNDERSTUDY_RUNTIME_DIR"] = _server

import acl  # noqa: E402

ACL_ALREADY_INITIALISED = 100002


def pytest_sessionfinish():
    shutil.rmtree(_server, ignore_errors=True)


@pytest.fixture
def device():
    """Device 0, current in this thread, and released afterwards."""
    assert acl.init() in (0, ACL_ALREADY_INITIALISED)
    assert acl.rt.set_device(0) == 0
    yield 0
    assert acl.rt.reset_device(0) == 0


@pytest.fixture
def stream(device):
    """A stream of the current context."""
    handle, ret = acl.rt.create_stream()
    assert ret == 0
    yield handle
    assert acl.rt.destroy_stream(handle) == 0


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
