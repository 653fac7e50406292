# SPDX-License-Identifier: Apache-2.0
"""Device memory shared between processes by keys: the calls ipc_mem_*."""
import pytest

import acl
from other_process import ANY_PROCESS, CHECK_PIDS, both_sides_see_each_other
from support import BLOCK, HUGE_ONLY, INVALID_PARAM, NO_PERMISSION, RT_PARAM_INVALID, made

KEY_LENGTH = 65

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def block():
    """2 MiB of plain device memory."""
    with made(acl.rt.malloc, acl.rt.free, BLOCK, HUGE_ONLY) as address:
        yield address


def key_of(block, flags):
    key, ret = acl.rt.ipc_mem_get_export_key(block, BLOCK, KEY_LENGTH, flags)
    assert ret == 0
    assert isinstance(key, str) and 0 < len(key) <= 64
    return key


@pytest.mark.parametrize("flags", [CHECK_PIDS, ANY_PROCESS])
@pytest.mark.parametrize("import_flags", [0, 1])
def test_key_opens_the_memory_elsewhere(other, block, flags, import_flags):
    key = key_of(block, flags)
    if flags == CHECK_PIDS:
        assert other.ipc_mem_import_by_key(key, import_flags) == (0, NO_PERMISSION)
        assert acl.rt.ipc_mem_set_import_pid(key, [other.pid()]) == 0
    theirs, ret = other.ipc_mem_import_by_key(key, import_flags)
    assert ret == 0 and theirs > 0
    both_sides_see_each_other(block, other, theirs)
    assert other.free(theirs) != 0
    assert other.ipc_mem_close(key) == 0
    assert other.ipc_mem_close(key) != 0
    assert acl.rt.ipc_mem_close(key) == 0
    address, ret = other.ipc_mem_import_by_key(key, import_flags)
    assert address == 0 and ret != 0


def test_every_import_of_a_key_is_closed_for_itself(other, block):
    key = key_of(block, ANY_PROCESS)
    first, ret = other.ipc_mem_import_by_key(key, 0)
    assert ret == 0
    second, ret = other.ipc_mem_import_by_key(key, 0)
    assert ret == 0 and second != first
    assert other.ipc_mem_close(key) == 0
    both_sides_see_each_other(block, other, second)
    assert other.ipc_mem_close(key) == 0
    assert acl.rt.ipc_mem_close(key) == 0


def test_wrong_key_calls_are_refused(block):
    get = acl.rt.ipc_mem_get_export_key
    assert get(0, BLOCK, KEY_LENGTH, 0) == ("", INVALID_PARAM)
    assert get(block, 0, KEY_LENGTH, 0) == ("", RT_PARAM_INVALID)
    assert get(block, BLOCK, 0, 0) == ("", RT_PARAM_INVALID)
    assert get(block, BLOCK, 64, 0) == ("", RT_PARAM_INVALID)
    assert get(block, BLOCK, KEY_LENGTH, 2) == ("", RT_PARAM_INVALID)
    assert get(block + 4096, 4096, KEY_LENGTH, 0) == ("", RT_PARAM_INVALID)
    assert get(block, 1 << 30, KEY_LENGTH, 0) == ("", RT_PARAM_INVALID)
    key = key_of(block, CHECK_PIDS)
    assert acl.rt.ipc_mem_set_import_pid(key, []) in (INVALID_PARAM, RT_PARAM_INVALID)
    assert acl.rt.ipc_mem_set_import_pid("unknown", [1]) != 0
    assert acl.rt.ipc_mem_import_by_key(key, 2) == (0, RT_PARAM_INVALID)
    address, ret = acl.rt.ipc_mem_import_by_key("unknown", 0)
    assert address == 0 and ret != 0
    assert acl.rt.ipc_mem_close("unknown") != 0
    assert acl.rt.ipc_mem_close(key) == 0


def test_keys_are_text(block):
    for call in (
        lambda: acl.rt.ipc_mem_import_by_key(b"key", 0),
        lambda: acl.rt.ipc_mem_close(None),
        lambda: acl.rt.ipc_mem_set_import_pid(1, [1]),
        lambda: acl.rt.ipc_mem_set_import_pid("key", 1),
    ):
        with pytest.raises(TypeError):
            call()
