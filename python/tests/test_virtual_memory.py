# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: reservations, physical memory, mappings and granularity."""
import ctypes

import pytest

import acl
from support import (
    BLOCK, DDR_HUGE, GIB, HBM, HBM_HUGE, HBM_HUGE1G, HBM_NORMAL, HOST, HUGE, HUGE1G, INVALID_DEVICE,
    INVALID_PARAM, MANAGED, MIB, NORMAL, NOT_SUPPORTED, OUT_OF_MEMORY, P2P_HUGE, P2P_NORMAL,
    RT_PARAM_INVALID, UNREGISTERED, free_bytes, made, prop, prop_without, read, write,
)

TIB = 1 << 40
MINIMUM, RECOMMENDED = 0, 1
WINDOW = 16 * TIB

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def place():
    """A reservation of 64 MiB."""
    with made(
        acl.rt.reserve_mem_address, acl.rt.release_mem_address, 32 * BLOCK, 0, 0, 0
    ) as address:
        yield address


@pytest.mark.parametrize("size", [1, 512, BLOCK, 3 * BLOCK + 1, GIB, 72 * GIB, 32 * TIB])
@pytest.mark.parametrize("flags", [0, 1])
def test_reservation_is_aligned_and_takes_no_memory(size, flags):
    before = free_bytes()
    address, ret = acl.rt.reserve_mem_address(size, 0, 0, flags)
    assert ret == 0
    assert address > 0 and address % (GIB if size >= GIB else BLOCK) == 0
    assert free_bytes() == before
    assert acl.rt.release_mem_address(address) == 0


@pytest.mark.parametrize(
    "arguments, code",
    [
        ((0, 0, 0, 0), INVALID_PARAM),
        ((BLOCK, 0, 0, 2), INVALID_PARAM),
        ((BLOCK, 0, 0, -1), INVALID_PARAM),
        ((BLOCK, BLOCK, 0, 0), RT_PARAM_INVALID),
        ((BLOCK, 0, WINDOW + 1, 0), RT_PARAM_INVALID),
        ((BLOCK, 0, 8 * TIB, 0), RT_PARAM_INVALID),
        ((BLOCK, 0, 24 * TIB, 0), RT_PARAM_INVALID),
    ],
)
def test_wrong_reservation_is_refused(arguments, code):
    assert acl.rt.reserve_mem_address(*arguments) == (0, code)


def test_wished_address_is_given_once():
    wish = WINDOW + 40 * GIB
    assert acl.rt.reserve_mem_address(BLOCK, 0, wish, 0) == (wish, 0)
    assert acl.rt.reserve_mem_address(BLOCK, 0, wish, 0) == (0, RT_PARAM_INVALID)
    assert acl.rt.release_mem_address(wish) == 0
    assert acl.rt.release_mem_address(wish) == RT_PARAM_INVALID


def test_reservations_do_not_overlap():
    starts = sorted(acl.rt.reserve_mem_address(3 * MIB, 0, 0, 0)[0] for _ in range(100))
    assert all(high - low >= 2 * BLOCK for low, high in zip(starts, starts[1:]))
    assert [acl.rt.release_mem_address(start) for start in starts] == [0] * 100


def test_release_wants_the_start_of_a_reservation(place):
    block, ret = acl.rt.malloc(BLOCK, 0)
    assert ret == 0
    assert acl.rt.release_mem_address(0) == INVALID_PARAM
    for wrong in (place + BLOCK, place + 1, block, 0x1234000):
        assert acl.rt.release_mem_address(wrong) == RT_PARAM_INVALID
    assert acl.rt.free(block) == 0


@pytest.mark.parametrize("free", [acl.rt.free, acl.rt.free_host])
def test_reservation_is_not_freed_like_memory(place, free):
    assert free(place) == RT_PARAM_INVALID
    assert free(place + BLOCK) == RT_PARAM_INVALID


@pytest.mark.parametrize(
    "attribute", [HBM_HUGE, HBM_NORMAL, NORMAL, HUGE, P2P_NORMAL, P2P_HUGE]
)
def test_physical_memory_is_charged_until_freed(attribute):
    before = free_bytes()
    handle, ret = acl.rt.malloc_physical(3 * BLOCK, prop(attribute), 0)
    assert ret == 0 and handle > 0
    assert free_bytes() == before - 3 * BLOCK
    assert acl.rt.free_physical(handle) == 0
    assert free_bytes() == before


@pytest.mark.parametrize("attribute", [HBM_HUGE1G, HUGE1G])
def test_giant_pages_come_by_the_gibibyte(attribute):
    before = free_bytes()
    assert acl.rt.malloc_physical(BLOCK, prop(attribute), 0) == (0, RT_PARAM_INVALID)
    handle, ret = acl.rt.malloc_physical(GIB, prop(attribute), 0)
    assert ret == 0
    assert free_bytes() == before - GIB
    assert acl.rt.free_physical(handle) == 0


