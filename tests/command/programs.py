# SPDX-License-Identifier: Apache-2.0
"""What the tests of `understudy run` share: small programs, other users, and waiting."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

from conftest import BUILD, COMMAND, clean_environment

HOME = BUILD.resolve()  # as the command sees it
LIBRARIES = str(HOME / "lib64")
# Joins the server and prints where it is.
JOIN = """
import ctypes
library = ctypes.CDLL("libascendcl.so")
assert library.aclInit(None) == 0
assert library.aclrtSetDevice(0) == 0
library.aclUnderstudyRuntimeDirectory.restype = ctypes.c_char_p
print(library.aclUnderstudyRuntimeDirectory().decode(), flush=True)
"""
PRINT_DIRECTORY = ["sh", "-c", 'echo "$UNDERSTUDY_RUNTIME_DIR"']
NOBODY = 65534


def python(source, *arguments):
    """The words of a program in Python."""
    return [sys.executable, "-c", source, *arguments]


def until(condition, seconds=60):
    """Waits until condition() is true, and gives its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.005)
    return value


def until_gone(directory):
    """Waits for the end of a server's directory."""
    assert directory.startswith("/"), directory
    until(lambda: not os.path.lexists(directory))


def start(*arguments, env=None, prefix=(), **options):
    """Starts the command; the caller waits for it."""
    return subprocess.Popen([*prefix, str(COMMAND), *map(str, arguments)],
                            env={**clean_environment(), **(env or {})}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def as_ordinary_user():
    """What to put in front of a command so that no superuser runs it."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root without setpriv cannot become an ordinary user")
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*prefix, str(COMMAND), "version"], capture_output=True,
                      check=False).returncode != 0:
        pytest.skip("an ordinary user cannot reach the build tree")
    return prefix


def in_namespaces(*options):
    """What to put in front of a command so that it gets namespaces of its own."""
    prefix = ["unshare", *options]
    if os.getuid() != 0:
        prefix += ["--user", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True,
                                                     check=False).returncode != 0:
        pytest.skip(f"this host does not let the test have its own namespaces: {options}")
    return prefix


def command_lines():
    """The command lines of all processes, by process number."""
    lines = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # ended meanwhile
    return lines
