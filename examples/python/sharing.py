# SPDX-License-Identifier: Apache-2.0
"""Two interpreters, one block of device memory.

The exporter fills a block and lets exactly one other process in. That one maps the same memory at
an address of its own, reads it and writes an answer into it. The device counts the block once.
"""
import multiprocessing
import os
import zlib

import acl

SIZE, ANSWER = 32 << 20, b"read and understood"

# pyACL has no constants; these are the numbers of its reference.
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
HBM, HBM_IN_HUGE_PAGES, LOCATION_DEVICE, HUGE_PAGES = 1, 4, 1, 1
MEMORY = {"handleType": 0, "allocationType": 0, "memAttr": HBM_IN_HUGE_PAGES, "reserve": 0,
          "location": {"type": LOCATION_DEVICE, "id": 0}}


def check(answer):
    """Gives what a call returned before its status; a status other than 0 is an error."""
    *values, ret = answer if isinstance(answer, tuple) else (answer,)
    if ret != 0:
        raise RuntimeError(f"status {ret}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 1 else values


class Block:
    """Memory that has an address in this process."""

    def __init__(self, handle):
        self.handle = handle
        self.address = check(acl.rt.reserve_mem_address(SIZE, 0, 0, HUGE_PAGES))
        check(acl.rt.map_mem(self.address, SIZE, 0, handle, 0))

    def write(self, data):
        size = len(data)
        check(acl.rt.memcpy(self.address, SIZE, acl.util.bytes_to_ptr(data), size, HOST_TO_DEVICE))

    def read(self):
        host = check(acl.rt.malloc_host(SIZE))
        check(acl.rt.memcpy(host, SIZE, self.address, SIZE, DEVICE_TO_HOST))
        data = acl.util.ptr_to_bytes(host, SIZE)
        check(acl.rt.free_host(host))
        return data

    def close(self):
        check(acl.rt.unmap_mem(self.address))
        check(acl.rt.free_physical(self.handle))
        check(acl.rt.release_mem_address(self.address))


def importer(line):
    check(acl.init())
    check(acl.rt.set_device(0))
    line.send(check(acl.rt.device_get_bare_tgid()))
    number = line.recv()
    line.send(acl.rt.mem_import_from_shareable_handle(number, 0)[1])  # not on the list yet
    line.recv()  # now it is
    block = Block(check(acl.rt.mem_import_from_shareable_handle(number, 0)))
    line.send(zlib.crc32(block.read()))
    block.write(ANSWER)
    line.send(check(acl.rt.get_mem_info(HBM))[0])
    line.recv()  # the exporter has looked
    block.close()
    check(acl.rt.reset_device(0))
    check(acl.finalize())


def main():
    # A fresh interpreter: a forked one could not use pyACL.
    spawn = multiprocessing.get_context("spawn")
    line, other_end = spawn.Pipe()
    child = spawn.Process(target=importer, args=(other_end,), daemon=True)
    child.start()
    other_end.close()  # so that recv ends when the importer does
    check(acl.init())
    check(acl.rt.set_device(0))
    at_first = check(acl.rt.get_mem_info(HBM))[0]
    block = Block(check(acl.rt.malloc_physical(SIZE, MEMORY, 0)))
    data = os.urandom(SIZE)
    block.write(data)
    number = check(acl.rt.mem_export_to_shareable_handle(block.handle, 0, 0))
    print(f"exporter: {SIZE} bytes with checksum {zlib.crc32(data):08x} are share {number:#x}")
    pid = line.recv()
    line.send(number)
    refused = line.recv()
    print(f"importer: process {pid} is not on the list, status {refused}")
    check(acl.rt.mem_set_pid_to_shareable_handle(number, [pid]))
    line.send("listed")
    seen = line.recv()
    print(f"importer: is on the list, and reads bytes with checksum {seen:08x}")
    taken = [at_first - free for free in (check(acl.rt.get_mem_info(HBM))[0], line.recv())]
    print(f"both have it mapped and see bytes taken from the device: {taken[0]}, {taken[1]}")
    after = block.read()
    print(f"exporter: finds '{after[:len(ANSWER)].decode(errors='replace')}'")
    line.send("seen")
    child.join()
    block.close()
    print(f"both have let go: {at_first - check(acl.rt.get_mem_info(HBM))[0]}")
    check(acl.rt.reset_device(0))
    check(acl.finalize())
    right = seen == zlib.crc32(data) and after == ANSWER + data[len(ANSWER) :]
    return 0 if right and refused != 0 and child.exitcode == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