@pytest.mark.parametrize(
    "size, wanted, flags, code",
    [
        (0, prop(), 0, INVALID_PARAM),
        (BLOCK, prop(), 1, INVALID_PARAM),
        (BLOCK, prop(handleType=2), 0, INVALID_PARAM),
        (BLOCK, prop(allocationType=1), 0, INVALID_PARAM),
        (BLOCK, prop(kind=UNREGISTERED), 0, INVALID_PARAM),
        (BLOCK, prop(kind=MANAGED), 0, INVALID_PARAM),
        (BLOCK, prop(kind=9), 0, RT_PARAM_INVALID),
        (BLOCK, prop(DDR_HUGE), 0, INVALID_PARAM),
        (BLOCK, prop(HBM), 0, INVALID_PARAM),
        (BLOCK, prop(99), 0, INVALID_PARAM),
        (BLOCK, prop(number=8), 0, INVALID_DEVICE),
        (BLOCK, prop(DDR_HUGE, HOST, 1), 0, NOT_SUPPORTED),
        (BLOCK, prop(reserve=1), 0, RT_PARAM_INVALID),
        (BLOCK + 1, prop(), 0, RT_PARAM_INVALID),
        (GIB, prop(HBM_HUGE1G, HOST), 0, NOT_SUPPORTED),
        (TIB, prop(), 0, OUT_OF_MEMORY),
    ],
)
def test_wrong_physical_memory_is_refused(size, wanted, flags, code):
    before = free_bytes()
    assert acl.rt.malloc_physical(size, wanted, flags) == (0, code)
    assert free_bytes() == before


@pytest.mark.parametrize(
    "wanted, error",
    [
        (prop_without("handleType"), KeyError),
        (prop_without("allocationType"), KeyError),
        (prop_without("memAttr"), KeyError),
        (prop_without("location"), KeyError),
        (prop(location={"id": 0}), KeyError),
        (prop(location={"type": 1}), KeyError),
        (None, TypeError),
        ([], TypeError),
        (prop(location=1), TypeError),
        (prop("4"), TypeError),
        (prop(1 << 40), OverflowError),
    ],
)
def test_malformed_properties_raise(wanted, error):
    with pytest.raises(error):
        acl.rt.malloc_physical(BLOCK, wanted, 0)
    with pytest.raises(error):
        acl.rt.mem_get_allocation_granularity(wanted, MINIMUM)


@pytest.mark.parametrize("wanted", [prop_without("reserve"), prop(remark="ignored")])
def test_properties_are_only_read_and_may_have_other_keys(wanted):
    copy = dict(wanted, location=dict(wanted["location"]))
    handle, ret = acl.rt.malloc_physical(BLOCK, wanted, 0)
    assert ret == 0
    assert acl.rt.mem_get_allocation_granularity(wanted, MINIMUM) == (BLOCK, 0)
    assert wanted == copy
    assert acl.rt.free_physical(handle) == 0


def test_free_physical_wants_a_live_handle():
    handle, ret = acl.rt.malloc_physical(BLOCK, prop(), 0)
    assert ret == 0
    assert acl.rt.free_physical(handle) == 0
    assert acl.rt.free_physical(handle) == RT_PARAM_INVALID
    assert acl.rt.free_physical(0) == INVALID_PARAM
    assert acl.rt.free_physical(0xDEAD) == RT_PARAM_INVALID


