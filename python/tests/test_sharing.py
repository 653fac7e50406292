# SPDX-License-Identifier: Apache-2.0
"""Physical memory shared between interpreters: shareable handles.

The other side is a process that makes one call after another, or a program of its own.
"""
import subprocess
import sys

import pytest

import acl
from other_process import (
    ANY_PROCESS, CHECK_PIDS, PATIENCE, both_sides_see_each_other, map_somewhere, unmap,
)
from support import (
    BLOCK, HBM, INVALID_DEVICE, INVALID_HANDLE, INVALID_PARAM, NO_PERMISSION, RT_PARAM_INVALID,
    prop, read, write,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def place(handle):
    """Where the block of `handle` is mapped in this process."""
    address = map_somewhere(handle)
    yield address
    assert unmap(address) == (0, 0)


def export(handle, flags):
    token, ret = acl.rt.mem_export_to_shareable_handle(handle, 0, flags)
    assert ret == 0 and token > 0
    return token


def test_listed_process_shares_the_block(other, handle, place):
    token = export(handle, CHECK_PIDS)
    free = acl.rt.get_mem_info(HBM)
    assert acl.rt.mem_set_pid_to_shareable_handle(token, [other.pid()]) == 0
    imported, ret = other.mem_import_from_shareable_handle(token, 0)
    assert ret == 0 and imported > 0
    theirs = other.map_somewhere(imported)
    both_sides_see_each_other(place, other, theirs)
    assert acl.rt.get_mem_info(HBM) == free
    assert other.unmap(theirs) == (0, 0)
    assert other.free_physical(imported) == 0
    assert other.free_physical(imported) == RT_PARAM_INVALID


def test_unlisted_process_is_refused_until_it_is_listed(other, handle):
    token = export(handle, CHECK_PIDS)
    assert other.mem_import_from_shareable_handle(token, 0) == (0, NO_PERMISSION)
    own, ret = acl.rt.device_get_bare_tgid()
    assert ret == 0
    assert acl.rt.mem_set_pid_to_shareable_handle(token, [own]) == 0
    assert other.mem_import_from_shareable_handle(token, 0) == (0, NO_PERMISSION)
    assert acl.rt.mem_set_pid_to_shareable_handle(token, [0, other.pid()]) == 0
    imported, ret = other.mem_import_from_shareable_handle(token, 0)
    assert ret == 0
    assert other.free_physical(imported) == 0


def test_any_process_shares_without_a_list(start_other, handle, place):
    token = export(handle, ANY_PROCESS)
    for other in (start_other(), start_other()):
        imported, ret = other.mem_import_from_shareable_handle(token, 0)
        assert ret == 0
        theirs = other.map_somewhere(imported)
        both_sides_see_each_other(place, other, theirs)
        assert other.unmap(theirs) == (0, 0)
        assert other.free_physical(imported) == 0


def test_import_on_another_device(other, handle, place):
    token = export(handle, ANY_PROCESS)
    assert other.set_device(2) == 0
    imported, ret = other.mem_import_from_shareable_handle(token, 2)
    assert ret == 0
    theirs = other.map_somewhere(imported)
    both_sides_see_each_other(place, other, theirs)
    assert other.unmap(theirs) == (0, 0)
    assert other.free_physical(imported) == 0


def test_importer_keeps_what_the_exporter_frees(other):
    before = acl.rt.get_mem_info(HBM)[0]
    handle, ret = acl.rt.malloc_physical(BLOCK, prop(), 0)
    assert ret == 0
    mine = map_somewhere(handle)
    write(mine, b"left behind")
    token = export(handle, ANY_PROCESS)
    imported, ret = other.mem_import_from_shareable_handle(token, 0)
    assert ret == 0
    assert unmap(mine) == (0, 0)
    assert acl.rt.free_physical(handle) == 0
    theirs = other.map_somewhere(imported)
    assert other.read(theirs, 11) == b"left behind"
    assert acl.rt.get_mem_info(HBM)[0] == before - BLOCK
    assert other.unmap(theirs) == (0, 0)
    assert other.free_physical(imported) == 0
    assert acl.rt.get_mem_info(HBM)[0] == before
    assert other.mem_import_from_shareable_handle(token, 0) == (0, INVALID_HANDLE)


def test_importer_outlives_a_killed_exporter(other):
    theirs, ret = other.malloc_physical(BLOCK, prop(), 0)
    assert ret == 0
    their_place = other.map_somewhere(theirs)
    other.write(their_place, b"last words")
    token, ret = other.mem_export_to_shareable_handle(theirs, 0, ANY_PROCESS)
    assert ret == 0
    imported, ret = acl.rt.mem_import_from_shareable_handle(token, 0)
    assert ret == 0
    other.kill()
    mine = map_somewhere(imported)
    assert read(mine, 10) == b"last words"
    write(mine, b"and on")
    assert read(mine, 10) == b"and onords"
    assert unmap(mine) == (0, 0)
    assert acl.rt.free_physical(imported) == 0
    assert acl.rt.mem_import_from_shareable_handle(token, 0) == (0, INVALID_HANDLE)


def test_killed_importer_leaves_the_exporter_alone(other, handle, place):
    imported, ret = other.mem_import_from_shareable_handle(export(handle, ANY_PROCESS), 0)
    assert ret == 0
    other.write(other.map_somewhere(imported), b"gone")
    other.kill()
    assert read(place, 4) == b"gone"


def test_second_import_in_one_process_is_refused(other, handle):
    token = export(handle, ANY_PROCESS)
    imported, ret = other.mem_import_from_shareable_handle(token, 0)
    assert ret == 0
    assert other.mem_import_from_shareable_handle(token, 0) == (0, INVALID_HANDLE)
    assert other.mem_export_to_shareable_handle(imported, 0, ANY_PROCESS) == (0, RT_PARAM_INVALID)
    assert other.free_physical(imported) == 0
    imported, ret = other.mem_import_from_shareable_handle(token, 0)
    assert ret == 0
    assert other.free_physical(imported) == 0


def test_wrong_export_is_refused(handle):
    refused = acl.rt.mem_export_to_shareable_handle
    assert refused(0, 0, 0) == (0, INVALID_PARAM)
    assert refused(handle, 2, 0) == (0, INVALID_PARAM)
    assert refused(handle, 0, 2) == (0, RT_PARAM_INVALID)
    assert refused(0xDEAD, 0, 0) == (0, RT_PARAM_INVALID)
    export(handle, CHECK_PIDS)
    assert refused(handle, 0, CHECK_PIDS) == (0, RT_PARAM_INVALID)


def test_wrong_list_is_refused(other, handle):
    token = export(handle, CHECK_PIDS)
    assert acl.rt.mem_set_pid_to_shareable_handle(token, []) == INVALID_PARAM
    assert acl.rt.mem_set_pid_to_shareable_handle(token, [0, 0]) == RT_PARAM_INVALID
    assert acl.rt.mem_set_pid_to_shareable_handle(12345, [1]) == INVALID_HANDLE
    assert other.mem_set_pid_to_shareable_handle(token, [1]) == NO_PERMISSION
    for pids in (5, None, ["1"], [1.0]):
        with pytest.raises(TypeError):
            acl.rt.mem_set_pid_to_shareable_handle(token, pids)
    with pytest.raises(OverflowError):
        acl.rt.mem_set_pid_to_shareable_handle(token, [1 << 31])
    assert other.mem_import_from_shareable_handle(token, 0) == (0, NO_PERMISSION)


def test_open_export_takes_no_list_and_no_wrong_import(handle):
    token = export(handle, ANY_PROCESS)
    assert acl.rt.mem_set_pid_to_shareable_handle(token, [1]) == NO_PERMISSION
    assert acl.rt.mem_import_from_shareable_handle(token, 0) == (0, NO_PERMISSION)
    assert acl.rt.mem_import_from_shareable_handle(token, 8) == (0, INVALID_DEVICE)
    assert acl.rt.mem_import_from_shareable_handle(token, -1) == (0, INVALID_DEVICE)
    assert acl.rt.mem_import_from_shareable_handle(12345, 0) == (0, INVALID_HANDLE)


PROGRAM = """
import sys
import acl
acl.init()
acl.rt.set_device(0)
print(acl.rt.device_get_bare_tgid()[0], flush=True)
token = int(sys.stdin.readline())
handle, ret = acl.rt.mem_import_from_shareable_handle(token, 0)
assert ret == 0, ret
address, ret = acl.rt.reserve_mem_address(2 << 20, 0, 0, 1)
assert ret == 0, ret
assert acl.rt.map_mem(address, 2 << 20, 0, handle, 0) == 0
data = bytes(8)
assert acl.rt.memcpy(acl.util.bytes_to_ptr(data), 8, address, 8, 2) == 0
print(data.decode(), flush=True)
answer = data[::-1]
assert acl.rt.memcpy(address, 8, acl.util.bytes_to_ptr(answer), 8, 1) == 0
"""


@pytest.mark.parametrize("flags", [CHECK_PIDS, ANY_PROCESS])
def test_independent_program_shares_the_block(handle, place, flags):
    write(place, b"question")
    token = export(handle, flags)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    ) as program:
        pid = int(program.stdout.readline())
        if flags == CHECK_PIDS:
            assert acl.rt.mem_set_pid_to_shareable_handle(token, [pid]) == 0
        printed, _ = program.communicate(f"{token}\n", timeout=PATIENCE)
    assert program.returncode == 0
    assert printed == "question\n"
    assert read(place, 8) == b"noitseuq"


