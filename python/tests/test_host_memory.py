# SPDX-License-Identifier: Apache-2.0
"""Page-locked host memory: malloc_host, malloc_host_with_cfg, free_host."""
import ctypes

import pytest

import acl
from support import (
    DEVICE_ID, DEVICE_TO_HOST, HOST_TO_DEVICE, HUGE_FIRST, INVALID_PARAM, MIB, MODULE_ID,
    NO_CONTEXT, OUT_OF_MEMORY, RT_PARAM_INVALID, UNKNOWN_ATTRIBUTE, VA_FLAG, configuration, made,
    on_bare_thread,
)

RESERVED_ATTRIBUTE = 0

ALLOCATORS = {
    "malloc_host": acl.rt.malloc_host,
    "malloc_host_with_cfg": lambda size: acl.rt.malloc_host_with_cfg(size, {}),
}
pytestmark = pytest.mark.usefixtures("nothing_is_left")
every_allocator = pytest.mark.parametrize("allocate", ALLOCATORS.values(), ids=ALLOCATORS.keys())


@pytest.fixture
def block():
    """64 KiB of page-locked memory."""
    with made(acl.rt.malloc_host, acl.rt.free_host, 65536) as address:
        yield address


@every_allocator
@pytest.mark.parametrize("size", [1, 63, 4096, 3 * MIB + 7])
def test_processor_reads_and_writes_every_byte(allocate, size):
    address, ret = allocate(size)
    assert ret == 0
    assert address > 0 and address % 64 == 0
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    ctypes.memmove(address, data, size)
    assert ctypes.string_at(address, size) == data
    assert acl.rt.free_host(address) == 0


@every_allocator
def test_every_block_is_aligned_and_apart_from_the_others(allocate):
    addresses = []
    for size in range(1, 300):
        address, ret = allocate(size)
        assert ret == 0 and address % 64 == 0
        ctypes.memset(address, size % 256, size)
        addresses.append(address)
    for size, address in enumerate(addresses, start=1):
        assert ctypes.string_at(address, size) == bytes([size % 256]) * size
        assert acl.rt.free_host(address) == 0


@every_allocator
def test_size_zero_is_refused(allocate):
    assert allocate(0) == (0, INVALID_PARAM)


@every_allocator
def test_more_than_the_host_has_is_out_of_memory(allocate):
    assert allocate(1 << 52) == (0, OUT_OF_MEMORY)


@every_allocator
def test_thread_without_a_context_gets_no_memory(allocate):
    assert on_bare_thread(allocate, 4096) == (0, NO_CONTEXT)


@every_allocator
@pytest.mark.parametrize("size", ["1", 1.0, None, [1]])
def test_size_that_is_no_integer_raises(allocate, size):
    with pytest.raises(TypeError):
        allocate(size)


def test_copies_to_the_device_and_back(block):
    ctypes.memmove(block, b"there and back again", 20)
    device_block, ret = acl.rt.malloc(4096, HUGE_FIRST)
    assert ret == 0
    assert acl.rt.memcpy(device_block, 4096, block, 20, HOST_TO_DEVICE) == 0
    assert acl.rt.memcpy(block + 100, 65436, device_block, 20, DEVICE_TO_HOST) == 0
    assert ctypes.string_at(block + 100, 20) == b"there and back again"
    assert acl.rt.free(device_block) == 0


def test_memset_fills_it(block):
    assert acl.rt.memset(block, 65536, 0x5A, 65536) == 0
    assert ctypes.string_at(block, 65536) == b"\x5a" * 65536


def test_free_needs_no_context():
    address, ret = acl.rt.malloc_host(4096)
    assert ret == 0
    assert on_bare_thread(acl.rt.free_host, address) == 0


def test_free_of_nothing_is_refused():
    assert acl.rt.free_host(0) == INVALID_PARAM


def test_free_of_a_device_address_is_refused():
    address, ret = acl.rt.malloc(4096, HUGE_FIRST)
    assert ret == 0
    assert acl.rt.free_host(address) == RT_PARAM_INVALID
    assert acl.rt.memset(address, 4096, 1, 4096) == 0
    assert acl.rt.free(address) == 0