def test_mapped_memory_keeps_data_and_figures(place, handle):
    before = free_bytes()
    assert acl.rt.map_mem(place + 3 * BLOCK, BLOCK, 0, handle, 0) == 0
    assert free_bytes() == before
    data = bytes(range(256)) * (BLOCK // 256)
    write(place + 3 * BLOCK, data)
    assert read(place + 3 * BLOCK, BLOCK) == data
    assert acl.rt.unmap_mem(place + 3 * BLOCK) == 0


def test_copy_spans_neighbours(place):
    handles = [acl.rt.malloc_physical(BLOCK, prop(), 0)[0] for _ in range(3)]
    for number, handle in enumerate(handles):
        assert acl.rt.map_mem(place + number * BLOCK, BLOCK, 0, handle, 0) == 0
    data = bytes(range(250)) * 20000
    write(place + 100, data)
    assert read(place + 100, len(data)) == data
    for number, handle in enumerate(handles):
        assert acl.rt.unmap_mem(place + number * BLOCK) == 0
        assert acl.rt.free_physical(handle) == 0


def test_one_block_at_two_addresses(place, handle):
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    assert acl.rt.map_mem(place + 4 * BLOCK, BLOCK, 0, handle, 0) == 0
    write(place, b"seen twice")
    assert read(place + 4 * BLOCK, 10) == b"seen twice"
    assert acl.rt.unmap_mem(place) == 0
    assert read(place + 4 * BLOCK, 10) == b"seen twice"
    assert acl.rt.unmap_mem(place + 4 * BLOCK) == 0


def test_data_moves_with_the_block(place, handle):
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    write(place, b"sleep and wake")
    assert acl.rt.unmap_mem(place) == 0
    assert acl.rt.memset(place, 1, 0, 1) == RT_PARAM_INVALID
    assert acl.rt.map_mem(place + BLOCK, BLOCK, 0, handle, 0) == 0
    assert read(place + BLOCK, 14) == b"sleep and wake"
    assert acl.rt.unmap_mem(place + BLOCK) == 0


def test_mapping_outlives_the_handle(place):
    before = free_bytes()
    handle, ret = acl.rt.malloc_physical(BLOCK, prop(), 0)
    assert ret == 0
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    write(place, b"still here")
    assert acl.rt.free_physical(handle) == 0
    assert free_bytes() == before - BLOCK
    assert read(place, 10) == b"still here"
    assert acl.rt.map_mem(place + BLOCK, BLOCK, 0, handle, 0) == RT_PARAM_INVALID
    assert acl.rt.unmap_mem(place) == 0
    assert free_bytes() == before


def test_wrong_mapping_is_refused(place, handle):
    for wrong, code in [
        ((0, BLOCK, 0, handle, 0), INVALID_PARAM),
        ((place, BLOCK, 0, 0, 0), INVALID_PARAM),
        ((place, 0, 0, handle, 0), INVALID_PARAM),
        ((place, BLOCK, 0, handle, 1), INVALID_PARAM),
        ((place, BLOCK, BLOCK, handle, 0), RT_PARAM_INVALID),
        ((place, 2 * BLOCK, 0, handle, 0), RT_PARAM_INVALID),
        ((place, BLOCK // 2, 0, handle, 0), RT_PARAM_INVALID),
        ((place + 4096, BLOCK, 0, handle, 0), RT_PARAM_INVALID),
        ((place + 32 * BLOCK, BLOCK, 0, handle, 0), RT_PARAM_INVALID),
        ((place, BLOCK, 0, 0xDEAD, 0), RT_PARAM_INVALID),
    ]:
        assert acl.rt.map_mem(*wrong) == code
    assert acl.rt.unmap_mem(place) == RT_PARAM_INVALID


def test_mapping_is_not_replaced(place, handle):
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    write(place, b"first")
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == RT_PARAM_INVALID
    assert acl.rt.release_mem_address(place) == RT_PARAM_INVALID
    for wrong, code in ((place + BLOCK // 2, RT_PARAM_INVALID), (0, INVALID_PARAM)):
        assert acl.rt.unmap_mem(wrong) == code
    assert read(place, 5) == b"first"
    assert acl.rt.unmap_mem(place) == 0
    assert acl.rt.unmap_mem(place) == RT_PARAM_INVALID


def test_a_reservation_belongs_to_its_first_device(place, handle):
    before = free_bytes()
    other, ret = acl.rt.malloc_physical(BLOCK, prop(number=1), 0)
    assert ret == 0 and other != handle
    assert free_bytes() == before
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    assert acl.rt.map_mem(place + BLOCK, BLOCK, 0, other, 0) == RT_PARAM_INVALID
    assert acl.rt.unmap_mem(place) == 0
    assert acl.rt.map_mem(place + BLOCK, BLOCK, 0, other, 0) == RT_PARAM_INVALID
    assert acl.rt.map_mem(place + BLOCK, BLOCK, 0, handle, 0) == 0
    assert acl.rt.unmap_mem(place + BLOCK) == 0
    assert acl.rt.free_physical(other) == 0


@pytest.mark.parametrize("attribute", [DDR_HUGE, HBM_HUGE, NORMAL])
def test_processor_reaches_host_blocks(place, attribute):
    before = free_bytes()
    block, ret = acl.rt.malloc_physical(BLOCK, prop(attribute, HOST), 0)
    assert ret == 0
    assert free_bytes() == before
    assert acl.rt.map_mem(place, BLOCK, 0, block, 0) == 0
    ctypes.memmove(place, b"by the processor", 16)
    assert read(place, 16) == b"by the processor"
    write(place + BLOCK - 4, b"back")
    assert ctypes.string_at(place + BLOCK - 4, 4) == b"back"
    assert acl.rt.unmap_mem(place) == 0
    assert acl.rt.free_physical(block) == 0


@pytest.mark.parametrize("option", [MINIMUM, RECOMMENDED])
def test_granularity(option):
    granularity = acl.rt.mem_get_allocation_granularity
    for attribute in (HBM_HUGE, HBM_NORMAL, NORMAL, HUGE, P2P_NORMAL, P2P_HUGE):
        assert granularity(prop(attribute), option) == (BLOCK, 0)
        assert granularity(prop(attribute, HOST), option) == (BLOCK, 0)
    for attribute in (HBM_HUGE1G, HUGE1G):
        assert granularity(prop(attribute), option) == (GIB, 0)
        assert granularity(prop(attribute, HOST), option) == (0, NOT_SUPPORTED)
    assert granularity(prop(handleType=5, allocationType=5), option) == (BLOCK, 0)


@pytest.mark.parametrize(
    "wanted, option, code",
    [
        (prop(DDR_HUGE), MINIMUM, INVALID_PARAM),
        (prop(HBM), MINIMUM, INVALID_PARAM),
        (prop(), 2, NOT_SUPPORTED),
        (prop(), 0xFFFF, NOT_SUPPORTED),
        (prop(number=8), MINIMUM, INVALID_DEVICE),
        (prop(reserve=1), MINIMUM, RT_PARAM_INVALID),
        (prop(kind=UNREGISTERED), MINIMUM, RT_PARAM_INVALID),
    ],
)
def test_wrong_granularity_question_is_refused(wanted, option, code):
    assert acl.rt.mem_get_allocation_granularity(wanted, option) == (0, code)


# ---- Beyond the published module ----

READ_WRITE, NO_ACCESS = 3, 0


def test_access_is_granted_after_a_mapping_without_it(device, handle, place):
    own = {"id": 0, "type": 1}
    assert acl.rt.mem_map_no_access(place, BLOCK, 0, handle, 0) == 0
    assert acl.rt.mem_get_access(place, own) == (NO_ACCESS, 0)
    grant = {"flags": READ_WRITE, "location": own}
    assert acl.rt.mem_set_access(place, BLOCK, [grant]) == 0
    assert acl.rt.mem_get_access(place, own) == (READ_WRITE, 0)
    write(place, b"granted")
    assert read(place, 7) == b"granted"
    assert acl.rt.unmap_mem(place) == 0


@pytest.mark.parametrize(
    "desc, error",
    [
        ({}, TypeError),
        ([1], TypeError),
        ([{}], KeyError),
        ([{"flags": 1}], KeyError),
        ([{"flags": 1, "location": {"id": 0}}], KeyError),
        ([{"flags": "1", "location": {"id": 0, "type": 1}}], TypeError),
    ],
)
def test_wrong_grants_raise(place, desc, error):
    with pytest.raises(error):
        acl.rt.mem_set_access(place, BLOCK, desc)


def test_empty_list_of_grants_reaches_the_library(device, handle, place):
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    assert acl.rt.mem_set_access(place, BLOCK, []) == RT_PARAM_INVALID
    assert acl.rt.unmap_mem(place) == 0


def test_handle_and_range_behind_an_address(device, handle, place):
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    assert acl.rt.mem_retain_allocation_handle(place) == (handle, 0)
    assert acl.rt.free_physical(handle) == 0
    base, size, ret = acl.rt.mem_get_address_range(place + 5)
    assert (base, ret) == (place, 0) and size >= BLOCK
    assert acl.rt.unmap_mem(place) == 0


def test_properties_of_a_handle(device, handle):
    properties, ret = acl.rt.mem_get_allocation_properties_from_handle(handle)
    assert ret == 0
    assert properties["location"] == {"id": 0, "type": 1}
    assert set(properties) == set(prop())
    assert acl.rt.mem_get_allocation_properties_from_handle(0)[0] == {}


def test_addresses_for_blocks_of_any_device(fresh):
    assert acl.rt.reserve_mem_address_no_uc_memory(GIB, 0, 100 * TIB, 1) == (0, NOT_SUPPORTED)
    fresh(
        """
        import acl
        size = 1 << 30

        def reserve(wish):
            return acl.rt.reserve_mem_address_no_uc_memory(size, 0, wish, 1) == (wish, 0)

        # A sanitizer has taken some of them.
        wish = next(tib << 40 for tib in range(40, 224, 8) if reserve(tib << 40))
        assert acl.rt.reserve_mem_address_no_uc_memory(size, 0, wish, 1) == (0, 107000)
        assert acl.rt.release_mem_address(wish) == 0
        """,
        UNDERSTUDY_PRODUCT="a3",
    )
