# SPDX-License-Identifier: Apache-2.0
"""acl.util: bytes objects as memory, and memory as bytes objects."""
import ctypes
import mmap

import pytest

import acl
from support import DEVICE_TO_HOST, HOST_TO_DEVICE, HUGE_FIRST, made

SIZE = 4096


@pytest.fixture
def block(device):
    """Device memory filled with 0x77."""
    with made(acl.rt.malloc, acl.rt.free, SIZE, HUGE_FIRST) as address:
        assert acl.rt.memset(address, SIZE, 0x77, SIZE) == 0
        yield address


@pytest.fixture
def closed_page():
    """The address of a page that cannot be read, behind one that can."""
    library = ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    view = (ctypes.c_char * len(memory)).from_buffer(memory)
    address = ctypes.addressof(view) + mmap.PAGESIZE
    pointer, length = ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE)
    assert library.mprotect(pointer, length, 0) == 0
    yield address
    assert library.mprotect(pointer, length, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    del view
    memory.close()


def test_pointer_is_the_buffer_of_the_object():
    data = b"the bytes themselves"
    pointer = acl.util.bytes_to_ptr(data)
    assert isinstance(pointer, int)
    assert ctypes.string_at(pointer, len(data)) == data
    assert pointer == ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    assert pointer == acl.util.bytes_to_ptr(data)


def test_copy_changes_the_same_object(block):
    data = bytes(SIZE)
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(data), SIZE, block, SIZE, DEVICE_TO_HOST) == 0
    assert data == b"\x77" * SIZE


def test_bytes_travel_to_the_device_and_back(block):
    data = bytes(range(256)) * 16
    back = bytes(SIZE)
    assert acl.rt.memcpy(block, SIZE, acl.util.bytes_to_ptr(data), SIZE, HOST_TO_DEVICE) == 0
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(back), SIZE, block, SIZE, DEVICE_TO_HOST) == 0
    assert back == data


def test_bytes_with_zeros_and_no_bytes_have_a_pointer():
    data = b"\0\0middle\0\0"
    assert ctypes.string_at(acl.util.bytes_to_ptr(data), len(data)) == data
    assert acl.util.bytes_to_ptr(b"") > 0


@pytest.mark.parametrize(
    "wrong", ["text", bytearray(b"array"), memoryview(b"view"), 5, None, [b"list"], 1.5],
    ids=lambda wrong: type(wrong).__name__,
)
def test_only_bytes_have_a_pointer(wrong):
    with pytest.raises(TypeError):
        acl.util.bytes_to_ptr(wrong)


@pytest.mark.parametrize("arguments", [(), (b"one", b"two")], ids=["none", "two"])
def test_pointer_wants_one_argument(arguments):
    with pytest.raises(TypeError):
        acl.util.bytes_to_ptr(*arguments)


@pytest.mark.parametrize("size", [1, 2, 4096, 1 << 20])
def test_bytes_are_a_copy(size):
    memory = ctypes.create_string_buffer(b"\x11" * size, size)
    copy = acl.util.ptr_to_bytes(ctypes.addressof(memory), size)
    assert type(copy) is bytes and copy == b"\x11" * size
    ctypes.memset(memory, 0x22, size)
    assert copy == b"\x11" * size
    assert acl.util.ptr_to_bytes(ctypes.addressof(memory), size) == b"\x22" * size


def test_bytes_of_page_locked_memory(device):
    address, ret = acl.rt.malloc_host(SIZE)
    assert ret == 0
    assert acl.rt.memset(address, SIZE, 0x5C, SIZE) == 0
    assert acl.util.ptr_to_bytes(address, SIZE) == b"\x5c" * SIZE
    assert acl.util.ptr_to_bytes(address + SIZE - 1, 1) == b"\x5c"
    assert acl.rt.free_host(address) == 0


def test_bytes_of_a_bytes_object():
    data = b"there and back"
    assert acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(data), len(data)) == data


@pytest.mark.parametrize("address", [0, 1, 0x1000, 2**64 - 1])
def test_no_size_gives_no_bytes(address):
    assert acl.util.ptr_to_bytes(address, 0) == b""


def test_device_memory_cannot_be_read_by_the_processor(block):
    for address, size in ((block, 1), (block, SIZE), (block + 100, 10)):
        with pytest.raises(ValueError):
            acl.util.ptr_to_bytes(address, size)


@pytest.mark.parametrize("address", [0, 1, 0x1000, 2**47, 2**63, 2**64 - 4096, -1])
@pytest.mark.parametrize("size", [1, 4096])
def test_address_nobody_can_read_raises(address, size):
    with pytest.raises(ValueError):
        acl.util.ptr_to_bytes(address, size)


def test_range_that_ends_where_nobody_can_read_raises(closed_page):
    assert acl.util.ptr_to_bytes(closed_page - 16, 16) == bytes(16)
    for address, size in ((closed_page, 1), (closed_page - 16, 17), (closed_page + 8, 1)):
        with pytest.raises(ValueError):
            acl.util.ptr_to_bytes(address, size)


def test_process_lives_on_after_bad_addresses(fresh):
    printed = fresh(
        """
        import acl
        for address in (0, 8, 1 << 46, (1 << 64) - 1):
            try:
                acl.util.ptr_to_bytes(address, 64)
            except ValueError:
                print("refused")
        """
    )
    assert printed.split() == ["refused"] * 4


@pytest.mark.parametrize(
    "arguments", [(), (1,), (1, 2, 3), ("1", 2), (1, "2"), (1.0, 2), (None, 1), (1, None), (b"", 0)]
)
def test_bytes_want_two_integers(arguments):
    with pytest.raises(TypeError):
        acl.util.ptr_to_bytes(*arguments)


@pytest.mark.parametrize("size", [-1, 2**62, 2**64 - 1])
def test_more_than_there_is_raises(size):
    memory = ctypes.create_string_buffer(64)
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        acl.util.ptr_to_bytes(ctypes.addressof(memory), size)


def test_directory_is_truthful():
    for name in ("bytes_to_ptr", "ptr_to_bytes", "numpy_to_ptr", "numpy_contiguous_to_ptr",
                 "ptr_to_numpy", "start_thread", "stop_thread"):
        assert name in dir(acl.util) and callable(getattr(acl.util, name))
    assert not hasattr(acl.util, "vector_to_ptr")
    assert not hasattr(acl.util, "ptr_to_buffer")
