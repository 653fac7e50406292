# SPDX-License-Identifier: Apache-2.0
"""Another process on the same server, which carries out one call after another."""
import multiprocessing

import acl
from support import BLOCK, read, write

CHECK_PIDS, ANY_PROCESS = 0, 1  # which processes may import from this one
PATIENCE = 100


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
    """What the other process does: calls of acl.rt, or of the list above, until the pipe closes."""
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


def both_sides_see_each_other(mine, other, theirs):
    write(mine, b"from here")
    assert other.read(theirs, 9) == b"from here"
    other.write(theirs + BLOCK - 10, b"from there")
    assert read(mine + BLOCK - 10, 10) == b"from there"
