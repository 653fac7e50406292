# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: a test that leaves something alive fails."""
import itertools

import pytest

from pytest_runs import PRELUDE, lines_with

pytest_plugins = ["pytest_runs"]

LEAKS = {
    "free(rt.malloc(3 * SIZE, 1)[0])": "",
    "malloc((1 << 20) - 64, 2)": "test leaks: 1 allocation, 1 MiB of device memory (acl.rt.free)",
    "malloc_host(64)": "test leaks: 1 host allocation (acl.rt.free_host)",
    "malloc_physical(SIZE, PROP, 0)": "test leaks: 1 physical handle, 2 MiB of device memory"
    " (acl.rt.free_physical)",
    "reserve_mem_address(SIZE, 0, 0, 0)": "test leaks: 1 reservation"
    " (acl.rt.release_mem_address)",
    "create_stream()": "test leaks: 1 stream (acl.rt.destroy_stream)",
    "create_event()": "test leaks: 1 event (acl.rt.destroy_event)",
    "create_notify(0)": "test leaks: 1 notify (acl.rt.destroy_notify)",
    "mem_pool_create(POOL)": "test leaks: 1 memory pool (acl.rt.mem_pool_destroy)",
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
    result = run(
        """
def test_reset(rt):
    assert rt.malloc(SIZE, 1)[1] == rt.create_stream()[1] == rt.create_event()[1] == 0
    assert rt.reset_device(0) == 0
"""
    )
    result.assert_outcomes(passed=1)


# Lines of the sources below begin behind those of the prelude.
FIRST = len(PRELUDE.strip().splitlines())


def places(result):
    """The indented lines below the sentence."""
    at = next(at for at, line in enumerate(result.outlines) if line.startswith("test leaks: "))
    return list(itertools.takewhile(lambda line: line.startswith("  "), result.outlines[at + 1 :]))


def test_a_leak_names_the_places_where_it_was_made(run):
    result = run(
        """
from acl import rt as bound
from acl.rt import create_event

def helper():
    return bound.malloc(64, 0)

def test_places(rt):
    rt.free(rt.malloc(64, 0)[0])
    [helper() for _ in range(2)]
    bound.create_stream(), rt.create_stream()
    create_event()
    address, ret = rt.reserve_mem_address(SIZE, 0, 0, 0)
    handle, ret = rt.malloc_physical(SIZE, PROP, 0)
    rt.map_mem(address, SIZE, 0, handle, 0)
    rt.free_physical(handle)
"""
    )
    result.assert_outcomes(failed=1)
    file = "test_a_leak_names_the_places_where_it_was_made.py"
    assert places(result) == [
        f"  2 allocations by acl.rt.malloc at {file}:{FIRST + 6}",
        f"  1 reservation by acl.rt.reserve_mem_address at {file}:{FIRST + 13}",
        f"  1 mapping by acl.rt.map_mem at {file}:{FIRST + 15}",
        f"  2 streams by acl.rt.create_stream at {file}:{FIRST + 11}",
        f"  1 event by acl.rt.create_event at {file}:{FIRST + 12}",
    ]


def test_calls_of_any_thread_have_a_place(run):
    result = run(
        """
import threading

def test_thread(rt):
    def work():
        rt.set_device(0)
        rt.malloc_host(64)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
    )
    (place,) = places(result)
    assert place.startswith("  1 host allocation by acl.rt.malloc_host at ")
    assert place.endswith(f".py:{FIRST + 7}")


def test_what_was_ended_unseen_has_no_place(run, pytester):
    pytester.makeconftest(
        """
import sys
import acl
early_free = acl.rt.free.__wrapped__
"""
    )
    result = run(
        """
from conftest import early_free

def test_unseen(rt):
    kept, ret = rt.malloc(64, 0)
    freed, ret = rt.malloc(64, 0)
    early_free(freed)
    rt.create_event()
"""
    )
    assert lines_with(result, "test leaks: 1 allocation, 1 event, 4 KiB of device memory")
    (place,) = places(result)
    assert place.startswith("  1 event by acl.rt.create_event at ")


def test_what_a_reset_may_have_ended_has_no_place(run):
    result = run(
        """
@pytest.mark.npu(devices=2)
def test_two_devices(rt):
    rt.malloc(64, 0)
    rt.malloc_host(64)
    rt.set_device(1)
    rt.malloc(64, 0)
    rt.reset_device(1)
"""
    )
    assert lines_with(result, "test leaks: 1 allocation, 1 host allocation")
    assert [line.split(" at ")[0] for line in places(result)] == [
        "  1 host allocation by acl.rt.malloc_host"
    ]


def test_many_places_are_cut(run):
    calls = "\n".join(f"    rt.malloc_host(64)  # {n}" for n in range(25))
    result = run(f"def test_many(rt):\n{calls}\n")
    assert len(places(result)) == 21 and places(result)[-1] == "  and 5 more places"


def test_functions_stay_what_they_were(run):
    result = run(
        """
import inspect

def test_functions(rt):
    assert list(inspect.signature(rt.malloc).parameters) == ["size", "policy"]
    assert rt.malloc.__doc__ and rt.malloc.__name__ == "malloc"
    with pytest.raises(TypeError, match="acl.rt.malloc: function takes exactly 2 arguments"):
        rt.malloc(1)
    with pytest.raises(TypeError):
        rt.free([])
    with pytest.raises(TypeError):
        rt.free()
    pointer, ret = rt.malloc(64, 0)
    assert rt.free(pointer + 1) != 0 and rt.free(pointer) == 0 and rt.free(pointer) != 0
"""
    )
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
