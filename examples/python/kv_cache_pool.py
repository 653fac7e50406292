# SPDX-License-Identifier: Apache-2.0
"""A pool for the KV cache of a language model.

Each sequence has one reservation, long enough for the longest text, but memory only for the tokens
it has: it grows page by page and never moves. Pages of sequences that have ended go to others.
"""
import random

import acl

MIB = 1 << 20
TOKEN = 64 << 10  # bytes: the keys and values of one token in all layers
SEQUENCES, AT_ONCE, LONGEST = 24, 8, 384  # LONGEST in tokens
DEVICE_TO_HOST, HBM, HBM_IN_HUGE_PAGES, LOCATION_DEVICE, HUGE_PAGES = 2, 1, 4, 1, 1
MEMORY = {"handleType": 0, "allocationType": 0, "memAttr": HBM_IN_HUGE_PAGES, "reserve": 0,
          "location": {"type": LOCATION_DEVICE, "id": 0}}


def check(answer):
    """Gives what a call returned before its status; a status other than 0 is an error."""
    *values, ret = answer if isinstance(answer, tuple) else (answer,)
    if ret != 0:
        raise RuntimeError(f"status {ret}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 1 else values


class Pool:
    """Keeps the pages that no sequence has, and makes new ones only when it is out of them."""

    def __init__(self):
        self.page_size = check(acl.rt.mem_get_allocation_granularity(MEMORY, 0))
        self.idle, self.made, self.recycled = [], 0, 0

    def take(self):
        if self.idle:
            self.recycled += 1
            return self.idle.pop()
        self.made += 1
        return check(acl.rt.malloc_physical(self.page_size, MEMORY, 0))


class Sequence:
    """The cache of one text. Its address is what kernels know it by."""

    def __init__(self, pool, number, goal):
        self.pool, self.number, self.goal, self.length, self.pages = pool, number, goal, 0, []
        self.address = check(acl.rt.reserve_mem_address(LONGEST * TOKEN, 0, 0, HUGE_PAGES))

    def add_token(self):
        end = self.address + self.length * TOKEN
        if self.length * TOKEN == len(self.pages) * self.pool.page_size:
            self.pages.append(self.pool.take())
            check(acl.rt.map_mem(end, self.pool.page_size, 0, self.pages[-1], 0))
        check(acl.rt.memset(end, TOKEN, self.byte_of(self.length), TOKEN))  # a kernel's work
        self.length += 1

    def byte_of(self, token):  # no two sequences have the same page
        return (self.number * 7 + token) % 256

    def is_intact(self, host):
        """Reads all tokens with one copy, since the pages lie side by side."""
        expected = b"".join(bytes([self.byte_of(n)]) * TOKEN for n in range(self.length))
        size = len(expected)
        check(acl.rt.memcpy(host, size, self.address, size, DEVICE_TO_HOST))
        return acl.util.ptr_to_bytes(host, size) == expected

    def end(self):
        for index, page in enumerate(self.pages):
            check(acl.rt.unmap_mem(self.address + index * self.pool.page_size))
            self.pool.idle.append(page)
        check(acl.rt.release_mem_address(self.address))


def main():
    check(acl.init())
    check(acl.rt.set_device(0))
    host = check(acl.rt.malloc_host(LONGEST * TOKEN))
    at_first = check(acl.rt.get_mem_info(HBM))[0]
    pool, dice, running, step, intact = Pool(), random.Random(1), [], 0, 0
    waiting = [Sequence(pool, n, dice.randint(8, LONGEST)) for n in range(SEQUENCES)]
    print("  step  sequences  pages in use  idle  of the device")
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.append(waiting.pop())
        for sequence in list(running):
            sequence.add_token()
            if sequence.length == sequence.goal:
                intact += sequence.is_intact(host)
                sequence.end()
                running.remove(sequence)
        if step % 100 == 0:
            taken = (at_first - check(acl.rt.get_mem_info(HBM))[0]) // MIB
            in_use = sum(len(sequence.pages) for sequence in running)
            print(f"{step:6} {len(running):10} {in_use:13} {len(pool.idle):5} {taken:10} MiB")
        step += 1
    print(f"{SEQUENCES} sequences, {intact} of them intact to their end")
    print(f"{pool.made + pool.recycled} pages mapped: {pool.made} made, {pool.recycled} recycled")
    print(f"fixed buffers would take {AT_ONCE * LONGEST * TOKEN // MIB} MiB from the start")
    for page in pool.idle:
        check(acl.rt.free_physical(page))
    print(f"closed: {at_first - check(acl.rt.get_mem_info(HBM))[0]} bytes in use")
    check(acl.rt.free_host(host))
    check(acl.rt.reset_device(0))
    check(acl.finalize())
    return 0 if intact == SEQUENCES else 1


if __name__ == "__main__":
    raise SystemExit(main())
