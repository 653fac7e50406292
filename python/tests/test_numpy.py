# SPDX-License-Identifier: Apache-2.0
"""numpy arrays as memory, and memory as numpy arrays."""
import ctypes
import sys

import pytest

import acl
from support import DEVICE_TO_HOST, HOST_TO_DEVICE, HUGE_FIRST, made

numpy = pytest.importorskip("numpy")

SIZE = 64 << 20
WARNING = (
    "Warning:The input ndarray is discontiguous. "
    "Please use acl.util.numpy_contiguous_to_ptr instead."
)
TYPES = {
    0: "bool", 1: "int8", 2: "uint8", 3: "int16", 4: "uint16", 5: "int32", 6: "uint32",
    7: "int64", 8: "uint64", 9: "longlong", 10: "ulonglong", 11: "float32", 12: "float64",
    23: "float16",
}


@pytest.fixture
def block(device):
    with made(acl.rt.malloc, acl.rt.free, SIZE, HUGE_FIRST) as address:
        yield address


def printed(capfd):
    """What went to either stream."""
    out, err = capfd.readouterr()
    return out + err


def test_pointer_is_the_data_of_the_array(capfd):
    array = numpy.arange(1000, dtype=numpy.int32)
    pointer = acl.util.numpy_to_ptr(array)
    assert isinstance(pointer, int) and pointer == array.ctypes.data
    ctypes.memset(pointer, 0, 4)
    ctypes.memset(pointer + 4, 0xFF, 4)
    assert array[:3].tolist() == [0, -1, 2]
    assert WARNING not in printed(capfd)


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(24).reshape(4, 6).T,
        numpy.arange(24)[::2],
        numpy.asfortranarray(numpy.arange(24).reshape(4, 6)),
        numpy.arange(24).reshape(4, 6)[:, 1:3],
    ],
    ids=["transposed", "every second", "by columns", "some columns"],
)
def test_array_with_gaps_warns(capfd, array):
    assert acl.util.numpy_to_ptr(array) == array.ctypes.data
    assert WARNING in printed(capfd)


def test_contiguous_array_comes_back_itself(capfd):
    array = numpy.arange(24).reshape(2, 3, 4)
    pointer, same = acl.util.numpy_contiguous_to_ptr(array)
    assert same is array
    assert pointer == array.ctypes.data
    assert WARNING not in printed(capfd)


def test_array_with_gaps_comes_back_without(capfd):
    array = numpy.arange(24, dtype=numpy.int16).reshape(4, 6).T
    pointer, copy = acl.util.numpy_contiguous_to_ptr(array)
    assert copy is not array
    assert copy.flags.c_contiguous and copy.dtype == array.dtype
    assert numpy.array_equal(copy, array)
    assert pointer == copy.ctypes.data
    assert ctypes.string_at(pointer, copy.nbytes) == copy.tobytes()
    assert WARNING not in printed(capfd)


@pytest.mark.parametrize("helper", [acl.util.numpy_to_ptr, acl.util.numpy_contiguous_to_ptr])
@pytest.mark.parametrize("wrong", [b"bytes", 5, "text", None])
def test_only_arrays_have_a_pointer(helper, wrong):
    with pytest.raises(TypeError):
        helper(wrong)


@pytest.mark.parametrize("number, name", TYPES.items(), ids=TYPES.values())
def test_every_type_number(number, name):
    values = numpy.array([0, 1, 1, 0], dtype=name)
    view = acl.util.ptr_to_numpy(values.ctypes.data, (4,), number)
    assert isinstance(view, numpy.ndarray)
    assert view.dtype == numpy.dtype(name) and view.dtype.num == number
    assert view.shape == (4,) and numpy.array_equal(view, values)


@pytest.mark.parametrize("shape", [(), (24,), (2, 3, 4), (1, 24), (0,), (3, 0, 2)])
def test_shape_is_as_asked(shape):
    values = numpy.arange(24, dtype=numpy.float32)
    view = acl.util.ptr_to_numpy(values.ctypes.data, shape, 11)
    assert view.shape == shape and view.flags.c_contiguous
    assert view.ravel().tolist() == values[: view.size].tolist()


def test_view_shares_the_memory():
    values = numpy.zeros(6, dtype=numpy.int64)
    view = acl.util.ptr_to_numpy(values.ctypes.data, (2, 3), 7)
    assert view.ctypes.data == values.ctypes.data
    assert not view.flags.owndata
    values[4] = 17
    assert view[1, 1] == 17
    view[0, 2] = -5
    assert values.tolist() == [0, 0, -5, 0, 17, 0]


