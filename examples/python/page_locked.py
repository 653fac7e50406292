# SPDX-License-Identifier: Apache-2.0
"""One page-locked host block, cut into pieces by hand, on its way to a device and back.

Allocating page-locked memory is slow, so programs take one large block and cut it up. The rule for
pieces: room for the length rounded up to 32, and 32 bytes more that the device may touch behind the
end; every piece starts at a multiple of 64.
"""
import zlib

import acl

BLOCK = 1 << 20
LENGTHS = (1, 31, 32, 33, 1000, 4096, 70000, 150528)  # the last: an image of 224 x 224 x 3
UNTOUCHED = 0xEE

# pyACL has no constants; these are the numbers of its reference.
HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST = 0, 1, 2
HUGE_FIRST = 0


def check(answer):
    """Gives what a call returned before its status; a status other than 0 is an error."""
    *values, ret = answer if isinstance(answer, tuple) else (answer,)
    if ret != 0:
        raise RuntimeError(f"status {ret}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 1 else values


def align_up(length, step):
    return ((length - 1) // step + 1) * step


def cut(lengths):
    """Gives (offset, length, room) of each piece, one behind the other."""
    offset = 0
    for length in lengths:
        room = align_up(length, 32) + 32
        yield offset, length, room
        offset += align_up(room, 64)


def message(number, length):
    """What piece `number` carries: a different text in each."""
    text = f"piece {number} of {len(LENGTHS)}. ".encode()
    return (text * (length // len(text) + 1))[:length]


def locked_block():
    """Page-locked memory comes with whatever was in it before: fill it."""
    block = check(acl.rt.malloc_host(BLOCK))
    check(acl.rt.memset(block, BLOCK, UNTOUCHED, BLOCK))
    return block


def round_trip(number, piece, outgoing, incoming, device):
    """Sends one piece to the device, fetches it into the other block; gives True if it is right."""
    offset, length, room = piece
    sent = message(number, length)
    source, target = outgoing + offset, incoming + offset
    check(acl.rt.memcpy(source, room, acl.util.bytes_to_ptr(sent), length, HOST_TO_HOST))
    check(acl.rt.memcpy(device + offset, room, source, length, HOST_TO_DEVICE))
    check(acl.rt.memcpy(target, room, device + offset, length, DEVICE_TO_HOST))
    received = acl.util.ptr_to_bytes(target, room)
    right = received == sent + bytes([UNTOUCHED]) * (room - length)
    print(
        f"{number:5} {length:8} {room:8} {offset:+8} {source % 64:7}"
        f"  {zlib.crc32(sent):08x} -> {zlib.crc32(received[:length]):08x}"
        f"  {'same' if right else 'DIFFERENT'}"
    )
    return right


def main():
    check(acl.init())
    check(acl.rt.set_device(0))
    outgoing, incoming = locked_block(), locked_block()
    device = check(acl.rt.malloc(BLOCK, HUGE_FIRST))

    print(f"two page-locked blocks of {BLOCK} bytes: {outgoing:#x}, {incoming:#x}")
    print("piece   length     room   offset  mod 64  sent        received")
    pieces = list(cut(LENGTHS))
    right = [
        round_trip(number, piece, outgoing, incoming, device)
        for number, piece in enumerate(pieces, start=1)
    ]
    offset, _length, room = pieces[-1]
    end = align_up(offset + room, 64)
    print(f"{sum(LENGTHS)} bytes in {len(pieces)} pieces take {end} bytes of the block")
    rest = acl.util.ptr_to_bytes(incoming + end, BLOCK - end)
    untouched = rest == bytes([UNTOUCHED]) * len(rest)
    print(f"the {len(rest)} bytes behind them are {'untouched' if untouched else 'CHANGED'}")

    check(acl.rt.free(device))
    check(acl.rt.free_host(outgoing))
    check(acl.rt.free_host(incoming))
    check(acl.rt.reset_device(0))
    check(acl.finalize())
    return 0 if all(right) and untouched else 1


if __name__ == "__main__":
    raise SystemExit(main())