def test_free_of_other_addresses_is_refused_and_frees_nothing(block):
    own = ctypes.create_string_buffer(4096)
    for wrong in (block + 64, block + 1, ctypes.addressof(own), 0x1234000):
        assert acl.rt.free_host(wrong) == RT_PARAM_INVALID
    ctypes.memset(block, 7, 65536)
    assert ctypes.string_at(block, 65536) == b"\x07" * 65536


def test_second_free_is_refused():
    address, ret = acl.rt.malloc_host(4096)
    assert ret == 0
    assert acl.rt.free_host(address) == 0
    assert acl.rt.free_host(address) == RT_PARAM_INVALID


def test_device_free_does_not_free_it(block):
    assert acl.rt.free(block) == RT_PARAM_INVALID
    ctypes.memset(block, 9, 65536)
    assert ctypes.string_at(block + 65535, 1) == b"\x09"


@pytest.mark.parametrize(
    "cfg",
    [
        {},
        configuration((MODULE_ID, {"moduleId": 33})),
        configuration((MODULE_ID, 33)),
        configuration((MODULE_ID, {"moduleId": 300})),
    ],
)
def test_configuration_is_accepted(cfg):
    address, ret = acl.rt.malloc_host_with_cfg(4096, cfg)
    assert ret == 0
    ctypes.memset(address, 1, 4096)
    assert acl.rt.free_host(address) == 0


@pytest.mark.parametrize(
    "cfg",
    [
        configuration((RESERVED_ATTRIBUTE, 0)),
        configuration((DEVICE_ID, {"deviceId": 0})),
        configuration((UNKNOWN_ATTRIBUTE, 0)),
        configuration((MODULE_ID, 33), (DEVICE_ID, 0)),
    ],
)
def test_attribute_that_does_not_fit_is_refused(cfg):
    assert acl.rt.malloc_host_with_cfg(4096, cfg) == (0, RT_PARAM_INVALID)


def test_one_address_for_host_and_device():
    address, ret = acl.rt.malloc_host_with_cfg(2 * MIB, configuration((VA_FLAG, 1)))
    assert ret == 0
    assert acl.rt.host_register(address, 2 * MIB, 0) == (address, 0)
    assert acl.rt.host_unregister(address) == 0
    assert acl.rt.free_host(address) == 0


@pytest.mark.parametrize(
    "cfg, error",
    [
        (None, TypeError),
        (0, TypeError),
        ({"attrs": None, "numAttrs": 1}, TypeError),
        ({"attrs": [None], "numAttrs": 1}, TypeError),
        ({"attrs": [{"attr": MODULE_ID, "value": 33}]}, KeyError),
        ({"attrs": [{"attr": MODULE_ID}], "numAttrs": 1}, KeyError),
        ({"attrs": [{"value": 33}], "numAttrs": 1}, KeyError),
    ],
)
def test_malformed_configuration_raises(cfg, error):
    with pytest.raises(error):
        acl.rt.malloc_host_with_cfg(4096, cfg)


def test_configuration_is_only_read():
    cfg = configuration((MODULE_ID, {"moduleId": 33}))
    address, ret = acl.rt.malloc_host_with_cfg(4096, cfg)
    assert ret == 0
    assert cfg == {"attrs": [{"attr": 1, "value": {"moduleId": 33}}], "numAttrs": 1}
    assert acl.rt.free_host(address) == 0


def test_program_on_the_device_gets_device_memory(fresh):
    """Where host and device are one, the call hands out normal pages of the device."""
    printed = fresh(
        """
        import acl
        DDR_NORMAL = 3
        assert acl.init() == 0 and acl.rt.set_device(0) == 0
        assert acl.rt.get_run_mode() == (0, 0)
        before, _, ret = acl.rt.get_mem_info(DDR_NORMAL)
        assert ret == 0
        address, ret = acl.rt.malloc_host(40960)
        assert ret == 0 and address != 0
        print(before - acl.rt.get_mem_info(DDR_NORMAL)[0] >= 40960)
        assert acl.rt.free_host(address) == 0
        print(acl.rt.get_mem_info(DDR_NORMAL)[0] == before)
        """,
        UNDERSTUDY_PRODUCT="200i-rc",
    )
    assert printed.split() == ["True", "True"]
