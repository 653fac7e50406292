# SPDX-License-Identifier: Apache-2.0
"""Bridges between Python objects and addresses, and threads for callbacks.

Most of these functions give their value alone, without a status; only start_thread and
stop_thread end with ret, where 0 is success. An address does not keep its object alive: that is
up to the caller. Only the functions with numpy in their names need numpy.
"""
from typing import Any, Callable

# ---- Bytes

def bytes_to_ptr(data: bytes, /) -> int:
    """Gives the address of the buffer of a bytes object, not of a copy. There is no ret.

    A copy to this address changes the object itself. Keep the object alive meanwhile.
    """

def ptr_to_bytes(ptr: int, size: int, /) -> bytes:
    """Gives a copy of size bytes of host memory as bytes. There is no ret.

    An address that the host cannot read raises ValueError.
    """

# ---- numpy

def numpy_to_ptr(array: Any, /) -> int:
    """Gives the address of the data of an array, for reading and writing. There is no ret.

    Deprecated: use bytes_to_ptr. An array that is not C-contiguous causes a printed warning.
    """

def numpy_contiguous_to_ptr(array: Any, /) -> tuple[int, Any]:
    """Gives (ptr, array_out): an address and the C-contiguous array it belongs to, without ret.

    array_out is the given array if that is contiguous, else a copy; keep it alive.
    Deprecated: use bytes_to_ptr.
    """

def ptr_to_numpy(ptr: int, shape: tuple[int, ...], npy_type: int, /) -> Any:
    """Gives an array that is a view of the memory at ptr, not a copy. There is no ret.

    npy_type is a type number of numpy, such as 2 for uint8 or 11 for float32.
    The memory must outlive the array. Deprecated: use ptr_to_bytes.
    """

# ---- Threads

def start_thread(callback: Callable[[list[Any]], object], args: list[Any], /) -> tuple[int, int]:
    """Starts a thread that calls callback(args); gives (thread_id, ret).

    callback gets the list itself as its only argument. The thread starts without a context.
    thread_id is what acl.rt.subscribe_report takes. End with stop_thread.
    """

def stop_thread(thread_id: int, /) -> int:
    """Waits until a thread from start_thread has ended. It does not make the thread end."""
