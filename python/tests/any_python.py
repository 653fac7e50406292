# SPDX-License-Identifier: Apache-2.0
"""What test_other_pythons.py runs with every interpreter: the module without numpy and pytest."""
import sys
import threading

import acl

SIZE = 2 << 20
HBM_HUGE = 4
ROUNDS = 100
PROPERTY = {
    "handleType": 0,
    "allocationType": 0,
    "memAttr": HBM_HUGE,
    "location": {"id": 0, "type": 1},
    "reserve": 0,
}


def check(result):
    """Everything but the status, which must be 0."""
    values = result if isinstance(result, tuple) else (result,)
    if values[-1] != 0:
        raise SystemExit(f"status {values[-1]}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 2 else values[:-1]


def map_copy_and_read():
    address = check(acl.rt.reserve_mem_address(SIZE, 0, 0, 1))
    handle = check(acl.rt.malloc_physical(SIZE, PROPERTY, 0))
    check(acl.rt.map_mem(address, SIZE, 0, handle, 0))
    text = b"one abi3 file for every Python"
    check(acl.rt.memcpy(address, SIZE, acl.util.bytes_to_ptr(text), len(text), 1))
    back = bytes(len(text))
    check(acl.rt.memcpy(acl.util.bytes_to_ptr(back), len(back), address, len(text), 2))
    assert back == text
    check(acl.rt.unmap_mem(address))
    check(acl.rt.free_physical(handle))
    check(acl.rt.release_mem_address(address))


def run_callbacks(count):
    seen, stop = [], []

    def serve(_):
        while not stop:
            acl.rt.process_report(1)

    stream = check(acl.rt.create_stream())
    thread = check(acl.util.start_thread(serve, []))
    check(acl.rt.subscribe_report(thread, stream))
    for number in range(count):
        check(acl.rt.launch_callback(seen.append, [number], number % 2, stream))
    # Those that do not hold the stream may come after it is done; this one holds it.
    done = threading.Event()
    check(acl.rt.launch_callback(lambda _: done.set(), [], 1, stream))
    check(acl.rt.synchronize_stream(stream))
    assert done.is_set() and sorted(seen) == [[number] for number in range(count)]
    stop.append(True)
    check(acl.util.stop_thread(thread))
    check(acl.rt.unsubscribe_report(thread, stream))
    check(acl.rt.destroy_stream(stream))


def refuse_what_is_wrong():
    for call, arguments, error in (
        (acl.rt.malloc, (1,), TypeError),
        (acl.rt.malloc, (1.5, 0), TypeError),
        (acl.rt.malloc, (1, 1 << 40), OverflowError),
        (acl.rt.malloc_physical, (SIZE, {}, 0), KeyError),
        (acl.rt.launch_callback, (1, [], 0, 0), TypeError),
        (acl.util.ptr_to_bytes, (1, 8), ValueError),
    ):
        try:
            call(*arguments)
        except error:
            continue
        raise SystemExit(f"{call.__name__}{arguments} raised no {error.__name__}")


def one_round():
    map_copy_and_read()
    run_callbacks(20)
    refuse_what_is_wrong()
    assert acl.rt.malloc(0, 0) == (0, 100000) and "size" in acl.get_recent_err_msg()
    assert acl.rt.get_mem_info(1)[2] == 0


def objects_left_by_rounds():
    """The fewest of several tries, since Python keeps some freed objects for later."""
    fewest = ROUNDS
    for _ in range(10):
        before = sys.getallocatedblocks()
        for _ in range(ROUNDS):
            one_round()
        fewest = min(fewest, sys.getallocatedblocks() - before)
        if fewest < ROUNDS // 2:
            break
    return fewest


def main():
    check(acl.init())
    check(acl.rt.set_device(0))
    left = objects_left_by_rounds()
    assert left < ROUNDS // 2, f"{ROUNDS} rounds leave {left} objects, however often"
    check(acl.rt.reset_device(0))
    check(acl.finalize())
    print("everything works")


main()
