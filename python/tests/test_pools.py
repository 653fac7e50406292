# SPDX-License-Identifier: Apache-2.0
"""Stream-ordered pools and managed memory."""
import ctypes

import pytest

import acl
from support import BLOCK, INVALID_PARAM, MIB, free_bytes, read, write

PROPS = {"allocType": 0, "handleType": 0, "location": {"id": 0, "type": 1}}
USED = 7
READ_MOSTLY, SET_READ_MOSTLY, PREFERRED, SET_PREFERRED = 1, 0, 2, 2


@pytest.fixture
def pool(device):
    handle, ret = acl.rt.mem_pool_create(PROPS)
    assert ret == 0
    yield handle
    assert acl.rt.mem_pool_destroy(handle) == 0


def test_pool_gives_and_takes_memory_on_a_stream(pool, stream):
    ptr, ret = acl.rt.mem_pool_malloc_async(BLOCK, pool, stream)
    assert ret == 0
    assert acl.rt.mem_pool_get_attr(pool, USED) == (BLOCK, 0)
    write(ptr, b"of a pool")
    assert read(ptr, 9) == b"of a pool"
    assert acl.rt.mem_pool_free_async(ptr, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.mem_pool_get_attr(pool, USED) == (0, 0)
    assert acl.rt.mem_pool_trim_to(pool, 0) == 0


def test_pool_keeps_what_its_threshold_says(pool, stream):
    before = free_bytes()
    assert acl.rt.mem_pool_set_attr(pool, 4, 64 * MIB) == 0
    assert acl.rt.mem_pool_get_attr(pool, 4) == (64 * MIB, 0)
    ptr, ret = acl.rt.mem_pool_malloc_async(BLOCK, pool, stream)
    assert ret == 0
    assert acl.rt.mem_pool_free_async(ptr, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.mem_pool_trim_to(pool, 0) == 0
    assert free_bytes() == before


def test_wrong_properties_of_a_pool(device):
    assert acl.rt.mem_pool_create({**PROPS, "allocType": 9}) == (0, INVALID_PARAM)
    with pytest.raises(KeyError, match="location"):
        acl.rt.mem_pool_create({"allocType": 0, "handleType": 0})


def test_managed_memory_is_one_for_processor_and_device(stream):
    ptr, ret = acl.rt.mem_alloc_managed(BLOCK, 1)
    assert ret == 0
    ctypes.memmove(ptr, b"by the processor", 16)
    assert read(ptr, 16) == b"by the processor"
    write(ptr, b"by the device")
    assert ctypes.string_at(ptr, 13) == b"by the device"
    device = {"type": 1, "id": 0}
    assert acl.rt.mem_managed_advise(ptr, BLOCK, SET_READ_MOSTLY, device) == 0
    assert acl.rt.mem_managed_get_attr(READ_MOSTLY, ptr, BLOCK) == (1, 0)
    assert acl.rt.mem_managed_advise(ptr, BLOCK, SET_PREFERRED, device) == 0
    assert acl.rt.mem_managed_get_attr(PREFERRED, ptr, BLOCK) == (0, 0)
    assert acl.rt.mem_managed_prefetch_async(ptr, BLOCK, device, 0, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.free(ptr) == 0
