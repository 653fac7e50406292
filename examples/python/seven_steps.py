# SPDX-License-Identifier: Apache-2.0
"""The seven steps of virtual memory, on two devices of one process.

Addresses are reserved, memory is allocated, and a mapping joins the two. Step by step this prints
what each device has given away; in the middle, bytes travel from one device to the other.
"""
import os

import acl

MIB = 1 << 20
SIZE = 20 * MIB
DEVICES = (0, 1)

# pyACL has no constants; these are the numbers of its reference.
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
HBM, HBM_IN_HUGE_PAGES = 1, 4
LOCATION_DEVICE = 1
HUGE_PAGES = 1


def check(answer):
    """Gives what a call returned before its status; a status other than 0 is an error."""
    *values, ret = answer if isinstance(answer, tuple) else (answer,)
    if ret != 0:
        raise RuntimeError(f"status {ret}: {acl.get_recent_err_msg()}")
    return values[0] if len(values) == 1 else values


def open_device(device, peer):
    check(acl.rt.set_device(device))
    check(acl.rt.device_enable_peer_access(peer, 0))  # for copies from this device to the other
    return check(acl.rt.get_context())


def allocate(device):
    location = {"type": LOCATION_DEVICE, "id": device}
    properties = {"handleType": 0, "allocationType": 0, "memAttr": HBM_IN_HUGE_PAGES,
                  "location": location, "reserve": 0}
    return check(acl.rt.malloc_physical(SIZE, properties, 0))


def free_memory(context):
    check(acl.rt.set_context(context))
    free, _total = check(acl.rt.get_mem_info(HBM))
    return free


def travel(contexts, addresses):
    """Host, first device, second device, host: gives True if every byte is the one that left."""
    sent = os.urandom(SIZE)
    check(acl.rt.set_context(contexts[0]))
    source = acl.util.bytes_to_ptr(sent)
    check(acl.rt.memcpy(addresses[0], SIZE, source, SIZE, HOST_TO_DEVICE))
    # Between devices only memcpy_async takes memory that was mapped like this.
    stream = check(acl.rt.create_stream())
    check(acl.rt.memcpy_async(addresses[1], SIZE, addresses[0], SIZE, DEVICE_TO_DEVICE, stream))
    check(acl.rt.synchronize_stream(stream))
    check(acl.rt.destroy_stream(stream))

    check(acl.rt.set_context(contexts[1]))
    host = check(acl.rt.malloc_host(SIZE))
    check(acl.rt.memcpy(host, SIZE, addresses[1], SIZE, DEVICE_TO_HOST))
    received = acl.util.ptr_to_bytes(host, SIZE)
    check(acl.rt.free_host(host))
    return received == sent


def main():
    check(acl.init())
    contexts = [open_device(0, peer=1), open_device(1, peer=0)]
    at_first = [free_memory(context) for context in contexts]

    def report(step):
        taken = [before - free_memory(now) for before, now in zip(at_first, contexts)]
        print(f"{step:<24}" + "".join(f"{size // MIB:6} MiB" for size in taken))

    print(f"{acl.get_soc_name():<24}  device 0  device 1")
    addresses = [check(acl.rt.reserve_mem_address(SIZE, 0, 0, HUGE_PAGES)) for _ in DEVICES]
    report("1  reserve_mem_address")
    handles = [allocate(device) for device in DEVICES]
    report("2  malloc_physical")
    for address, handle in zip(addresses, handles):
        check(acl.rt.map_mem(address, SIZE, 0, handle, 0))
    report("3  map_mem")

    arrived = travel(contexts, addresses)
    print(f"4  memcpy_async            {addresses[0]:#x} -> {addresses[1]:#x}")
    print(f"   {SIZE} bytes went by both devices: {'all arrived' if arrived else 'WRONG BYTES'}")

    for address in addresses:
        check(acl.rt.unmap_mem(address))
    report("5  unmap_mem")
    for handle in handles:
        check(acl.rt.free_physical(handle))
    report("6  free_physical")
    for address in addresses:
        check(acl.rt.release_mem_address(address))
    report("7  release_mem_address")

    for device in DEVICES:
        check(acl.rt.reset_device(device))
    check(acl.finalize())
    return 0 if arrived else 1


if __name__ == "__main__":
    raise SystemExit(main())
