# SPDX-License-Identifier: Apache-2.0
"""An inference engine that sleeps: it gives its device memory back and keeps its addresses.

While it sleeps, its weights are in page-locked host memory and others can have the device's. When
it wakes, it has other memory at the same addresses, so every pointer that was noted before is good.
"""
import os

import acl

MIB = 1 << 20
LAYERS, LAYER = 6, 8 * MIB
ALL = LAYERS * LAYER

# pyACL has no constants; these are the numbers of its reference.
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
HBM, HBM_IN_HUGE_PAGES, LOCATION_DEVICE = 1, 4, 1
HUGE_FIRST, HUGE_PAGES = 0, 1
MEMORY = {"handleType": 0, "allocationType": 0, "memAttr": HBM_IN_HUGE_PAGES, "reserve": 0,
          "location": {"type": LOCATION_DEVICE, "id": 0}}


def check(answer):
    """Gives what a call returned before its status; a status other than 0 is an error."""
    *values, ret = answer if isinstance(answer, tuple) else (answer,)
    if ret != 0:
        raise RuntimeError(f"status {ret}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 1 else values


class Engine:
    """Its layers lie side by side in one reservation, which it keeps for life."""

    def __init__(self, weights):
        self.base = check(acl.rt.reserve_mem_address(ALL, 0, 0, HUGE_PAGES))
        self.layers = [self.base + number * LAYER for number in range(LAYERS)]
        self.handles = []
        self.bed = check(acl.rt.malloc_host(ALL))  # where the weights sleep
        self._take_memory()
        check(acl.rt.memcpy(self.base, ALL, acl.util.bytes_to_ptr(weights), ALL, HOST_TO_DEVICE))

    def sleep(self):
        check(acl.rt.memcpy(self.bed, ALL, self.base, ALL, DEVICE_TO_HOST))
        self._give_memory_back()

    def wake(self):
        self._take_memory()
        check(acl.rt.memcpy(self.base, ALL, self.bed, ALL, HOST_TO_DEVICE))

    def close(self):
        self._give_memory_back()
        check(acl.rt.release_mem_address(self.base))
        check(acl.rt.free_host(self.bed))

    def _take_memory(self):
        for address in self.layers:
            self.handles.append(check(acl.rt.malloc_physical(LAYER, MEMORY, 0)))
            check(acl.rt.map_mem(address, LAYER, 0, self.handles[-1], 0))

    def _give_memory_back(self):
        for address in self.layers:
            check(acl.rt.unmap_mem(address))
            check(acl.rt.free_physical(self.handles.pop(0)))


def read(address, size):
    host = check(acl.rt.malloc_host(size))
    check(acl.rt.memcpy(host, size, address, size, DEVICE_TO_HOST))
    data = acl.util.ptr_to_bytes(host, size)
    check(acl.rt.free_host(host))
    return data


def main():
    check(acl.init())
    check(acl.rt.set_device(0))
    at_first, total = check(acl.rt.get_mem_info(HBM))
    print(f"{acl.get_soc_name()}, {total // MIB} MiB; {LAYERS} layers of {LAYER // MIB} MiB")

    def report(what):
        free, _total = check(acl.rt.get_mem_info(HBM))
        print(f"{what:<12} {(at_first - free) // MIB:4} MiB taken {free:13} bytes free")

    weights = os.urandom(ALL)
    engine = Engine(weights)
    noted = list(engine.layers)  # as a captured graph notes the addresses it works on
    report("awake")
    engine.sleep()
    report("asleep")
    guest = check(acl.rt.malloc(ALL, HUGE_FIRST))  # meanwhile another owner uses the memory
    check(acl.rt.memset(guest, ALL, 0xFF, ALL))
    report("with a guest")  # one page more: malloc adds 32 bytes to every block
    check(acl.rt.free(guest))
    engine.wake()
    report("awake again")

    right = True
    for number, address in enumerate(noted):
        same = read(address, LAYER) == weights[number * LAYER : (number + 1) * LAYER]
        print(f"  layer {number} at {address:#x}: {'as it was' if same else 'WRONG BYTES'}")
        right = right and same
    engine.close()
    report("closed")
    check(acl.rt.reset_device(0))
    check(acl.finalize())
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
