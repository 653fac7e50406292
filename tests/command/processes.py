# SPDX-License-Identifier: Apache-2.0
"""Processes that the tests of the command look at: holders of memory, on a server of their own."""

import contextlib
import os
import pathlib
import pty
import subprocess
import tempfile

import pytest

from conftest import BUILD, clean_environment

HOLDER = BUILD / "bin/command_holder"
MIB = 1 << 20
SHARED_MEMORY = pathlib.Path("/dev/shm")


def environment_for(directory, **settings):
    """The environment of a process of the server at a directory; settings are keys and values."""
    environment = {**clean_environment(), "UNDERSTUDY_RUNTIME_DIR": str(directory)}
    environment.update({f"UNDERSTUDY_{key.upper()}": str(value) for key, value in settings.items()})
    return environment


class Holder:
    """A process that has what `wants` says ("h 20 s 2") until it is told to end."""

    def __init__(self, wants, environment, **options):
        self.process = subprocess.Popen([HOLDER, *wants.split()], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)

    def wait_until_ready(self):
        """Returns when it has everything."""
        line = self.process.stdout.readline()
        assert line == "ready\n", line
        return self

    @property
    def pid(self):
        """Its number."""
        return self.process.pid

    def kill(self):
        """Ends it without a chance to clean up."""
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it as a program ends."""
        self.process.stdin.close()
        try:
            self.process.wait(60)
        finally:
            if self.process.poll() is None:
                self.kill()
            self.process.stdout.close()


@contextlib.contextmanager
def holders(environment, *wants, **options):
    """Holders that are ready, ended at the end."""
    started = [Holder(each, environment, **options) for each in wants]
    try:
        yield [each.wait_until_ready() for each in started]
    finally:
        for each in started:
            each.end()


def make_server_directory(prefix):
    """A directory where the command looks for servers; the caller removes it."""
    if not os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        pytest.skip(f"this host has no {SHARED_MEMORY} that can be written")
    return tempfile.mkdtemp(prefix=prefix, dir=str(SHARED_MEMORY))


def open_terminal():
    """The two ends of a new terminal."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"this host has no terminals to give ({error})")


def ordinary_user():
    """What lets subprocess.Popen run as an ordinary user: nothing if this one is; None if it cannot
    become one that can reach the programs."""
    if os.geteuid() != 0:
        return {}
    nobody = 65534
    for folder in [HOLDER, *HOLDER.parents, SHARED_MEMORY]:
        if not folder.exists() or not folder.stat().st_mode & 0o001:
            return None
    return {"user": nobody, "group": nobody, "extra_groups": []}
