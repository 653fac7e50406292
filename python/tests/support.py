# SPDX-License-Identifier: Apache-2.0
"""What several files of tests use: numbers of the interface, and helpers around its calls."""
import contextlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import acl

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 2 * MIB  # what physical memory comes in
LONG = 60000  # milliseconds: nothing takes so long
BAD_IDS = [-1, 8, 9, 2**31 - 1, -(2**31)]  # of devices

# ---- Status codes ----

INVALID_PARAM = 100000
ALREADY_INITIALISED = 100002
INVALID_FILE = 100003
RT_PARAM_INVALID = 107000
INVALID_DEVICE = 107001
NO_CONTEXT = 107002
OTHER_CONTEXT = 107003
NO_TIME = 107006
TIME_REVERSED = 107007
STREAM_SUBSCRIBE = 107011
THREAD_SUBSCRIBE = 107012
NOBODY_SERVES = 107015
INVALID_MEMORY_TYPE = 107016
INVALID_HANDLE = 107017
PARAMETER_NOT_SET = 107021
DEVICE_ABORTED = 107022
STREAM_ABORTED = 107023
FEATURE_UNSUPPORTED = 200006
NOT_SUPPORTED = 207000
OUT_OF_MEMORY = 207001
NO_PERMISSION = 207006
NEVER_RECORDED = 507000
DEVICE_NOT_SET = 507007
NOTHING_CAME = 507012
DEVICE_FAULT = 507013
STREAM_SYNC_TIMEOUT = 507046
EVENT_SYNC_TIMEOUT = 507047
ALREADY_REGISTERED = 507910
NOT_REGISTERED = 507911

# ---- Enumerations ----

HUGE_FIRST, HUGE_ONLY, NORMAL_ONLY, HUGE1G_ONLY = 0, 1, 2, 6  # policies of malloc
DDR, HBM, DDR_HUGE, HBM_HUGE, HBM_NORMAL = 0, 1, 2, 4, 5  # kinds of memory
HBM_HUGE1G, NORMAL, HUGE, HUGE1G, P2P_NORMAL, P2P_HUGE = 10, 12, 13, 14, 15, 16
MODULE_ID, DEVICE_ID, VA_FLAG, UNKNOWN_ATTRIBUTE = 1, 2, 3, 77  # of a configuration
HOST, DEVICE, UNREGISTERED, MANAGED = 0, 1, 2, 3  # where memory lies
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
COMPLETE, NOT_READY = 0, 1  # of a stream
SYNC = 1  # flag of an event


# ---- Dictionaries ----


def prop(attribute=HBM_HUGE, kind=DEVICE, number=0, **changes):
    """Properties of physical memory."""
    wanted = {
        "handleType": 0,
        "allocationType": 0,
        "memAttr": attribute,
        "location": {"id": number, "type": kind},
        "reserve": 0,
    }
    wanted.update(changes)
    return wanted


def prop_without(key):
    wanted = prop()
    del wanted[key]
    return wanted


def configuration(*pairs):
    """What malloc_with_cfg and its like take, of pairs of attribute and value."""
    return {
        "attrs": [{"attr": attribute, "value": value} for attribute, value in pairs],
        "numAttrs": len(pairs),
    }


# ---- Arguments ----


class Index:
    """An integer in all but type."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Data(list):
    """A list that weak references can watch."""


# ---- Memory ----


@contextlib.contextmanager
def made(create, destroy, *arguments):
    """What create(*arguments) gives; destroyed when the block is left."""
    value, ret = create(*arguments)
    assert ret == 0
    yield value
    assert destroy(value) == 0


def write(address, data):
    source = acl.util.bytes_to_ptr(data)
    assert acl.rt.memcpy(address, len(data), source, len(data), HOST_TO_DEVICE) == 0


def read(address, size):
    data = bytes(size)
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(data), size, address, size, DEVICE_TO_HOST) == 0
    return data


def free_bytes(attribute=HBM):
    free, _, ret = acl.rt.get_mem_info(attribute)
    assert ret == 0
    return free


# ---- Answers ----


def refused_with(code, answer, empty=(0,)):
    """Whether the answer is the status alone, or comes after one of the empty values."""
    return answer == code or answer in [(value, code) for value in empty]


@contextlib.contextmanager
def unraisable_exceptions():
    """Collects what goes to sys.unraisablehook, without keeping the objects."""
    caught = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: caught.append((told.exc_type, str(told.exc_value)))
    try:
        yield caught
    finally:
        sys.unraisablehook = before


# ---- Threads and streams ----


def on_bare_thread(call, *arguments):
    """What the call answers in a new thread, which has no context."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call, *arguments).result()


class Gate:
    """Holds a stream by an event that is recorded, on the default stream, to open the gate.

    As a context manager it ends after the block, and a stream that it still holds goes on.
    """

    def __init__(self, stream):
        self.event, ret = acl.rt.create_event_with_flag(SYNC)
        assert ret == 0
        assert acl.rt.stream_wait_event(stream, self.event) == 0

    def open(self):
        assert acl.rt.record_event(self.event, 0) == 0

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        assert acl.rt.destroy_event(self.event) == 0


@contextlib.contextmanager
def opened_by_another_thread(gate):
    """The block waits for what the gate holds, while another thread opens the gate.

    If the wait kept the interpreter to itself, no thread could open it.
    """
    context = acl.rt.get_context()[0]
    about_to_wait = threading.Event()

    def open_gate():
        assert about_to_wait.wait(LONG / 1000)
        assert acl.rt.set_context(context) == 0
        gate.open()

    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(open_gate)
        about_to_wait.set()
        yield
        opening.result()


def wait_ended_by(abort, stream):
    """What a thread that waits for the stream is told when abort() drops the stream's tasks."""
    context = acl.rt.get_context()[0]

    def wait():
        assert acl.rt.set_context(context) == 0
        return acl.rt.synchronize_stream(stream)

    # An abort that comes before the wait meets nothing; then all of it again.
    for _ in range(1000):
        with Gate(stream), ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(wait)
            acl.rt.synchronize_stream_with_timeout(stream, 1)
            assert abort() == 0
            answer = waiting.result()
        if answer != 0:
            break
    return answer
