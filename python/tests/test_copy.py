# SPDX-License-Identifier: Apache-2.0
"""Copy and set: memcpy, memcpy2d, memset and their asynchronous forms."""
import ctypes

import pytest

import acl
from support import (
    HBM, HUGE_FIRST, INVALID_HANDLE, INVALID_PARAM, NOT_READY, NOT_SUPPORTED, NO_CONTEXT,
    OTHER_CONTEXT, RT_PARAM_INVALID, made, on_bare_thread, read, write,
)

SIZE = 65536
H2H, H2D, D2H, D2D, DEFAULT, H2BUF2D, INNER_D2D = range(7)

PATTERN = bytes(range(256)) * (SIZE // 256)
ASYNCHRONOUS = [acl.rt.memcpy_async, acl.rt.memcpy_async_with_condition]
every_async_copy = pytest.mark.parametrize("copy", ASYNCHRONOUS, ids=lambda call: call.__name__)


@pytest.fixture
def block(device):
    """Device memory, all zero."""
    with made(acl.rt.malloc, acl.rt.free, SIZE, HUGE_FIRST) as address:
        assert acl.rt.memset(address, SIZE, 0, SIZE) == 0
        yield address


@pytest.fixture
def second(device):
    """More device memory, filled with the pattern."""
    with made(acl.rt.malloc, acl.rt.free, SIZE, HUGE_FIRST) as address:
        write(address, PATTERN)
        yield address


@pytest.fixture
def pinned(device):
    """Page-locked host memory, filled with the pattern."""
    with made(acl.rt.malloc_host, acl.rt.free_host, SIZE) as address:
        ctypes.memmove(address, PATTERN, SIZE)
        yield address


@pytest.mark.parametrize("kind", [H2H, H2D, D2H, D2D, DEFAULT, H2BUF2D])
def test_addresses_decide_the_direction(block, second, pinned, kind):
    """Every kind of the list works between all kinds of memory."""
    target = bytes(SIZE)
    plain = acl.util.bytes_to_ptr(target)
    assert acl.rt.memcpy(block, SIZE, pinned, SIZE, kind) == 0
    assert read(block, SIZE) == PATTERN
    assert acl.rt.memcpy(plain, SIZE, block, SIZE, kind) == 0
    assert target == PATTERN
    assert acl.rt.memset(block, SIZE, 0, SIZE) == 0
    assert acl.rt.memcpy(block, SIZE, second, SIZE, kind) == 0
    assert read(block, SIZE) == PATTERN
    backwards = PATTERN[::-1]
    assert acl.rt.memcpy(plain, SIZE, acl.util.bytes_to_ptr(backwards), SIZE, kind) == 0
    assert target == backwards


def test_interior_addresses_with_any_alignment(block, second):
    assert acl.rt.memcpy(block + 3, SIZE - 3, second + 1, 5, D2D) == 0
    assert read(block, 10) == b"\0\0\0\1\2\3\4\5\0\0"


def test_only_a_too_small_maximum_matters(block):
    source = acl.util.bytes_to_ptr(PATTERN)
    assert acl.rt.memcpy(block, 2**64 - 1, source, 8, H2D) == 0
    assert acl.rt.memcpy(block + 8, 7, source, 8, H2D) == RT_PARAM_INVALID
    assert acl.rt.memcpy(block + 8, 0, source, 8, H2D) == RT_PARAM_INVALID
    assert read(block, 16) == PATTERN[:8] + bytes(8)


def test_copy_of_nothing_succeeds(device):
    assert acl.rt.memcpy(0, 0, 0, 0, 99) == 0


def test_copy_onto_itself_succeeds(second):
    assert acl.rt.memcpy(second, SIZE, second, SIZE, D2D) == 0
    assert read(second, SIZE) == PATTERN


def test_wrong_arguments_of_a_copy(block):
    source = acl.util.bytes_to_ptr(PATTERN)
    assert acl.rt.memcpy(0, SIZE, source, 8, H2D) == INVALID_PARAM
    assert acl.rt.memcpy(block, SIZE, 0, 8, H2D) == INVALID_PARAM
    for kind in (INNER_D2D, 7, 8, 1000):
        assert acl.rt.memcpy(block, SIZE, source, 8, kind) == INVALID_PARAM
    assert on_bare_thread(acl.rt.memcpy, block, SIZE, source, 8, H2D) == NO_CONTEXT
    assert read(block, SIZE) == bytes(SIZE)


def test_copy_never_leaves_its_block(block):
    beyond = bytes(64 << 20)
    pointer = acl.util.bytes_to_ptr(beyond)
    before = read(block, SIZE)
    assert acl.rt.memcpy(block, len(beyond), pointer, len(beyond), H2D) != 0
    assert acl.rt.memcpy(pointer, len(beyond), block, len(beyond), D2H) != 0
    assert read(block, SIZE) == before


def test_freed_address_is_refused(device):
    address, ret = acl.rt.malloc(SIZE, HUGE_FIRST)
    assert ret == 0 and acl.rt.free(address) == 0
    before = acl.rt.get_mem_info(HBM)
    assert acl.rt.memcpy(address, SIZE, acl.util.bytes_to_ptr(PATTERN), SIZE, H2D) != 0
    assert acl.rt.memset(address, SIZE, 1, SIZE) != 0
    assert acl.rt.get_mem_info(HBM) == before


@pytest.mark.parametrize(
    "arguments", [("0", 1, 2, 3, 1), (1, 1.5, 2, 3, 1), (1, 1, b"data", 3, 1), (1, 1, 2, 3, None)]
)
def test_copy_refuses_other_types(device, arguments):
    with pytest.raises(TypeError):
        acl.rt.memcpy(*arguments)


@every_async_copy
def test_locked_memory_is_copied_in_stream_order(copy, stream, gate, block, pinned):
    assert copy(block, SIZE, pinned, SIZE, H2D, stream) == 0
    assert acl.rt.stream_query(stream) == (NOT_READY, 0)
    assert read(block, SIZE) == bytes(SIZE)
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(block, SIZE) == PATTERN


@every_async_copy
def test_tasks_of_a_stream_follow_each_other(copy, stream, block, second, pinned):
    assert copy(block, SIZE, second, SIZE, D2D, stream) == 0
    assert acl.rt.memset_async(block, SIZE, 1, 16, stream) == 0
    assert copy(pinned, SIZE, block, SIZE, D2H, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert ctypes.string_at(pinned, SIZE) == b"\1" * 16 + PATTERN[16:]


@every_async_copy
def test_plain_memory_is_copied_on_return(copy, stream, block):
    target = bytes(SIZE)
    assert copy(block, SIZE, acl.util.bytes_to_ptr(PATTERN), SIZE, H2D, stream) == 0
    assert read(block, SIZE) == PATTERN
    assert copy(acl.util.bytes_to_ptr(target), SIZE, block, SIZE, D2H, stream) == 0
    assert target == PATTERN


@every_async_copy
def test_stream_zero_is_the_default_stream(copy, block, pinned):
    assert copy(block, SIZE, pinned, SIZE, H2D, 0) == 0
    assert acl.rt.synchronize_stream(0) == 0
    assert read(block, SIZE) == PATTERN


@every_async_copy
def test_staged_copy_lets_go_of_its_source(copy, stream, gate, block, pinned):
    assert copy(block, SIZE, pinned, SIZE, H2BUF2D, stream) == 0
    ctypes.memset(pinned, 0xEE, SIZE)
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(block, SIZE) == PATTERN


@every_async_copy
def test_wrong_arguments_of_an_asynchronous_copy(copy, stream, block, second, pinned):
    assert copy(0, 0, 0, 0, 99, stream) == 0
    assert copy(0, SIZE, pinned, 8, H2D, stream) == INVALID_PARAM
    assert copy(block, SIZE, 0, 8, H2D, stream) == INVALID_PARAM
    assert copy(block, SIZE, second, 8, INNER_D2D, stream) == INVALID_PARAM
    assert copy(block, 7, pinned, 8, H2D, stream) == RT_PARAM_INVALID
    assert copy(block, SIZE, acl.util.bytes_to_ptr(PATTERN), 8, D2H, stream) == RT_PARAM_INVALID
    assert copy(pinned, SIZE, second, 8, H2BUF2D, stream) == RT_PARAM_INVALID
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(block, SIZE) == bytes(SIZE)


@every_async_copy
@pytest.mark.parametrize("kind", [H2H, DEFAULT])
def test_host_to_host_is_not_for_streams(copy, stream, pinned, kind):
    target = bytes(16)
    assert copy(acl.util.bytes_to_ptr(target), 16, pinned, 16, kind, stream) == NOT_SUPPORTED
    assert target == bytes(16)


@every_async_copy
def test_other_streams_are_refused(copy, block, pinned):
    home, ret = acl.rt.get_context()
    assert ret == 0
    away, ret = acl.rt.create_context(0)
    assert ret == 0
    foreign, ret = acl.rt.create_stream()
    assert ret == 0
    assert acl.rt.set_context(home) == 0
    assert copy(block, SIZE, pinned, SIZE, H2D, foreign) == OTHER_CONTEXT
    assert acl.rt.destroy_context(away) == 0
    assert copy(block, SIZE, pinned, SIZE, H2D, foreign) == INVALID_HANDLE
    assert copy(block, SIZE, pinned, SIZE, H2D, 12345) == INVALID_HANDLE
    assert read(block, SIZE) == bytes(SIZE)


def rows(data, pitch, width):
    return [data[start : start + width] for start in range(0, len(data), pitch)]


def test_rows_move_and_gaps_stay(block):
    assert acl.rt.memcpy2d(block, 256, acl.util.bytes_to_ptr(PATTERN), 128, 100, 20, H2D) == 0
    there = read(block, 256 * 20)
    assert rows(there, 256, 100) == rows(PATTERN[: 128 * 20], 128, 100)
    assert all(row[100:] == bytes(156) for row in rows(there, 256, 256))
    back = bytes(110 * 20)
    assert acl.rt.memcpy2d(acl.util.bytes_to_ptr(back), 110, block, 256, 100, 20, D2H) == 0
    assert rows(back, 110, 100) == rows(there, 256, 100)
    assert all(row[100:] == bytes(10) for row in rows(back, 110, 110))


def test_rows_on_a_stream(stream, gate, block, second, pinned):
    assert acl.rt.memcpy2d_async(block, 256, second, 128, 100, 20, D2D, stream) == 0
    assert acl.rt.memcpy2d_async(block + 100, 256, pinned, 128, 10, 20, H2D, stream) == 0
    assert read(block, SIZE) == bytes(SIZE)
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0
    for row, source in zip(rows(read(block, 256 * 20), 256, 256), rows(PATTERN, 128, 128)):
        assert row == source[:100] + source[:10] + bytes(146)


def in_two_dimensions(stream):
    """Both forms of the call with equal arguments."""
    yield acl.rt.memcpy2d
    yield lambda *arguments: acl.rt.memcpy2d_async(*arguments, stream)


def test_wrong_arguments_of_rows(stream, block, pinned):
    for copy in in_two_dimensions(stream):
        assert copy(0, 0, 0, 0, 0, 1, 99) == 0
        assert copy(0, 0, 0, 0, 1, 0, 99) == 0
        assert copy(0, 64, pinned, 64, 64, 2, H2D) == INVALID_PARAM
        assert copy(block, 64, 0, 64, 64, 2, H2D) == INVALID_PARAM
        assert copy(block, 63, pinned, 64, 64, 2, H2D) == INVALID_PARAM
        assert copy(block, 64, pinned, 63, 64, 2, H2D) == INVALID_PARAM
        assert copy(block, 64, pinned, 64, 64, 2, H2H) == INVALID_PARAM
        assert copy(block, 64, pinned, 64, 64, 5242881, H2D) == RT_PARAM_INVALID
        assert copy(block, 5000001, pinned, 5000001, 5000001, 1, H2D) == RT_PARAM_INVALID
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(block, SIZE) == bytes(SIZE)


def test_rows_within_the_device_need_a_stream(block, second):
    assert acl.rt.memcpy2d(block, 64, second, 64, 64, 2, D2D) == NOT_SUPPORTED
    assert acl.rt.memcpy2d(block, 64, second, 64, 64, 2, DEFAULT) == RT_PARAM_INVALID
    assert read(block, SIZE) == bytes(SIZE)


@pytest.mark.parametrize("value, byte", [(0xAB, 0xAB), (0x1AB, 0xAB), (-1, 0xFF), (0, 0)])
def test_memset_writes_the_low_byte_to_the_first_bytes(second, pinned, value, byte):
    assert acl.rt.memset(second, SIZE, value, 1000) == 0
    assert read(second, SIZE) == bytes([byte]) * 1000 + PATTERN[1000:]
    assert acl.rt.memset(pinned + 1, SIZE - 1, value, 1000) == 0
    assert ctypes.string_at(pinned, SIZE) == PATTERN[:1] + bytes([byte]) * 1000 + PATTERN[1001:]


def test_memset_on_a_stream_waits_its_turn(stream, gate, block):
    assert acl.rt.memset_async(block, SIZE, 0x1AB, 100, stream) == 0
    assert read(block, SIZE) == bytes(SIZE)
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(block, SIZE) == b"\xab" * 100 + bytes(SIZE - 100)


def test_memset_of_host_memory_overtakes_the_stream(stream, gate, pinned):
    assert acl.rt.memset_async(pinned, SIZE, 3, SIZE, stream) == 0
    assert ctypes.string_at(pinned, SIZE) == b"\3" * SIZE
    gate.open()
    assert acl.rt.synchronize_stream(stream) == 0


def test_wrong_arguments_of_memset(stream, second):
    for fill in (acl.rt.memset, lambda *arguments: acl.rt.memset_async(*arguments, stream)):
        assert fill(0, 0, 1, 0) == 0
        assert fill(0, 8, 1, 8) == INVALID_PARAM
        assert fill(second, 7, 1, 8) == RT_PARAM_INVALID
        with pytest.raises(OverflowError):
            fill(second, 8, 1 << 32, 8)
        with pytest.raises(TypeError):
            fill(second, 8, "1", 8)
    assert acl.rt.memset_async(second, 8, 1, 8, 12345) == INVALID_HANDLE
    assert acl.rt.synchronize_stream(stream) == 0
    assert read(second, SIZE) == PATTERN


# ---- Reductions and described copies ----


def test_reduction_adds_elements(stream):
    ptr, ret = acl.rt.malloc(4096, 0)
    assert ret == 0
    data = (1).to_bytes(4, "little") * 4
    assert acl.rt.memcpy(ptr, 16, acl.util.bytes_to_ptr(data), 16, 1) == 0
    assert acl.rt.reduce_async(ptr, ptr, 16, 10, 3, stream, 0) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    back = bytes(16)
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(back), 16, ptr, 16, 2) == 0
    assert back == (2).to_bytes(4, "little") * 4
    assert acl.rt.free(ptr) == 0


def test_described_copy(stream):
    ptr, ret = acl.rt.malloc(4096, 0)
    assert ret == 0
    assert acl.rt.memcpy(ptr, 7, acl.util.bytes_to_ptr(b"written"), 7, 1) == 0
    size, ret = acl.rt.get_memcpy_desc_size(6)
    assert ret == 0 and 0 < size <= 64
    assert acl.rt.set_memcpy_desc(ptr + 1024, 6, ptr, ptr + 2048, 7, 0) == (ptr + 1024, 0)
    assert acl.rt.memcpy_async_with_desc(ptr + 1024, 6, stream) == 0
    assert acl.rt.cmo_async(ptr, 64, 0, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    back = bytes(7)
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(back), 7, ptr + 2048, 7, 2) == 0
    assert back == b"written"
    assert acl.rt.free(ptr) == 0
