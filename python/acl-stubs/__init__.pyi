# SPDX-License-Identifier: Apache-2.0
"""The Ascend runtime for Python: start and end, error texts, versions and data buffers.

A function that can fail gives a status as its only or its last result: 0 is success, and a
failure is a number, never an exception. Other outputs are zero or empty after a failure. Only
arguments of a wrong number or type raise. Addresses and handles are ints, 0 stands for none.
Devices, streams and memory are in acl.rt, bytes and threads in acl.util, see also acl.media.
"""
from typing import TypedDict

from . import media as media, rt as rt, util as util

class _PackageVersion(TypedDict):
    version: str
    majorVersion: str
    minorVersion: str
    releaseVersion: str
    patchVersion: str
    reserved: str

# ---- Start and end

def init(config_path: str = ..., /) -> int:
    """Starts the runtime for this process and counts the call.

    config_path names a JSON file; without it, or if it is empty, the defaults hold.
    A repeated call gives 100002, which is harmless, and counts too.
    """

def finalize() -> int:
    """Ends the use of the runtime at once, however often init was called.

    Everything still alive is released. A repeated call gives 100037.
    """

def finalize_reference() -> tuple[int, int]:
    """Takes back one init; gives (count, ret) with the number of calls still counted.

    The last one ends the use of the runtime as finalize does.
    """

# ---- Names, error texts, log

def get_soc_name() -> str | None:
    """Gives the name of the chip, or None on failure. There is no ret."""

def get_recent_err_msg() -> str | None:
    """Gives and clears the texts of the latest errors, newest first; None if there were none.

    They are those of the calling thread, or of the process if init read err_msg_mode 1.
    There is no ret.
    """

def app_log(level: int, message: str, /) -> None:
    """Writes a line of the program to the log.

    level is 0 for debug, 1 for info, 2 for warning and 3 for error. Only errors are shown, or
    what ASCEND_GLOBAL_LOG_LEVEL lets through. There is no ret.
    """

# ---- Versions

def get_version() -> tuple[int, int, int, int]:
    """Gives the version of the interface as (major, minor, patch, ret).

    Deprecated: use get_version_str.
    """

def get_version_str(pkg_name: str, /) -> tuple[str, int]:
    """Gives the version of an installed package as (version_str, ret).

    Hyphens and underscores in the name are the same. A package that is not there gives 100003.
    """

def get_cann_version(name: int, /) -> tuple[_PackageVersion, int]:
    """Gives the version of a package, whole and in parts, as (dict, ret).

    name is 0 for the toolkit as a whole and 1 to 7 for its packages. The keys are version,
    majorVersion, minorVersion, releaseVersion, patchVersion and reserved. A package that is not
    there gives 100003.
    """

# ---- Capabilities

def get_cann_attribute(cann_attr: int, /) -> tuple[int, int]:
    """Tells whether a feature is there, 1 or 0, as (value, ret)."""

def get_cann_attribute_list() -> tuple[list[int], int, int]:
    """Gives the features that get_cann_attribute knows, and how many, as (list, num, ret)."""

def get_device_capability(device_id: int, device_info: int, /) -> tuple[int, int]:
    """Gives a figure of a device as (value, ret).

    device_info is 0 for its cube cores, 1 for its vector cores, 2 for the bytes of its L2 cache.
    """

# ---- Data types and data buffers

def data_type_size(data_type: int, /) -> int:
    """Gives the size in bytes of one element of an ACL data type. There is no ret.

    It is 0 for a number that is no type, and for a type that does not take whole bytes.
    """

def float16_to_float(value: int, /) -> float:
    """Gives the number that 16 bits of half precision stand for. There is no ret.

    Exponent 31 is an ordinary one: 0x7C00 is 65536.
    """

def float_to_float16(value: float, /) -> int:
    """Gives the 16 bits of the nearest number of half precision. There is no ret.

    What is too large, infinite or no number becomes the largest one.
    """

def create_data_buffer(data: int, size: int, /) -> int:
    """Gives the address of a new descriptor of size bytes at data; 0 on failure.

    The data stays the property of the caller. Both arguments may be 0.
    """

def destroy_data_buffer(data_buffer: int, /) -> int:
    """Destroys a descriptor, but never frees the data it describes."""

def get_data_buffer_addr(data_buffer: int, /) -> int:
    """Gives the address of the data that a descriptor describes. There is no ret.

    It is 0 if data_buffer is no descriptor.
    """

def get_data_buffer_size(data_buffer: int, /) -> int:
    """Gives the size of the data that a descriptor describes, as far as 32 bits hold it.

    Deprecated: use get_data_buffer_size_v2. There is no ret.
    """

def get_data_buffer_size_v2(data_buffer: int, /) -> int:
    """Gives the size in bytes of the data that a descriptor describes. There is no ret.

    It is 0 if data_buffer is no descriptor.
    """

def update_data_buffer(data_buffer: int, data: int, size: int, /) -> int:
    """Lets a descriptor describe other data. The data described so far is not freed."""
