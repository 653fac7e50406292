# SPDX-License-Identifier: Apache-2.0
"""Device memory: the malloc family, free, the cache calls, the figures, and memory for media."""
import pytest

import acl
from support import (
    DDR, DEVICE_ID, GIB, HBM, HBM_HUGE, HBM_HUGE1G, HBM_NORMAL, HOST_TO_DEVICE, HUGE1G_ONLY,
    HUGE_FIRST, HUGE_ONLY, INVALID_MEMORY_TYPE, INVALID_PARAM, MIB, MODULE_ID, NORMAL_ONLY,
    NO_CONTEXT, NO_PERMISSION, OUT_OF_MEMORY, RT_PARAM_INVALID, UNKNOWN_ATTRIBUTE, VA_FLAG, Index,
    configuration, free_bytes, on_bare_thread, read, write,
)

KIB = 1 << 10
LOW_BAND_WIDTH, HIGH_BAND_WIDTH, READONLY = 0x100, 0x1000, 0x100000

ALLOCATORS = {
    "malloc": acl.rt.malloc,
    "malloc_align32": acl.rt.malloc_align32,
    "malloc_cached": acl.rt.malloc_cached,
    "malloc_with_cfg": lambda size, policy: acl.rt.malloc_with_cfg(size, policy, {}),
    "malloc_for_task_scheduler": lambda size, policy: acl.rt.malloc_for_task_scheduler(
        size, policy, {}
    ),
}
CONFIGURED = [acl.rt.malloc_with_cfg, acl.rt.malloc_for_task_scheduler]

pytestmark = pytest.mark.usefixtures("nothing_is_left")
every_allocator = pytest.mark.parametrize("allocate", ALLOCATORS.values(), ids=ALLOCATORS.keys())
every_configured = pytest.mark.parametrize("allocate", CONFIGURED, ids=lambda f: f.__name__)


def taken(allocate, size, policy, attribute):
    """By how much an allocation lowers the figure of one kind of memory."""
    before = free_bytes(attribute)
    address, ret = allocate(size, policy)
    assert ret == 0
    difference = before - free_bytes(attribute)
    assert acl.rt.free(address) == 0
    assert free_bytes(attribute) == before
    return difference


