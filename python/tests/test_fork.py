# SPDX-License-Identifier: Apache-2.0
"""A fork child may use the module, and starts with nothing of its parent's."""

# Ends with the code of the child.
PROGRAM = """
import os, sys, threading
import acl

thread = threading.get_ident()
assert acl.init() == 0 and acl.rt.set_device(0) == 0
stream = acl.rt.create_stream()[0]
assert acl.rt.subscribe_report(thread, stream) == 0
for block in (0, 1):
    assert acl.rt.launch_callback(print, ["never"], block, stream) == 0
buffer = acl.create_data_buffer(1, 2)
memory = acl.rt.malloc(2 << 20, 0)[0]


def child():
{body}


process = os.fork()
if process == 0:
    child()
    sys.exit()  # with its exit handlers
status = os.waitpid(process, 0)[1]
assert acl.get_data_buffer_size_v2(buffer) == 2
assert acl.rt.stream_abort(stream) == 0 and acl.rt.free(memory) == 0
sys.exit(status != 0)
"""


def in_child(fresh, body):
    fresh(PROGRAM.format(body=body))


def test_nothing_of_the_parents_is_known(fresh):
    in_child(
        fresh,
        """
    assert acl.destroy_data_buffer(buffer) == 100000
    assert acl.rt.free(memory) != 0
    assert acl.rt.destroy_stream(stream) != 0
    assert acl.rt.process_report(10) != 0
    assert acl.rt.get_device()[1] != 0
""",
    )


def test_memory_streams_and_callbacks_work(fresh):
    in_child(
        fresh,
        """
    assert acl.rt.set_device(0) == 0
    own, seen = acl.rt.create_stream()[0], []
    assert acl.rt.subscribe_report(thread, own) == 0
    assert acl.rt.launch_callback(seen.append, [1], 1, own) == 0
    assert acl.rt.process_report(60000) == 0 and seen == [[1]]
    address, ret = acl.rt.malloc(4096, 0)
    assert ret == 0 and acl.rt.memset(address, 4096, 1, 4096) == 0 and acl.rt.free(address) == 0
    assert acl.rt.launch_callback(print, ["dropped"], 1, own) == 0
    assert acl.rt.stream_abort(own) == 0
""",
    )


def test_threads_of_the_parents_cannot_be_stopped(fresh):
    printed = fresh(
        """
        import os
        import acl
        thread_id, ret = acl.util.start_thread(len, [])
        child = os.fork()
        if child == 0:
            os._exit(0 if acl.util.stop_thread(thread_id) == 100000 else 1)
        print(os.waitpid(child, 0)[1], acl.util.stop_thread(thread_id))
        """
    )
    assert printed.split() == ["0", "0"]
