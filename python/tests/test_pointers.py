# SPDX-License-Identifier: Apache-2.0
"""Questions about addresses, values in device memory, and registered host memory."""
import ctypes
import mmap

import pytest

import acl
from support import (
    ALREADY_REGISTERED, BLOCK, COMPLETE, DDR_HUGE, DEVICE, GIB, HBM_HUGE, HOST, HOST_TO_DEVICE,
    HUGE1G_ONLY, HUGE_ONLY, INVALID_HANDLE, INVALID_PARAM, MIB, NORMAL, NORMAL_ONLY, NOT_READY,
    NOT_REGISTERED, NOT_SUPPORTED, NO_CONTEXT, RT_PARAM_INVALID, UNREGISTERED, made, on_bare_thread,
    prop, read, write,
)

PAGE = 4096
GEQ, EQ, AND, NOR = range(4)
MAPPED, IO_MEMORY, READ_ONLY = 0, 4, 8
V2_MAPPED, V2_PINNED = 0x2, 0x10000000

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def cell():
    """Device memory for values, all zero."""
    with made(acl.rt.malloc, acl.rt.free, PAGE, NORMAL_ONLY) as address:
        assert acl.rt.memset(address, PAGE, 0, PAGE) == 0
        yield address


@pytest.fixture
def pages():
    """The address of 1 MiB of ordinary memory, aligned to a page."""
    memory = mmap.mmap(-1, MIB)
    view = (ctypes.c_char * MIB).from_buffer(memory)
    yield ctypes.addressof(view)
    del view
    memory.close()


def read_value(address):
    return int.from_bytes(read(address, 8), "little")


def write_value(address, value):
    write(address, value.to_bytes(8, "little"))


def attributes(kind, number, page_size):
    return {"location": {"id": number, "type": kind}, "pageSize": page_size, "rsv": [0, 0, 0, 0]}


def location(address):
    found, ret = acl.rt.pointer_get_attributes(address)
    assert ret == 0
    assert sorted(found) == ["location", "pageSize", "rsv"]
    return found["location"]["type"], found["location"]["id"]


@pytest.mark.parametrize(
    "policy, page_size", [(NORMAL_ONLY, PAGE), (HUGE_ONLY, 2 * MIB), (HUGE1G_ONLY, GIB)]
)
def test_device_memory_names_its_pages(policy, page_size):
    address, ret = acl.rt.malloc(3 * PAGE, policy)
    assert ret == 0
    expected = attributes(DEVICE, 0, page_size)
    for place in (address, address + 1, address + 3 * PAGE - 1):
        assert acl.rt.pointer_get_attributes(place) == (expected, 0)
    assert on_bare_thread(acl.rt.pointer_get_attributes, address) == (expected, 0)
    assert acl.rt.free(address) == 0
    assert location(address)[0] == UNREGISTERED


def test_memory_of_another_device_names_it():
    assert acl.rt.set_device(5) == 0
    address, ret = acl.rt.malloc(PAGE, NORMAL_ONLY)
    assert ret == 0
    assert acl.rt.set_device(0) == 0
    assert acl.rt.pointer_get_attributes(address) == (attributes(DEVICE, 5, PAGE), 0)
    assert acl.rt.free(address) == 0
    assert [acl.rt.reset_device(5), acl.rt.reset_device(0)] == [0, 0]


def test_host_memory_is_known_until_it_is_freed():
    address, ret = acl.rt.malloc_host(PAGE)
    assert ret == 0
    assert location(address) == (HOST, 0)
    assert location(address + PAGE - 1) == (HOST, 0)
    assert acl.rt.free_host(address) == 0
    assert location(address)[0] == UNREGISTERED


def test_ordinary_memory_is_unregistered(pages):
    assert location(pages)[0] == UNREGISTERED
    assert location(acl.util.bytes_to_ptr(b"some bytes"))[0] == UNREGISTERED
    assert location(1)[0] == UNREGISTERED


def test_nothing_has_no_attributes():
    assert acl.rt.pointer_get_attributes(0) == ({}, INVALID_PARAM)


