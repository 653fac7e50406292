# SPDX-License-Identifier: Apache-2.0
"""The end of the interpreter while threads run, callbacks are pending or one is set."""
import textwrap

import pytest

# A stream that stays held, and an object that waits for it when the interpreter is nearly gone:
# that gives the other threads a chance to run.
PRELUDE = """
    import sys
    import threading
    import acl
    assert acl.rt.set_device(0) == 0
    stream, held = [acl.rt.create_stream()[0] for _ in range(2)]
    assert acl.rt.stream_wait_event(held, acl.rt.create_event_with_flag(1)[0]) == 0

    class Last:
        def __del__(self, wait=acl.rt.synchronize_stream_with_timeout, stream=held):
            wait(stream, 500)

    sys.last = Last()
"""


@pytest.fixture
def ends(fresh):
    """ends(source, *arguments): whether PRELUDE and the source run to their end and no further."""

    def run(source, *arguments):
        whole = textwrap.dedent(PRELUDE) + textwrap.dedent(source) + 'print("end")\n'
        return fresh(whole, *arguments).split() == ["end"]

    return run


@pytest.mark.parametrize("last_seen", ["waiting", "serving", "computing", "in a callback"])
def test_the_program_ends_while_a_thread_runs(ends, last_seen):
    assert ends(
        """
        context = acl.rt.get_context()[0]
        subscribed, running = threading.Event(), threading.Event()

        def compute(given):
            running.set()
            while True:
                pass

        def run(given):
            acl.rt.set_context(context)
            subscribed.wait()
            if given[0] == "in a callback":
                acl.rt.process_report(-1)
            if given[0] == "computing":
                compute(given)
            running.set()
            acl.rt.process_report(-1) if given[0] == "serving" else threading.Event().wait()

        thread_id, ret = acl.util.start_thread(run, sys.argv[1:])
        assert acl.rt.subscribe_report(thread_id, stream) == 0
        subscribed.set()
        if sys.argv[1] == "in a callback":
            assert acl.rt.launch_callback(compute, [], 1, stream) == 0
        running.wait()
        """,
        last_seen,
    )


@pytest.mark.parametrize("attempt", range(5))
def test_the_program_ends_while_threads_begin(ends, attempt):
    assert ends("for _ in range(20): acl.util.start_thread(len, [])\n")


@pytest.mark.parametrize("where", ["__del__", "unraisablehook"])
def test_the_program_ends_while_a_thread_is_at_the_end_of_a_callback(ends, where):
    assert ends(
        """
        subscribed, running = threading.Event(), threading.Event()

        def compute(*_):
            running.set()
            while True:
                pass

        class Slow:
            __del__ = compute

        def serve(_):
            subscribed.wait()
            acl.rt.process_report(-1)

        thread_id, ret = acl.util.start_thread(serve, [])
        assert acl.rt.subscribe_report(thread_id, stream) == 0
        if sys.argv[1] == "__del__":
            assert acl.rt.launch_callback(lambda given: given.clear(), [Slow()], 1, stream) == 0
        else:
            sys.unraisablehook = compute
            assert acl.rt.launch_callback(lambda given: given.missing, [], 1, stream) == 0
        subscribed.set()
        running.wait()
        """,
        where,
    )


def test_a_callback_at_the_very_end_is_refused(ends):
    assert ends(
        """
        import atexit

        def launch():
            assert acl.rt.subscribe_report(threading.get_ident(), stream) == 0
            assert acl.rt.launch_callback(print, ["never"], 0, stream) == 100001

        # Handlers run last in, first out, and that of the module was registered by its import.
        atexit._clear()
        atexit.register(launch)
        import importlib
        del sys.modules["acl"]
        importlib.import_module("acl")
        """
    )


def test_the_program_ends_while_callbacks_are_pending(ends):
    assert ends(
        """
        assert acl.rt.subscribe_report(threading.get_ident(), stream) == 0
        for block in (0, 1):
            assert acl.rt.launch_callback(print, ["never"], block, stream) == 0
        """
    )


@pytest.mark.parametrize("moment", ["never", "at the end"])
def test_the_program_ends_with_a_callback_set(ends, moment):
    assert ends(
        """
        opener = acl.rt.create_event_with_flag(1)[0]
        assert acl.rt.stream_wait_event(stream, opener) == 0
        called = threading.Event()

        def compute(info):
            called.set()
            while True:
                pass

        assert acl.rt.set_exception_info_callback(compute) == 0
        memory = acl.rt.malloc(64, 2)[0]
        assert acl.rt.memset_async(memory, 64, 1, 64, stream) == 0
        assert acl.rt.free(memory) == 0
        if sys.argv[1] != "never":
            assert acl.rt.record_event(opener, 0) == 0
            called.wait()
        """,
        moment,
    )
