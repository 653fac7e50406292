# SPDX-License-Identifier: Apache-2.0
"""understudy.limit_leaks and understudy.ratchet: in an interpreter of its own where places matter."""
import sys
import textwrap

import acl
import pytest

import understudy
from understudy.limit import parse_size

MIB = 1 << 20


def allocate(size=2 * MIB - 64):
    pointer, ret = acl.rt.malloc(size, 1)  # whole huge pages
    assert ret == 0
    return pointer


def test_a_block_that_frees_all_passes(device):
    with understudy.limit_leaks():
        acl.rt.free(allocate())


def test_what_stays_is_named(device):
    with pytest.raises(understudy.LeakError) as error:
        with understudy.limit_leaks():
            pointer = allocate()
    acl.rt.free(pointer)
    first, hint = str(error.value).splitlines()
    assert first == (
        "leaks: 1 allocation, 2 MiB of device memory (acl.rt.free); nothing may stay"
    )
    assert "choose a check" in hint


@pytest.mark.parametrize("limit, passes", [
    (dict(bytes="2MB"), True), (dict(bytes=2 * MIB), True), (dict(bytes="1MB"), False),
    (dict(bytes="4M", objects=1), True), (dict(bytes="4M", objects=0), False),
    (dict(objects=1), False),
])
def test_limits(device, limit, passes):
    made = []
    if passes:
        with understudy.limit_leaks(**limit):
            made.append(allocate())
    else:
        with pytest.raises(understudy.LeakError, match=" may stay\n"):
            with understudy.limit_leaks(**limit):
                made.append(allocate())
    acl.rt.free(*made)


def test_an_exception_comes_first(device):
    made = []
    with pytest.raises(KeyError):
        with understudy.limit_leaks():
            made.append(allocate())
            raise KeyError
    acl.rt.free(*made)


def test_a_function_has_a_limit_each_time(device):
    made = []

    @understudy.limit_leaks("2M")
    def leave():
        made.append(allocate())

    leave()
    leave()
    for each in made:
        acl.rt.free(each)


def test_cycles_that_hold_pass(device):
    kept = []
    cycles = 0
    for cycle in understudy.ratchet(6):
        assert cycle == cycles
        cycles += 1
        if cycle < 2:  # what warms up may stay
            kept.append(allocate())
        if cycle == 4:  # and so may what grows once
            kept.append(allocate())
        acl.rt.free(allocate())
    assert cycles == 6
    for each in kept:
        acl.rt.free(each)


def test_cycles_that_grow_fail(device):
    kept = []
    with pytest.raises(understudy.LeakError) as error:
        understudy.ratchet(cycles=6, warmup=2)(lambda: kept.append(allocate()))
    assert len(kept) == 6
    for each in kept:
        acl.rt.free(each)
    assert str(error.value).splitlines()[0] == (
        "grows in each of 4 cycles: by 2 MiB of device memory, 1 allocation a cycle"
    )


def test_uneven_growth_has_its_range(device):
    kept = []
    with pytest.raises(understudy.LeakError, match="by 1 to 3 streams a cycle"):
        for cycle in understudy.ratchet(5, warmup=0):
            kept += [acl.rt.create_stream()[0] for _ in range(3 if cycle == 3 else 1)]
    for each in kept:
        acl.rt.destroy_stream(each)


def test_a_loop_that_is_left_is_not_judged(device):
    kept = []
    for cycle in understudy.ratchet(10):
        kept.append(allocate())
        if cycle == 5:
            break
    for each in kept:
        acl.rt.free(each)


@pytest.mark.parametrize("cycles, warmup", [(3, 2), (0, 0), (10, -1)])
def test_too_few_cycles_are_refused(cycles, warmup):
    with pytest.raises(ValueError):
        understudy.ratchet(cycles, warmup)


@pytest.mark.parametrize("text, count", [
    ("0", 0), (17, 17), ("4096", 4096), ("64K", 65536), ("1MB", MIB), ("1 MiB", MIB),
    ("1.5g", 3 << 29), ("2TB", 2 << 40),
])
def test_sizes(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "many", "1XB", "-1", -1, "1 2"])
def test_wrong_sizes_are_refused(text):
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)


PROGRAM = """
import acl, understudy

acl.init()
acl.rt.set_device(0)
kept = []

def wake():
    kept.append(acl.rt.create_stream()[0])
    pointer, ret = acl.rt.malloc(4096, 0)
    acl.rt.free(pointer)

try:
    for _ in understudy.ratchet(10):
        wake()
except understudy.LeakError as error:
    print(error)
try:
    with understudy.limit_leaks():
        wake()
        pointer, ret = acl.rt.malloc(4096, 0)
except understudy.LeakError as error:
    print(error)
acl.rt.free(pointer)
for each in kept:
    acl.rt.destroy_stream(each)
acl.rt.reset_device(0)
"""


def test_places_are_lines_of_python_where_a_check_is_chosen(tmp_path):
    program = tmp_path / "engine.py"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    with_places = understudy.Server(check="leaks")
    done = with_places.run([sys.executable, str(program)], capture_output=True, text=True)
    with_places.close()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "grows in each of 8 cycles: by 1 stream a cycle",
        "  8 streams on device 0, created at engine.py:9 by aclrtCreateStream",
        "leaks: 1 allocation, 1 stream, 8 KiB of device memory (acl.rt.free, destroy_stream);"
        " nothing may stay",
        "  1 stream on device 0, created at engine.py:9 by aclrtCreateStream",
        "  1 allocation of 4 KiB on device 0, allocated at engine.py:21 by aclrtMalloc",
    ]
