# SPDX-License-Identifier: Apache-2.0
"""A pytest of its own for the tests of understudy.pytest_plugin, which name this as a plugin."""
import glob
import os

import pytest

pytest_plugins = ["pytester"]

PRELUDE = """
import os, signal, sys, unittest, warnings
import pytest

PROP = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1},
        "reserve": 0}
POOL = {"allocType": 0, "handleType": 0, "location": {"id": 0, "type": 1}}
SIZE = 2 << 20

@pytest.fixture
def rt(npu):
    import acl
    assert acl.init() == 0 and acl.rt.set_device(0) == 0
    return acl.rt

def signal_parent(number):
    # Once it sleeps, it waits for this process.
    while open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()
    os.kill(os.getppid(), number)
    signal.pause()
"""


@pytest.fixture
def run(pytester):
    """run(source, *options) runs a file of tests; gives the result of that pytest."""

    def run_source(source, *options):
        pytester.makepyfile(PRELUDE + source)
        return pytester.runpytest_subprocess(
            "-p", "understudy.pytest_plugin", "--strict-markers", *options, timeout=100
        )

    servers = f"/dev/shm/understudy-{os.geteuid()}.test-*"
    before = set(glob.glob(servers))
    yield run_source
    assert set(glob.glob(servers)) <= before


def lines_with(result, text):
    return [line for line in result.outlines if text in line]
