# SPDX-License-Identifier: Apache-2.0
"""Memory shared between interpreters: shareable handles and keys.

The other side is a spawned process that carries out one call after another (`Other`), or a program
of its own started with subprocess. All see the same server.
"""
import multiprocessing
import signal
import subprocess
import sys

import pytest

import acl

BLOCK = 2 << 20
HBM, HBM_HUGE = 1, 4
HUGE_ONLY = 1
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
CHECK_PIDS, ANY_PROCESS = 0, 1
KEY_LENGTH = 65
PATIENCE = 100

INVALID_PARAM = 100000
RT_PARAM_INVALID = 107000
INVALID_DEVICE = 107001
INVALID_HANDLE = 107017
NO_PERMISSION = 207006

PROP = {
    "handleType": 0, "allocationType": 0, "memAttr": HBM_HUGE, "reserve": 0,
    "location": {"id": 0, "type": 1},
}


def write(address, data):
    source = acl.util.bytes_to_ptr(data)
    return acl.rt.memcpy(address, len(data), source, len(data), HOST_TO_DEVICE)


def read(address, size):
    data = bytes(size)
    assert acl.rt.memcpy(acl.util.bytes_to_ptr(data), size, address, size, DEVICE_TO_HOST) == 0
    return data


def map_somewhere(handle):
    """The address of a mapping in a reservation of its own."""
    address, ret = acl.rt.reserve_mem_address(BLOCK, 0, 0, 0)
    assert ret == 0
    assert acl.rt.map_mem(address, BLOCK, 0, handle, 0) == 0
    return address


def unmap(address):
    return acl.rt.unmap_mem(address), acl.rt.release_mem_address(address)


OWN_CALLS = {"write": write, "read": read, "map_somewhere": map_somewhere, "unmap": unmap}


def obey(connection):
    """What the other process does: calls of acl.rt, or of this file, until the pipe closes."""
    assert acl.init() == 0 and acl.rt.set_device(0) == 0
    while True:
        try:
            name, arguments = connection.recv()
        except EOFError:
            return
        connection.send((OWN_CALLS.get(name) or getattr(acl.rt, name))(*arguments))


class Other:
    """Another process; other.memset(...) calls acl.rt.memset there."""

    def __init__(self):
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        self.process = spawn.Process(target=obey, args=(theirs,))
        self.process.start()
        theirs.close()

    def __getattr__(self, name):
        def call(*arguments):
            self._connection.send((name, arguments))
            assert self._connection.poll(PATIENCE), f"no answer to {name}"
            return self._connection.recv()

        return call

    def pid(self):
        value, ret = self.device_get_bare_tgid()
        assert ret == 0 and value > 0
        return value

    def kill(self):
        self.process.kill()
        self.process.join(PATIENCE)

    def end(self):
        self._connection.close()
        self.process.join(PATIENCE)
        return self.process.exitcode


@pytest.fixture
def start_other():
    started = []

    def start():
        started.append(Other())
        return started[-1]

    yield start
    assert all(other.end() in (0, -signal.SIGKILL) for other in started)


@pytest.fixture
def other(start_other):
    return start_other()


@pytest.fixture(autouse=True)
def nothing_is_left(device):
    before = acl.rt.get_mem_info(HBM)
    yield
    assert acl.rt.get_mem_info(HBM) == before


@pytest.fixture
def handle():
    value, ret = acl.rt.malloc_physical(BLOCK, PROP, 0)
    assert ret == 0
    yield value
    assert acl.rt.free_physical(value) == 0


@pytest.fixture
def place(handle):
    """Where the block of `handle` is mapped in this process."""
    address = map_somewhere(handle)
    yield address
    assert unmap(address) == (0, 0)


@pytest.fixture
def block():
    """2 MiB of plain device memory."""
    address, ret = acl.rt.malloc(BLOCK, HUGE_ONLY)
    assert ret == 0
    yield address
    assert acl.rt.free(address) == 0


def export(handle, flags):
    token, ret = acl.rt.mem_export_to_shareable_handle(handle, 0, flags)
    assert ret == 0 and token > 0
    return token


def both_sides_see_each_other(mine, other, theirs):
    assert write(mine, b"from here") == 0
    assert other.read(theirs, 9) == b"from here"
    assert other.write(theirs + BLOCK - 10, b"from there") == 0
    assert read(mine + BLOCK - 10, 10) == b"from there"


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
    handle, ret = acl.rt.malloc_physical(BLOCK, PROP, 0)
    assert ret == 0
    mine = map_somewhere(handle)
    assert write(mine, b"left behind") == 0
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
    theirs, ret = other.malloc_physical(BLOCK, PROP, 0)
    assert ret == 0
    their_place = other.map_somewhere(theirs)
    assert other.write(their_place, b"last words") == 0
    token, ret = other.mem_export_to_shareable_handle(theirs, 0, ANY_PROCESS)
    assert ret == 0
    imported, ret = acl.rt.mem_import_from_shareable_handle(token, 0)
    assert ret == 0
    other.kill()
    mine = map_somewhere(imported)
    assert read(mine, 10) == b"last words"
    assert write(mine, b"and on") == 0
    assert read(mine, 10) == b"and onords"
    assert unmap(mine) == (0, 0)
    assert acl.rt.free_physical(imported) == 0
    assert acl.rt.mem_import_from_shareable_handle(token, 0) == (0, INVALID_HANDLE)


def test_killed_importer_leaves_the_exporter_alone(other, handle, place):
    imported, ret = other.mem_import_from_shareable_handle(export(handle, ANY_PROCESS), 0)
    assert ret == 0
    assert other.write(other.map_somewhere(imported), b"gone") == 0
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
    assert write(place, b"question") == 0
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
