# SPDX-License-Identifier: Apache-2.0
"""Memory for media functions.

The status ret is the last result: 0 is success. The memory is plain device memory, which the
copy and set functions of acl.rt take like any other.
"""

# ---- Memory

def dvpp_malloc(size: int, /) -> tuple[int, int]:
    """Allocates device memory for media functions; gives (dev_ptr, ret).

    The address is a multiple of 128. Give it back with dvpp_free.
    """

def dvpp_free(dev_ptr: int, /) -> int:
    """Frees memory from dvpp_malloc. It does not wait for tasks that still use it."""
