# SPDX-License-Identifier: Apache-2.0
"""Measures one thing in a fresh interpreter and prints the figure: measure.py WHAT [AMOUNT]

import            milliseconds of `import acl`
get_device COUNT  nanoseconds of one acl.rt.get_device() of so many, without those of the loop
malloc COUNT      the same for a pair of acl.rt.malloc and acl.rt.free of 4 KiB
round_trip BYTES  milliseconds to copy an array to the device and back; nothing without numpy
"""
import itertools
import sys
import time


def milliseconds(action):
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1e3


def start_device():
    import acl

    assert acl.init() == 0 and acl.rt.set_device(0) == 0
    return acl


def measure_import():
    def load():
        import acl  # noqa: F401

    return milliseconds(load)


def measure_get_device(count):
    get_device = start_device().rt.get_device

    def calls():
        for _ in itertools.repeat(None, int(count)):
            get_device()

    return nanoseconds_of_one(calls, int(count))


def measure_malloc(count):
    rt = start_device().rt
    malloc, free = rt.malloc, rt.free

    def calls():
        for _ in itertools.repeat(None, int(count)):
            free(malloc(4096, 0)[0])

    return nanoseconds_of_one(calls, int(count))


def nanoseconds_of_one(calls, count):
    def nothing():
        for _ in itertools.repeat(None, count):
            pass

    return (milliseconds(calls) - milliseconds(nothing)) * 1e6 / count


def measure_round_trip(size):
    try:
        import numpy
    except ImportError:
        return None
    acl = start_device()
    size = int(size)
    source = numpy.arange(size // 8, dtype=numpy.int64)
    target = numpy.zeros_like(source)
    device, ret = acl.rt.malloc(size, 0)
    assert ret == 0

    def copy():
        assert acl.rt.memcpy(device, size, acl.util.numpy_to_ptr(source), size, 1) == 0
        assert acl.rt.memcpy(acl.util.numpy_to_ptr(target), size, device, size, 2) == 0

    copy()  # everything is touched by now
    spent = min(milliseconds(copy) for _ in range(3))  # the best of a few, as in C
    assert (source == target).all()
    return spent


MEASUREMENTS = {
    "import": measure_import,
    "get_device": measure_get_device,
    "malloc": measure_malloc,
    "round_trip": measure_round_trip,
}

figure = MEASUREMENTS[sys.argv[1]](*sys.argv[2:])
print("none" if figure is None else figure)