@every_allocator
@pytest.mark.parametrize("size", [1, 31, 4096, 3 * MIB + 5])
def test_block_is_aligned_and_keeps_every_byte(allocate, size):
    address, ret = allocate(size, HUGE_FIRST)
    assert ret == 0
    assert address > 0 and address % 64 == 0
    data = bytes(range(251)) * (size // 251 + 1)
    write(address, data[:size])
    assert read(address, size) == data[:size]
    assert acl.rt.free(address) == 0


@every_allocator
def test_blocks_do_not_overlap(allocate):
    addresses = [allocate(100, NORMAL_ONLY)[0] for _ in range(50)]
    for number, address in enumerate(addresses):
        write(address, bytes([number]) * 100)
    for number, address in enumerate(addresses):
        assert read(address, 100) == bytes([number]) * 100
    assert [acl.rt.free(address) for address in addresses] == [0] * 50


@every_allocator
def test_size_zero_is_refused(allocate):
    assert allocate(0, HUGE_FIRST) == (0, INVALID_PARAM)


@every_allocator
@pytest.mark.parametrize("size", [-1, 2**64 - 1, 2**64 - 31])
def test_size_that_cannot_be_rounded_is_refused(allocate, size):
    assert allocate(size, HUGE_FIRST) == (0, INVALID_PARAM)


@every_allocator
@pytest.mark.parametrize("policy", [HUGE_FIRST, HUGE_ONLY, NORMAL_ONLY, HUGE1G_ONLY])
def test_more_than_the_device_has_is_out_of_memory(allocate, policy):
    before = free_bytes()
    assert allocate(1 << 40, policy) == (0, OUT_OF_MEMORY)
    assert free_bytes() == before


@every_allocator
def test_thread_without_a_context_gets_no_memory(allocate):
    assert on_bare_thread(allocate, 4096, HUGE_FIRST) == (0, NO_CONTEXT)


@every_allocator
def test_size_is_taken_modulo_two_to_the_64(allocate):
    assert taken(allocate, 2**64 + 64, NORMAL_ONLY, HBM_NORMAL) == 4096


@pytest.mark.parametrize(
    "name, pages",
    [("malloc", 2), ("malloc_cached", 2), ("malloc_align32", 1), ("malloc_with_cfg", 1),
     ("malloc_for_task_scheduler", 1)],
)
def test_only_some_allocators_add_32_bytes(name, pages):
    allocate = ALLOCATORS[name]
    assert taken(allocate, 2 * MIB, HUGE_ONLY, HBM_HUGE) == pages * 2 * MIB
    assert taken(allocate, 4096, NORMAL_ONLY, HBM_NORMAL) == pages * 4096
    assert taken(allocate, GIB, HUGE1G_ONLY, HBM_HUGE) == GIB


@pytest.mark.parametrize(
    "size, policy, attribute, expected",
    [
        (MIB - 64, HUGE_FIRST, HBM_NORMAL, MIB),
        (MIB + 1, HUGE_FIRST, HBM_HUGE, 2 * MIB),
        (1, HUGE_ONLY, HBM_HUGE, 2 * MIB),
        (10 * MIB, NORMAL_ONLY, HBM_NORMAL, 10 * MIB),
        (1, HUGE1G_ONLY, HBM_HUGE, GIB),
        (1945 * MIB, HUGE1G_ONLY, HBM_HUGE, 2 * GIB),
        (1945 * MIB, HUGE1G_ONLY, HBM_HUGE1G, 2 * GIB),
        (100, LOW_BAND_WIDTH, HBM_NORMAL, 4096),
        (3 * MIB, HIGH_BAND_WIDTH, HBM_HUGE, 4 * MIB),
        (100, HUGE_ONLY | HIGH_BAND_WIDTH, HBM_HUGE, 2 * MIB),
        (3 * MIB, NORMAL_ONLY | LOW_BAND_WIDTH, HBM_NORMAL, 3 * MIB),
        (2 * MIB, 99, HBM_HUGE, 2 * MIB),
        (2 * MIB - 1, 99, HBM_NORMAL, 2 * MIB),
    ],
)
def test_policy_decides_the_pages(size, policy, attribute, expected):
    assert taken(ALLOCATORS["malloc_with_cfg"], size, policy, attribute) == expected


def test_read_only_block_can_be_read_but_not_written():
    address, ret = acl.rt.malloc_with_cfg(4096, NORMAL_ONLY | READONLY, {})
    assert ret == 0
    content = read(address, 4096)
    source = acl.util.bytes_to_ptr(b"some bytes")
    assert acl.rt.memset(address, 4096, 1, 4096) == NO_PERMISSION
    assert acl.rt.memcpy(address, 4096, source, 10, HOST_TO_DEVICE) == NO_PERMISSION
    assert read(address, 4096) == content
    assert acl.rt.free(address) == 0


@every_configured
@pytest.mark.parametrize(
    "attribute",
    [
        (MODULE_ID, {"moduleId": 33}),
        (MODULE_ID, {"moduleId": 300}),
        (MODULE_ID, 33),
        (DEVICE_ID, {"deviceId": 0}),
        (MODULE_ID, {"moduleId": 33, "remark": "unknown keys are ignored"}),
    ],
)
def test_attributes_are_accepted(allocate, attribute):
    address, ret = allocate(2 * MIB, HUGE_ONLY, configuration(attribute))
    assert ret == 0
    write(address, b"configured")
    assert read(address, 10) == b"configured"
    assert acl.rt.free(address) == 0


@every_configured
@pytest.mark.parametrize(
    "attribute",
    [
        (DEVICE_ID, {"deviceId": 1}),
        (DEVICE_ID, 1),
        (VA_FLAG, 1),
        (UNKNOWN_ATTRIBUTE, 0),
    ],
)
def test_attribute_that_does_not_fit_is_refused(allocate, attribute):
    assert allocate(4096, HUGE_FIRST, configuration(attribute)) == (0, RT_PARAM_INVALID)


@every_configured
def test_last_of_two_equal_attributes_counts(allocate):
    here, elsewhere = (DEVICE_ID, {"deviceId": 0}), (DEVICE_ID, {"deviceId": 1})
    refused = allocate(4096, HUGE_FIRST, configuration(here, elsewhere))
    assert refused == (0, RT_PARAM_INVALID)
    address, ret = allocate(4096, HUGE_FIRST, configuration(elsewhere, here))
    assert ret == 0
    assert acl.rt.free(address) == 0


@every_configured
@pytest.mark.parametrize(
    "cfg, error",
    [
        (None, TypeError),
        ([], TypeError),
        ({"attrs": 5, "numAttrs": 1}, TypeError),
        ({"attrs": [5], "numAttrs": 1}, TypeError),
        ({"attrs": [{"attr": 1, "value": "33"}], "numAttrs": 1}, TypeError),
        ({"attrs": [{"attr": 1, "value": {"moduleId": 33}}]}, KeyError),
        ({"numAttrs": 1}, KeyError),
        ({"attrs": [{"value": {"moduleId": 33}}], "numAttrs": 1}, KeyError),
        ({"attrs": [{"attr": 1}], "numAttrs": 1}, KeyError),
    ],
)
def test_malformed_configuration_raises(allocate, cfg, error):
    with pytest.raises(error):
        allocate(4096, HUGE_FIRST, cfg)


@every_allocator
@pytest.mark.parametrize("size", ["1", b"1", 1.0, None])
def test_size_that_is_no_integer_raises(allocate, size):
    with pytest.raises(TypeError):
        allocate(size, HUGE_FIRST)


@every_allocator
def test_policy_beyond_32_bits_raises(allocate):
    with pytest.raises(OverflowError):
        allocate(1, 1 << 32)


@every_allocator
def test_index_objects_are_integers(allocate):
    address, ret = allocate(Index(64), True)
    assert ret == 0
    assert acl.rt.free(Index(address)) == 0


@pytest.mark.parametrize(
    "arguments", [(), (1,), (1, 2, 3)], ids=["none", "one", "three"]
)
def test_wrong_number_of_arguments_raises(arguments):
    with pytest.raises(TypeError):
        acl.rt.malloc(*arguments)


def test_free_needs_no_context():
    address, ret = acl.rt.malloc(4096, HUGE_FIRST)
    assert ret == 0
    assert on_bare_thread(acl.rt.free, address) == 0


def test_free_of_nothing_is_refused():
    assert acl.rt.free(0) == INVALID_PARAM


def test_free_of_other_addresses_is_refused_and_frees_nothing():
    address, _ = acl.rt.malloc(4096, HUGE_FIRST)
    host, _ = acl.rt.malloc_host(4096)
    before = free_bytes()
    for wrong in (address + 64, address + 1, host, 0x1234000, 2**64 - 64):
        assert acl.rt.free(wrong) == RT_PARAM_INVALID
    assert free_bytes() == before
    assert acl.rt.free(address) == 0
    assert acl.rt.free(address) == RT_PARAM_INVALID
    assert acl.rt.free_host(host) == 0


@pytest.mark.parametrize("call", [acl.rt.mem_flush, acl.rt.mem_invalidate])
def test_cache_calls_keep_the_data(call):
    address, ret = acl.rt.malloc_cached(4096, HUGE_FIRST)
    assert ret == 0
    write(address, b"kept" * 1024)
    assert call(address, 4096) == 0
    assert read(address, 4096) == b"kept" * 1024
    assert call(0, 4096) == INVALID_PARAM
    assert call(address, 0) == INVALID_PARAM
    assert acl.rt.free(address) == 0


def test_figures_of_an_a2():
    free, total, ret = acl.rt.get_mem_info(HBM)
    assert (total, ret) == (64 * GIB, 0)
    assert 0 < free <= total
    huge, normal = acl.rt.get_mem_info(HBM_HUGE), acl.rt.get_mem_info(HBM_NORMAL)
    assert (huge[0] + normal[0], huge[1] + normal[1]) == (free, total)
    assert normal[1] == total // 16
    assert acl.rt.get_mem_info(HBM_HUGE1G) == (huge[0] // GIB * GIB, huge[1] // GIB * GIB, 0)


def test_memory_the_device_lacks_has_zero_bytes():
    assert acl.rt.get_mem_info(DDR) == (0, 0, 0)


@pytest.mark.parametrize("general, hbm", [(12, 5), (13, 4), (14, 10), (15, 9), (16, 8), (17, 11)])
def test_general_attributes_answer_as_hbm(general, hbm):
    assert acl.rt.get_mem_info(general) == acl.rt.get_mem_info(hbm)


def test_unknown_attribute_has_no_figures():
    assert acl.rt.get_mem_info(18) == (0, 0, INVALID_MEMORY_TYPE)


def test_figures_need_a_context():
    assert on_bare_thread(acl.rt.get_mem_info, HBM) == (0, 0, NO_CONTEXT)


def test_memory_lies_on_the_current_device():
    here = free_bytes()
    assert acl.rt.set_device(1) == 0
    there = free_bytes()
    address, ret = acl.rt.malloc_align32(GIB, HUGE_ONLY)
    assert ret == 0
    assert free_bytes() == there - GIB
    assert acl.rt.set_device(0) == 0
    assert free_bytes() == here
    assert acl.rt.free(address) == 0
    assert acl.rt.reset_device(1) == 0
    assert acl.rt.reset_device(0) == 0


def test_media_memory_is_device_memory():
    before = free_bytes()
    address, ret = acl.media.dvpp_malloc(100 * KIB)
    assert ret == 0
    assert address > 0 and address % 128 == 0
    assert free_bytes() < before
    write(address, b"frame" * 20 * KIB)
    assert read(address, 100 * KIB) == b"frame" * 20 * KIB
    assert acl.media.dvpp_free(address) == 0
    assert acl.media.dvpp_free(address) != 0


def test_media_memory_of_no_bytes_is_refused():
    address, ret = acl.media.dvpp_malloc(0)
    assert address == 0 and ret != 0
    assert acl.media.dvpp_free(0) != 0
