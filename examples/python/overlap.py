# SPDX-License-Identifier: Apache-2.0
"""Uploads the next block while the last one is processed: two streams, kept in step by events.

The upload stream fills two places on the device in turn. The work stream fetches what has arrived,
then waits for a function of this program that stands for a kernel. Events tell the streams when a
block has arrived and when its place may be filled again; their times give the chart.
"""
import os
import threading
import zlib

import acl

BLOCK, BLOCKS, PLACES = 8 << 20, 6, 2
PATIENCE = 30000  # milliseconds

# pyACL has no constants; these are the numbers of its reference.
HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST = 0, 1, 2
HUGE_FIRST, BLOCKING = 0, 1


def check(answer):
    """Gives what a call returned before its status; a status other than 0 is an error."""
    *values, ret = answer if isinstance(answer, tuple) else (answer,)
    if ret != 0:
        raise RuntimeError(f"status {ret}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 1 else values


def process(arguments):
    """The kernel. It runs in the thread of serve() while the work stream waits."""
    fetched, checksums = arguments
    checksums.append(zlib.crc32(acl.util.ptr_to_bytes(fetched, BLOCK)))


def serve(context, stream, subscribed):
    check(acl.rt.set_context(context))
    check(acl.rt.subscribe_report(threading.get_ident(), stream))
    subscribed.set()
    for _ in range(BLOCKS):
        check(acl.rt.process_report(PATIENCE))
    check(acl.rt.unsubscribe_report(threading.get_ident(), stream))


def queue(sources, places, fetched, checksums, streams, uploads, works):
    """Queues all steps, each between its two events. Nothing here waits: the streams do."""
    upload, work = streams
    for n, source in enumerate(sources):
        place = places[n % PLACES]
        if n >= PLACES:
            check(acl.rt.stream_wait_event(upload, works[n - PLACES][1]))
        check(acl.rt.record_event(uploads[n][0], upload))
        check(acl.rt.memcpy_async(place, BLOCK, source, BLOCK, HOST_TO_DEVICE, upload))
        check(acl.rt.record_event(uploads[n][1], upload))
        check(acl.rt.stream_wait_event(work, uploads[n][1]))
        check(acl.rt.record_event(works[n][0], work))
        check(acl.rt.memcpy_async(fetched, BLOCK, place, BLOCK, DEVICE_TO_HOST, work))
        check(acl.rt.launch_callback(process, [fetched, checksums], BLOCKING, work))
        check(acl.rt.record_event(works[n][1], work))


def show(uploads, works):
    """Draws when each step ran; gives True if none began before what it had to wait for."""
    times = [[check(acl.rt.event_elapsed_time(uploads[0][0], event)) for event in step]
             for step in uploads + works]
    uploads, works, total = times[:BLOCKS], times[BLOCKS:], times[-1][1]
    for n in range(BLOCKS):
        for name, mark, (begin, end) in (("upload", "=", uploads[n]), ("work", "#", works[n])):
            first, last = int(begin / total * 49), int(end / total * 49)
            bar = " " * first + mark * (last - first + 1)
            print(f"{name:<6} {n} |{bar:<50}| {begin:6.2f} .. {end:6.2f} ms")
    print(f"all steps {sum(end - begin for begin, end in times):.2f} ms, done in {total:.2f} ms")
    waits = list(zip(uploads, works)) + list(zip(works, uploads[PLACES:]))
    return all(before[1] <= after[0] for before, after in waits)


def main():
    check(acl.init())
    check(acl.rt.set_device(0))
    blocks = [os.urandom(BLOCK) for _ in range(BLOCKS)]
    *sources, fetched = [check(acl.rt.malloc_host(BLOCK)) for _ in range(BLOCKS + 1)]
    for source, block in zip(sources, blocks):
        check(acl.rt.memcpy(source, BLOCK, acl.util.bytes_to_ptr(block), BLOCK, HOST_TO_HOST))
    places = [check(acl.rt.malloc(BLOCK, HUGE_FIRST)) for _ in range(PLACES)]
    streams = [check(acl.rt.create_stream()) for _ in range(2)]
    events = [check(acl.rt.create_event()) for _ in range(4 * BLOCKS)]
    steps = list(zip(events[0::2], events[1::2]))
    subscribed, checksums = threading.Event(), []
    context = check(acl.rt.get_context())
    server = threading.Thread(target=serve, args=(context, streams[1], subscribed))
    server.start()
    subscribed.wait(PATIENCE / 1000)
    queue(sources, places, fetched, checksums, streams, steps[:BLOCKS], steps[BLOCKS:])
    check(acl.rt.synchronize_stream_with_timeout(streams[1], PATIENCE))
    server.join()
    print(f"{BLOCKS} blocks of {BLOCK} bytes through {PLACES} places on the device")
    in_order = show(steps[:BLOCKS], steps[BLOCKS:])
    right = checksums == [zlib.crc32(block) for block in blocks]
    print(f"order {'held' if in_order else 'BROKEN'}, bytes {'right' if right else 'WRONG'}")
    for free, things in ((acl.rt.destroy_event, events), (acl.rt.destroy_stream, streams),
                         (acl.rt.free, places), (acl.rt.free_host, [*sources, fetched])):
        for thing in things:
            check(free(thing))
    check(acl.rt.reset_device(0))
    check(acl.finalize())
    return 0 if in_order and right else 1


if __name__ == "__main__":
    raise SystemExit(main())
