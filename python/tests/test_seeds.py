# SPDX-License-Identifier: Apache-2.0
"""The two Python pages the project began with: reserve_mem_address and malloc_host."""
import ctypes

import pytest

import acl
from support import (
    BLOCK, DEVICE_TO_DEVICE, DEVICE_TO_HOST, GIB, HBM_HUGE, HBM_NORMAL, INVALID_PARAM, MIB, NORMAL,
    NOT_READY, NOT_SUPPORTED, RT_PARAM_INVALID, free_bytes, made, prop, read, write,
)

COMMON_PAGE, HUGE_PAGE = 0, 1


def align_up(length, step):
    return ((length - 1) // step + 1) * step


def mapped_block(attribute, number, flags):
    """Steps 1 to 3 of the page: the address and the handle."""
    address, ret = acl.rt.reserve_mem_address(BLOCK, 0, 0, flags)
    assert ret == 0
    handle, ret = acl.rt.malloc_physical(BLOCK, prop(attribute, number=number), 0)
    assert ret == 0
    assert acl.rt.map_mem(address, BLOCK, 0, handle, 0) == 0
    return address, handle


def give_back(address, handle):
    """Steps 5 to 7."""
    assert acl.rt.unmap_mem(address) == 0
    assert acl.rt.free_physical(handle) == 0
    assert acl.rt.release_mem_address(address) == 0


@pytest.mark.parametrize(
    "flags, attribute",
    [(HUGE_PAGE, HBM_HUGE), (COMMON_PAGE, NORMAL), (COMMON_PAGE, HBM_NORMAL)],
)
def test_seven_steps(device, flags, attribute):
    before = free_bytes()

    # 1. Reserve addresses: no memory yet.
    address, ret = acl.rt.reserve_mem_address(4 * BLOCK, 0, 0, flags)
    assert ret == 0 and address > 0
    assert free_bytes() == before
    assert acl.rt.memset(address, BLOCK, 0, 1) == RT_PARAM_INVALID

    # 2. Take physical memory, in two pieces.
    handles = []
    for _ in range(2):
        handle, ret = acl.rt.malloc_physical(BLOCK, prop(attribute), 0)
        assert ret == 0
        handles.append(handle)
    assert free_bytes() == before - 2 * BLOCK

    # 3. Map the pieces side by side.
    for number, handle in enumerate(handles):
        assert acl.rt.map_mem(address + number * BLOCK, BLOCK, 0, handle, 0) == 0

    # 4. Work: the addresses are consecutive, so one copy covers both pieces.
    data = bytes(range(256)) * (2 * BLOCK // 256)
    write(address, data)
    assert read(address, 2 * BLOCK) == data

    # 5. Unmap, 6. free the physical memory, 7. release the addresses.
    for number in range(2):
        assert acl.rt.unmap_mem(address + number * BLOCK) == 0
    assert free_bytes() == before - 2 * BLOCK
    for handle in handles:
        assert acl.rt.free_physical(handle) == 0
    assert free_bytes() == before
    assert acl.rt.release_mem_address(address) == 0


def test_last_two_steps_may_be_swapped(device):
    address, handle = mapped_block(HBM_HUGE, 0, HUGE_PAGE)
    assert acl.rt.unmap_mem(address) == 0
    assert acl.rt.release_mem_address(address) == 0
    assert acl.rt.free_physical(handle) == 0


def test_addresses_are_used_again(device):
    """One reservation makes the most of physical memory: blocks come and go at its addresses."""
    address, ret = acl.rt.reserve_mem_address(BLOCK, 0, 0, HUGE_PAGE)
    assert ret == 0
    before = free_bytes()
    for number in range(20):
        handle, ret = acl.rt.malloc_physical(BLOCK, prop(HBM_HUGE), 0)
        assert ret == 0
        assert acl.rt.map_mem(address, BLOCK, 0, handle, 0) == 0
        assert acl.rt.memset(address, BLOCK, number, BLOCK) == 0
        assert acl.rt.unmap_mem(address) == 0
        assert acl.rt.free_physical(handle) == 0
        assert free_bytes() == before
    assert acl.rt.release_mem_address(address) == 0


def test_size_must_not_be_zero(device):
    assert acl.rt.reserve_mem_address(0, 0, 0, HUGE_PAGE) == (0, INVALID_PARAM)


@pytest.mark.parametrize("alignment", [1, 64, BLOCK, GIB])
def test_alignment_can_only_be_zero(device, alignment):
    assert acl.rt.reserve_mem_address(BLOCK, alignment, 0, HUGE_PAGE) == (0, RT_PARAM_INVALID)


def test_expected_address_can_only_be_zero_by_the_page(fresh):
    """The page knows no other value; that reading is the setting null_only."""
    printed = fresh(
        """
        import acl
        acl.init()
        acl.rt.set_device(0)
        print(acl.rt.reserve_mem_address(2 << 20, 0, 0x100000000000, 0))
        print(acl.rt.reserve_mem_address(2 << 20, 0, 0, 0)[1])
        """,
        UNDERSTUDY_EXPECT_PTR="null_only",
    )
    assert printed.splitlines() == [str((0, RT_PARAM_INVALID)), "0"]


@pytest.mark.parametrize("flags", [2, 3, 1 << 40])
def test_flag_is_common_or_huge(device, flags):
    assert acl.rt.reserve_mem_address(BLOCK, 0, 0, flags) == (0, INVALID_PARAM)


def test_flag_must_match_the_memory_by_the_page(fresh):
    """That reading is the setting match; by default both flags take every kind of page."""
    source = """
        import acl
        acl.init()
        acl.rt.set_device(0)
        for flags in (0, 1):
            for attribute in (12, 4, 5):
                prop = {"handleType": 0, "allocationType": 0, "memAttr": attribute,
                        "location": {"id": 0, "type": 1}, "reserve": 0}
                handle, ret = acl.rt.malloc_physical(2 << 20, prop, 0)
                assert ret == 0
                address, ret = acl.rt.reserve_mem_address(2 << 20, 0, 0, flags)
                assert ret == 0
                print(acl.rt.map_mem(address, 2 << 20, 0, handle, 0))
        """
    match = fresh(source, UNDERSTUDY_RESERVE_FLAG="match").split()
    refused = str(RT_PARAM_INVALID)
    assert match == ["0", refused, "0", refused, "0", "0"]
    assert fresh(source).split() == ["0"] * 6


def test_device_that_is_its_own_host_has_no_reservations(fresh):
    printed = fresh(
        """
        import acl
        acl.init()
        acl.rt.set_device(0)
        print(acl.rt.reserve_mem_address(2 << 20, 0, 0, 0))
        """,
        UNDERSTUDY_PRODUCT="200i-rc",
    )
    assert printed.strip() == str((0, NOT_SUPPORTED))


def test_two_devices_of_one_process_copy_by_stream_only(stream):
    assert acl.rt.set_device(1) == 0
    assert acl.rt.device_enable_peer_access(0, 0) == 0
    assert acl.rt.set_device(0) == 0
    assert acl.rt.device_enable_peer_access(1, 0) == 0
    near, near_handle = mapped_block(HBM_HUGE, 0, HUGE_PAGE)
    far, far_handle = mapped_block(HBM_HUGE, 1, HUGE_PAGE)
    assert acl.rt.memset(near, BLOCK, 0x42, BLOCK) == 0
    assert acl.rt.memset(far, BLOCK, 0, BLOCK) == 0

    assert acl.rt.memcpy(far, BLOCK, near, BLOCK, DEVICE_TO_DEVICE) == NOT_SUPPORTED
    assert acl.rt.memcpy_async(far, BLOCK, near, BLOCK, DEVICE_TO_DEVICE, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(far, BLOCK) == b"\x42" * BLOCK

    give_back(near, near_handle)
    give_back(far, far_handle)
    assert [acl.rt.reset_device(1), acl.rt.reset_device(0)] == [0, 0]


@pytest.fixture
def host_block(device):
    """1 MiB from malloc_host, as the second page gives and frees it."""
    with made(acl.rt.malloc_host, acl.rt.free_host, MIB) as address:
        yield address


def test_program_on_the_host_gets_host_memory(host_block):
    assert acl.rt.get_run_mode() == (1, 0)
    found, ret = acl.rt.pointer_get_attributes(host_block)
    assert (found["location"], ret) == ({"id": 0, "type": 0}, 0)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 4095, 4097, MIB + 1, 64 * MIB])
def test_start_address_is_aligned_to_64_bytes(device, size):
    address, ret = acl.rt.malloc_host(size)
    assert ret == 0
    assert address % 64 == 0
    assert acl.rt.free_host(address) == 0


def test_size_of_host_memory_cannot_be_zero(device):
    assert acl.rt.malloc_host(0) == (0, INVALID_PARAM)


def test_memset_initialises_the_memory(host_block):
    assert acl.rt.memset(host_block, MIB, 0, MIB) == 0
    assert ctypes.string_at(host_block, MIB) == bytes(MIB)


def test_allocation_waits_for_no_stream(stream, gate):
    """While a stream is held, memory comes and goes."""
    for size in (64, MIB):
        address, ret = acl.rt.malloc_host(size)
        assert ret == 0
        assert acl.rt.free_host(address) == 0
    assert acl.rt.malloc_host(0) == (0, INVALID_PARAM)
    assert acl.rt.stream_query(stream) == (NOT_READY, 0)
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0


def test_host_memory_is_freed_by_free_host(device):
    address, ret = acl.rt.malloc_host(MIB)
    assert ret == 0
    assert acl.rt.free(address) == RT_PARAM_INVALID
    assert acl.rt.free_host(address) == 0
    assert acl.rt.free_host(address) == RT_PARAM_INVALID


def test_much_memory_at_once_and_often(device):
    for _ in range(200):
        address, ret = acl.rt.malloc_host(4 * MIB)
        assert ret == 0
        assert acl.rt.free_host(address) == 0
    blocks = [acl.rt.malloc_host(MIB) for _ in range(64)]
    assert [ret for _, ret in blocks] == [0] * 64
    assert len({address for address, _ in blocks}) == 64
    assert [acl.rt.free_host(address) for address, _ in blocks] == [0] * 64


def test_segments_cut_by_the_rule_do_not_interfere(host_block, stream):
    """Segment: length rounded up to 32, plus 32; its start a multiple of 64."""
    lengths = [1, 31, 32, 33, 64, 100, 1000, 4096, 70001]
    device_block, ret = acl.rt.malloc(MIB, 0)
    assert ret == 0
    starts, start = [], 0
    for length in lengths:
        starts.append(start)
        start += align_up(align_up(length, 32) + 32, 64)
    assert start <= MIB and all((host_block + offset) % 64 == 0 for offset in starts)
    assert starts[:4] == [0, 64, 128, 192] and starts[4] == 192 + 128

    assert acl.rt.memset(host_block, MIB, 0xFF, MIB) == 0
    for number, (offset, length) in enumerate(zip(starts, lengths), start=1):
        assert acl.rt.memset(device_block + offset, length, number, length) == 0
        target = host_block + offset
        assert acl.rt.memcpy_async(
            target, length, device_block + offset, length, DEVICE_TO_HOST, stream
        ) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    for number, (offset, length) in enumerate(zip(starts, lengths), start=1):
        assert ctypes.string_at(host_block + offset, length) == bytes([number]) * length
        assert ctypes.string_at(host_block + offset + length, 1) == b"\xff"
    assert acl.rt.free(device_block) == 0