@pytest.mark.parametrize(
    "kind, attribute, page_size",
    [(DEVICE, HBM_HUGE, 2 * MIB), (DEVICE, NORMAL, PAGE), (HOST, DDR_HUGE, 2 * MIB)],
)
def test_mapping_answers_as_its_block(kind, attribute, page_size):
    handle, ret = acl.rt.malloc_physical(BLOCK, prop(attribute, kind), 0)
    assert ret == 0
    place, ret = acl.rt.reserve_mem_address(2 * BLOCK, 0, 0, 0)
    assert ret == 0
    assert acl.rt.map_mem(place, BLOCK, 0, handle, 0) == 0
    expected = attributes(kind, 0, page_size)
    assert acl.rt.pointer_get_attributes(place + 12345) == (expected, 0)
    assert acl.rt.unmap_mem(place) == 0
    assert acl.rt.free_physical(handle) == 0
    assert acl.rt.release_mem_address(place) == 0


@pytest.mark.parametrize("value", [0, 1, 2**63, 2**64 - 1])
def test_value_is_written_in_stream_order(stream, cell, value):
    write_value(cell + 8, 77)
    assert acl.rt.memset_async(cell, 16, 0x55, 8, stream) == 0
    assert acl.rt.value_write(cell, value, 0, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert read_value(cell) == value
    assert read_value(cell + 8) == 77


def test_value_is_taken_modulo_two_to_the_64(stream, cell):
    assert acl.rt.value_write(cell, -2, 0, stream) == 0
    assert acl.rt.value_write(cell + 8, 2**64 + 3, 0, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert (read_value(cell), read_value(cell + 8)) == (2**64 - 2, 3)


@pytest.mark.parametrize(
    "flag, start, wanted, end",
    [
        (GEQ, 4, 5, 5),
        (GEQ, 4, 5, 6),
        (GEQ, 2**64 - 1, 0, 0),
        (EQ, 6, 5, 5),
        (AND, 0b1001, 0b0110, 0b0010),
        (NOR, 2**64 - 2, 1, 2**64 - 4),
    ],
)
def test_wait_holds_the_stream_until_its_condition(stream, cell, flag, start, wanted, end):
    write_value(cell, start)
    assert acl.rt.value_wait(cell, wanted, flag, stream) == 0
    assert acl.rt.value_write(cell + 8, 1, 0, stream) == 0
    assert acl.rt.stream_query(stream) == (NOT_READY, 0)
    assert read_value(cell + 8) == 0
    write_value(cell, end)
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.stream_query(stream) == (COMPLETE, 0)
    assert read_value(cell + 8) == 1


def test_one_stream_releases_another(stream, cell):
    second, ret = acl.rt.create_stream()
    assert ret == 0
    assert acl.rt.value_wait(cell, 3, EQ, stream) == 0
    assert acl.rt.value_write(cell + 8, 9, 0, stream) == 0
    assert acl.rt.value_write(cell, 3, 0, second) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert read_value(cell + 8) == 9
    assert acl.rt.destroy_stream(second) == 0


@pytest.mark.parametrize("call, flag", [(acl.rt.value_write, 1), (acl.rt.value_wait, 4)])
def test_wrong_arguments_of_values(stream, cell, pages, call, flag):
    assert call(0, 1, 0, stream) == INVALID_PARAM
    assert call(cell, 1, flag, stream) == RT_PARAM_INVALID
    assert call(cell + 4, 1, 0, stream) == RT_PARAM_INVALID
    assert call(pages, 1, 0, stream) == RT_PARAM_INVALID
    assert call(cell, 1, 0, 12345) == INVALID_HANDLE
    assert on_bare_thread(call, cell, 1, 0, 0) == NO_CONTEXT
    with pytest.raises(OverflowError):
        call(cell, 1, 1 << 32, stream)
    with pytest.raises(TypeError):
        call(cell, 1.0, 0, stream)
    assert acl.rt.stream_query(stream) == (COMPLETE, 0)
    assert read_value(cell) == 0


def test_registered_memory_gets_a_device_address(pages):
    ctypes.memset(pages, 0x33, MIB)
    pointer, ret = acl.rt.host_register(pages, MIB, MAPPED)
    assert ret == 0 and pointer > 0
    assert location(pages) == (HOST, 0)
    assert acl.rt.host_get_device_pointer(pages, 0) == (pointer, 0)
    assert acl.rt.host_unregister(pages) == 0
    assert location(pages)[0] == UNREGISTERED
    assert ctypes.string_at(pages, MIB) == b"\x33" * MIB


def test_memory_is_registered_once_at_a_time(pages):
    assert acl.rt.host_register(pages, MIB, MAPPED)[1] == 0
    assert acl.rt.host_register(pages, MIB, MAPPED) == (0, ALREADY_REGISTERED)
    assert acl.rt.host_register_v2(pages + PAGE, PAGE, V2_MAPPED) == ALREADY_REGISTERED
    assert acl.rt.host_unregister(pages) == 0
    assert acl.rt.host_unregister(pages) == NOT_REGISTERED
    assert acl.rt.host_register(pages, MIB, MAPPED)[1] == 0
    assert acl.rt.host_unregister(pages) == 0


def test_page_locked_memory_can_be_registered():
    address, ret = acl.rt.malloc_host(2 * MIB)
    assert ret == 0
    # A block may start anywhere at a multiple of 64; registration wants a page.
    start = (address + PAGE - 1) // PAGE * PAGE
    assert acl.rt.host_register(start, MIB, MAPPED)[1] == 0
    assert acl.rt.host_unregister(start) == 0
    assert acl.rt.host_register_v2(start, MIB, V2_MAPPED) == 0
    assert acl.rt.host_unregister(start) == 0
    assert acl.rt.host_register_v2(start, MIB, V2_PINNED) == RT_PARAM_INVALID
    assert acl.rt.free_host(address) == 0


@pytest.mark.parametrize(
    "offset, size, kind, code",
    [
        (None, MIB, MAPPED, INVALID_PARAM),
        (0, 0, MAPPED, INVALID_PARAM),
        (0, MIB, 1, NOT_SUPPORTED),
        (0, MIB, IO_MEMORY, NOT_SUPPORTED),
        (0, MIB, READ_ONLY, NOT_SUPPORTED),
        (64, PAGE, MAPPED, RT_PARAM_INVALID),
    ],
)
def test_wrong_registration_is_refused(pages, offset, size, kind, code):
    address = 0 if offset is None else pages + offset
    assert acl.rt.host_register(address, size, kind) == (0, code)
    assert location(pages)[0] == UNREGISTERED


def test_registration_needs_a_context(pages):
    assert on_bare_thread(acl.rt.host_register, pages, MIB, MAPPED) == (0, NO_CONTEXT)


@pytest.mark.parametrize("flag", [V2_MAPPED, V2_MAPPED | V2_PINNED])
def test_second_form_leaves_the_address_to_a_question(pages, flag):
    assert acl.rt.host_register_v2(pages, MIB, flag) == 0
    pointer, ret = acl.rt.host_get_device_pointer(pages, 0)
    assert ret == 0 and pointer > 0
    assert acl.rt.host_get_device_pointer(pages + PAGE, 0) == (0, RT_PARAM_INVALID)
    assert acl.rt.host_get_device_pointer(pages, 1) == (0, INVALID_PARAM)
    assert acl.rt.host_unregister(pages + PAGE) == NOT_REGISTERED
    assert acl.rt.host_unregister(pages) == 0
    assert acl.rt.host_get_device_pointer(pages, 0) == (0, RT_PARAM_INVALID)


def test_pinned_memory_is_copied_in_stream_order(stream, cell, pages):
    assert acl.rt.host_register_v2(pages, MIB, V2_PINNED) == 0
    assert acl.rt.host_get_device_pointer(pages, 0) == (0, RT_PARAM_INVALID)
    assert location(pages) == (HOST, 0)
    ctypes.memset(pages, 1, 8)
    assert acl.rt.value_wait(cell, 1, EQ, stream) == 0
    assert acl.rt.memcpy_async(cell + 8, 8, pages, 8, HOST_TO_DEVICE, stream) == 0
    assert read_value(cell + 8) == 0
    write_value(cell, 1)
    assert acl.rt.synchronize_stream(stream) == 0
    assert read_value(cell + 8) == 0x0101010101010101
    assert acl.rt.host_unregister(pages) == 0


@pytest.mark.parametrize(
    "offset, size, flag, code",
    [
        (None, MIB, V2_MAPPED, INVALID_PARAM),
        (0, 0, V2_MAPPED, INVALID_PARAM),
        (0, MIB, 0, RT_PARAM_INVALID),
        (0, MIB, 1, RT_PARAM_INVALID),
    ],
)
def test_wrong_second_form_is_refused(pages, offset, size, flag, code):
    address = 0 if offset is None else pages + offset
    assert acl.rt.host_register_v2(address, size, flag) == code
    assert location(pages)[0] == UNREGISTERED


def test_nothing_and_strangers_are_not_registered(pages):
    assert acl.rt.host_get_device_pointer(0, 0) == (0, INVALID_PARAM)
    assert acl.rt.host_unregister(0) == INVALID_PARAM
    assert acl.rt.host_unregister(pages) == NOT_REGISTERED
    with pytest.raises(TypeError):
        acl.rt.host_register(b"memory", 6, MAPPED)