# ---- Handles of either kind ----

NUMBER = 1


def test_numbers_are_shared_by_the_calls_for_either_kind(other, handle, place):
    token, ret = acl.rt.mem_export_to_shareable_handle_v2(handle, CHECK_PIDS, NUMBER)
    assert ret == 0 and token > 0
    assert acl.rt.mem_set_pid_to_shareable_handle_v2(token, NUMBER, [other.pid()]) == 0
    imported, ret = other.mem_import_from_shareable_handle_v2(token, NUMBER, 0)
    assert ret == 0 and imported > 0
    theirs = other.map_somewhere(imported)
    both_sides_see_each_other(place, other, theirs)
    assert other.unmap(theirs) == (0, 0)
    assert other.free_physical(imported) == 0


def test_handle_for_other_servers_is_bytes(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        prop = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1}}
        handle, ret = acl.rt.malloc_physical(2 << 20, prop, 0)
        assert ret == 0
        token, ret = acl.rt.mem_export_to_shareable_handle_v2(handle, 1, 2)
        assert ret == 0 and type(token) is bytes and len(token) == 128
        assert acl.rt.mem_import_from_shareable_handle_v2(token, 2, 0) == (0, 207006)
        assert acl.rt.mem_import_from_shareable_handle_v2(token[:-1] + b"!", 2, 0)[1] != 0
        """,
        UNDERSTUDY_PRODUCT="a3",
    )


@pytest.mark.parametrize(
    "token, error", [(None, TypeError), ("1", TypeError), (b"x" * 129, ValueError)]
)
def test_wrong_handle_of_either_kind_raises(token, error):
    with pytest.raises(error):
        acl.rt.mem_import_from_shareable_handle_v2(token, NUMBER, 0)
    with pytest.raises(error):
        acl.rt.mem_set_pid_to_shareable_handle_v2(token, NUMBER, [1])


def test_unknown_kind_of_handle_gives_none(handle):
    token, ret = acl.rt.mem_export_to_shareable_handle_v2(handle, ANY_PROCESS, 7)
    assert token == 0 and ret != 0
