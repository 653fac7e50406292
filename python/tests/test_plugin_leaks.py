# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: a test that leaves something alive fails."""
import pytest

from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]

LEAKS = {
    "free(rt.malloc(3 * SIZE, 1)[0])": "",
    "malloc((1 << 20) - 64, 2)": "test leaks: 1 allocation, 1 MiB of device memory (acl.rt.free)",
    "malloc_host(64)": "test leaks: 1 host allocation (acl.rt.free_host)",
    "malloc_physical(SIZE, PROP, 0)": "test leaks: 1 physical handle, 2 MiB of device memory"
    " (acl.rt.free_physical)",
    "reserve_mem_address(SIZE, 0, 0, 0)": "test leaks: 1 reservation"
    " (acl.rt.release_mem_address)",
}


@pytest.mark.parametrize("call", LEAKS, ids=lambda call: call.partition("(")[0])
def test_what_stays_alive_fails_the_test(run, call):
    result = run(f"def test_call(rt):\n    rt.{call}\n")
    if LEAKS[call]:
        result.assert_outcomes(failed=1)
        assert lines_with(result, "::test_call - test leaks: 1 ")
        assert LEAKS[call] in result.outlines
    else:
        result.assert_outcomes(passed=1)


def test_a_mapping_keeps_its_block_alive(run):
    result = run(
        """
def test_mapping(rt):
    handle, ret = rt.malloc_physical(SIZE, PROP, 0)
    address, ret = rt.reserve_mem_address(SIZE, 0, 0, 0)
    assert rt.map_mem(address, SIZE, 0, handle, 0) == 0
    assert rt.free_physical(handle) == 0
"""
    )
    result.assert_outcomes(failed=1)
    assert (
        "test leaks: 1 reservation, 1 mapping, 2 MiB of device memory"
        " (acl.rt.release_mem_address, unmap_mem)" in result.outlines
    )


def test_several_are_counted(run):
    result = run("def test_two(rt): [rt.reserve_mem_address(SIZE, 0, 0, 0) for _ in range(2)]\n")
    assert "test leaks: 2 reservations (acl.rt.release_mem_address)" in result.outlines


def test_what_a_reset_frees_is_no_leak(run):
    result = run("def test_reset(rt): assert rt.malloc(SIZE, 1)[1] == rt.reset_device(0) == 0\n")
    result.assert_outcomes(passed=1)


def test_what_fixtures_free_afterwards_is_no_leak(run):
    result = run(
        """
@pytest.fixture(scope="module")
def wide():
    import acl
    acl.init(), acl.rt.set_device(0)
    pointer, ret = acl.rt.malloc(SIZE, 1)
    yield
    acl.rt.set_device(0)
    assert acl.rt.free(pointer) == 0

@pytest.fixture
def early():
    import acl
    acl.init(), acl.rt.set_device(0)
    handle, ret = acl.rt.malloc_host(64)
    yield
    assert acl.rt.free_host(handle) == 0

def test_early(early, wide, npu): pass
def test_late(npu, wide, early): pass
"""
    )
    result.assert_outcomes(passed=2)


def test_owners_in_a_cycle_are_collected_first(run):
    result = run(
        """
class Owner:
    def __init__(self, rt):
        self.free, (self.pointer, ret) = rt.free_host, rt.malloc_host(64)
        self.me = self
    def __del__(self):
        self.free(self.pointer)

def test_cycle(rt):
    Owner(rt)
"""
    )
    result.assert_outcomes(passed=1)


def test_a_failure_keeps_its_own_reason(run):
    result = run("def test_both(rt):\n    rt.malloc_host(64)\n    assert 'mine' == 'yours'\n")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "assert 'mine' == 'yours'") and not lines_with(result, "test leaks")


def test_leaks_can_be_allowed(run):
    result = run("@pytest.mark.npu(leaks='allow')\ndef test_it(rt):\n    rt.malloc_host(64)\n")
    result.assert_outcomes(passed=1)


def test_a_leak_can_be_an_expected_failure(run):
    result = run(
        """
@pytest.mark.xfail
def test_loose(rt): rt.malloc_host(64)

@pytest.mark.xfail(strict=True)
def test_strict(rt): rt.malloc_host(64)
"""
    )
    result.assert_outcomes(xfailed=2)
