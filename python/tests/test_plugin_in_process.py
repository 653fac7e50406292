# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: tests with --npu-in-process share one server."""
from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]


def test_in_process_tests_share_the_first_server(run):
    result = run(
        """
PARENT, SEEN = os.getpid(), []

def test_first(rt, npu):
    assert os.getpid() == PARENT
    SEEN.append(npu)

@pytest.mark.npu(product="a2")
def test_same(npu): assert SEEN == [npu]

@pytest.mark.npu(product="a3")
def test_other(npu): pass

def test_leak(npu):
    import acl
    acl.rt.malloc_host(64)

def test_after_the_leak(npu): pass
""",
        "--npu-in-process",
        "-rs",
    )
    result.assert_outcomes(passed=3, skipped=1, failed=1)
    assert lines_with(result, "the test asks for product=a3, the session has <understudy.Server")
    assert "test leaks: 1 host allocation (acl.rt.free_host)" in result.outlines


def test_in_process_wide_fixtures_do_not_leak(run):
    result = run(
        """
@pytest.fixture(scope="module")
def wide():
    import acl
    acl.init(), acl.rt.set_device(0)
    pointer, ret = acl.rt.malloc_host(64)
    yield
    assert acl.rt.free_host(pointer) == 0

def test_one(npu, wide): pass
def test_two(npu, wide): pass
""",
        "--npu-in-process",
    )
    result.assert_outcomes(passed=2)


def test_in_process_needs_a_process_without_a_server(run):
    result = run(
        "def test_uses_acl():\n    import acl\n    acl.init()\n\ndef test_npu(npu): pass\n",
        "--npu-in-process",
    )
    result.assert_outcomes(passed=1, errors=1)
    assert lines_with(result, "no server for this test: this process uses the server in ")