def test_view_of_page_locked_memory(device):
    address, ret = acl.rt.malloc_host(4096)
    assert ret == 0
    assert acl.rt.memset(address, 4096, 1, 4096) == 0
    view = acl.util.ptr_to_numpy(address, (1024,), 5)
    assert (view == 0x01010101).all()
    view[:] = 3
    assert acl.util.ptr_to_bytes(address, 8) == b"\3\0\0\0\3\0\0\0"
    del view
    assert acl.rt.free_host(address) == 0


@pytest.mark.parametrize(
    "arguments",
    [("1", (1,), 5), (1.0, (1,), 5), (4096, "shape", 5), (4096, 4, 5), (4096, ("4",), 5),
     (4096, (1,), "5"), (4096, (1,)), ()],
)
def test_wrong_types_raise(arguments):
    with pytest.raises(TypeError):
        acl.util.ptr_to_numpy(*arguments)


@pytest.mark.parametrize("shape, number", [((1,), 99), ((1,), -1), ((-1,), 5)])
def test_impossible_arrays_raise(shape, number):
    values = numpy.zeros(4, dtype=numpy.int64)
    with pytest.raises((ValueError, TypeError)):
        acl.util.ptr_to_numpy(values.ctypes.data, shape, number)


def test_helpers_keep_no_references():
    array = numpy.zeros(16)
    loose = array[::2]
    before = sys.getrefcount(array)
    for _ in range(1000):
        acl.util.numpy_to_ptr(array)
        acl.util.numpy_contiguous_to_ptr(array)
        acl.util.numpy_contiguous_to_ptr(loose)
        acl.util.ptr_to_numpy(array.ctypes.data, (16,), 12)
    assert abs(sys.getrefcount(array) - before) < 10


def test_64_mebibytes_there_and_back(block):
    sent = numpy.random.RandomState(1).randint(0, 2**31, SIZE // 4).astype(numpy.int32)
    received = numpy.zeros_like(sent)
    source, target = acl.util.numpy_to_ptr(sent), acl.util.numpy_to_ptr(received)
    assert acl.rt.memcpy(block, SIZE, source, SIZE, HOST_TO_DEVICE) == 0
    assert acl.rt.memcpy(target, SIZE, block, SIZE, DEVICE_TO_HOST) == 0
    assert numpy.array_equal(sent, received)


def test_64_mebibytes_there_and_back_on_a_stream(stream, block):
    host, ret = acl.rt.malloc_host(2 * SIZE)
    assert ret == 0
    sent = acl.util.ptr_to_numpy(host, (SIZE // 4,), 6)
    received = acl.util.ptr_to_numpy(host + SIZE, (SIZE // 4,), 6)
    sent[:] = numpy.random.RandomState(2).randint(0, 2**31, SIZE // 4)
    received[:] = 0
    source, target = acl.util.numpy_to_ptr(sent), acl.util.numpy_to_ptr(received)
    assert acl.rt.memcpy_async(block, SIZE, source, SIZE, HOST_TO_DEVICE, stream) == 0
    assert acl.rt.memcpy_async(target, SIZE, block, SIZE, DEVICE_TO_HOST, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert numpy.array_equal(sent, received)
    del sent, received
    assert acl.rt.free_host(host) == 0


def test_numpy_integers_are_integers(device):
    address, ret = acl.rt.malloc(numpy.int64(4096), numpy.uint8(HUGE_FIRST))
    assert ret == 0
    assert acl.rt.free(numpy.uint64(address)) == 0
    with pytest.raises(TypeError):
        acl.rt.malloc(numpy.float64(4096), HUGE_FIRST)


def test_import_of_acl_needs_no_numpy(fresh):
    printed_names = fresh(
        """
        import sys
        sys.modules["numpy"] = None
        import acl
        acl.init()
        print(acl.rt.get_device_count())
        print(sorted(n for n in sys.modules if n.startswith("numpy.")))
        try:
            acl.util.ptr_to_numpy(acl.util.bytes_to_ptr(bytes(8)), (1,), 7)
        except ImportError:
            print("numpy is missing")
        """
    )
    assert printed_names.splitlines() == ["(8, 0)", "[]", "numpy is missing"]


def test_import_of_acl_does_not_import_numpy(fresh):
    printed_names = fresh("import sys, acl; acl.init(); print('numpy' in sys.modules)")
    assert printed_names.strip() == "False"


def test_an_array_without_elements_is_nowhere():
    assert acl.util.ptr_to_numpy(0, (0, 3), 11).shape == (0, 3)
