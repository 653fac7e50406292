# SPDX-License-Identifier: Apache-2.0
"""acl.util: start_thread and stop_thread."""
import gc
import threading
import weakref

import pytest

import acl
from support import LONG, NO_CONTEXT, Data, unraisable_exceptions


def test_a_thread_gets_the_list_itself_and_has_no_context(device):
    given, seen = ["argument"], []

    def body(arguments):
        seen.extend([arguments is given, threading.get_ident(), acl.rt.get_context()])

    thread_id, ret = acl.util.start_thread(body, given)
    assert ret == 0
    assert acl.util.stop_thread(thread_id) == 0
    assert seen == [True, thread_id, (0, NO_CONTEXT)]


def test_several_threads_run_at_once():
    barrier, met = threading.Barrier(5), []

    def body(number):
        barrier.wait(LONG / 1000)
        met.append(number[0])

    threads = [acl.util.start_thread(body, [number]) for number in range(4)]
    assert [ret for _, ret in threads] == [0] * 4
    assert len({thread_id for thread_id, _ in threads}) == 4
    barrier.wait(LONG / 1000)
    assert [acl.util.stop_thread(thread_id) for thread_id, _ in threads] == [0] * 4
    assert sorted(met) == [0, 1, 2, 3]


def test_a_thread_is_stopped_once():
    thread_id, ret = acl.util.start_thread(print, Data())
    assert ret == 0
    assert acl.util.stop_thread(thread_id) == 0
    assert acl.util.stop_thread(thread_id) != 0


@pytest.mark.parametrize("unknown", [0, 1, 2**64 - 1, threading.get_ident()])
def test_unknown_threads_cannot_be_stopped(unknown):
    assert acl.util.stop_thread(unknown) != 0


def test_an_exception_ends_its_thread_alone():
    def body(arguments):
        raise ValueError("of a thread")

    with unraisable_exceptions() as caught:
        thread_id, ret = acl.util.start_thread(body, [])
        assert ret == 0
        assert acl.util.stop_thread(thread_id) == 0
    assert caught == [(ValueError, "of a thread")]


def test_function_and_list_of_a_thread_live_as_long_as_it():
    may_end = threading.Event()

    def body(arguments):
        may_end.wait(LONG / 1000)

    arguments = Data()
    watched = [weakref.ref(body), weakref.ref(arguments)]
    thread_id, ret = acl.util.start_thread(body, arguments)
    assert ret == 0
    del body, arguments
    gc.collect()
    assert all(watch() is not None for watch in watched)
    may_end.set()
    assert acl.util.stop_thread(thread_id) == 0
    gc.collect()
    assert [watch() for watch in watched] == [None, None]


def test_a_thread_cannot_wait_for_itself(fresh):
    fresh(
        """
        import threading
        import acl
        answers = []
        stop_self = lambda given: answers.append(acl.util.stop_thread(threading.get_ident()))
        thread_id, ret = acl.util.start_thread(stop_self, [])
        acl.util.stop_thread(thread_id)
        assert len(answers) == 1 and answers[0] != 0
        """
    )
