# SPDX-License-Identifier: Apache-2.0
"""What the tests of recordings share: small C programs, recorded by the real library."""

import fcntl
import json
import os
import pathlib
import shutil
import struct
import subprocess
import termios

import pytest

from conftest import BUILD, COMMAND, clean_environment

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
HEAD = """
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
"""


def compile_program(folder, name, body):
    """Compiles the functions in `body` to a program on the library."""
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc to compile the program")
    source = folder / f"{name}.c"
    source.write_text(HEAD + body)
    program = folder / name
    subprocess.run(["gcc", "-g", "-O0", "-Wall", "-Werror", "-I", INCLUDE, source, "-o", program,
                    "-L", BUILD / "lib64", "-lascendcl"], check=True, cwd=folder)
    return program


@pytest.fixture
def record(understudy, tmp_path):
    """record(body, *options, name="program"): compiles a program and runs it; its recording."""
    def run(body, *options, name="program", file=None):
        program = compile_program(tmp_path, name, body)
        file = file or tmp_path / f"{name}.recording"
        ended = understudy("run", "--trace", file, *options, "--", program)
        assert ended.returncode == 0, ended.stderr
        return file
    return run


def run_into_closed_pipe(*arguments):
    """Runs the command where its output has no reader; its status."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as output:
        return subprocess.run([COMMAND, *map(str, arguments)], env=clean_environment(),
                              stdout=output, stderr=subprocess.DEVNULL, check=False).returncode


@pytest.fixture
def facts_of(understudy):
    """facts_of(file): what `understudy trace --json` says."""
    def read(file):
        run = understudy("trace", "--json", file)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)
    return read


def terminal_output(arguments, columns, environment):
    """What a command prints on a terminal of so many columns."""
    try:
        screen, terminal = os.openpty()
    except OSError as error:
        pytest.skip(f"this host has no terminals to give ({error})")
    output = b""
    with open(screen, "rb", buffering=0) as reader:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen(list(map(str, arguments)), env=environment, stdin=terminal,
                              stdout=terminal) as process:
            os.close(terminal)
            try:
                while part := reader.read(65536):
                    output += part
            except OSError:  # the other end was closed
                pass
    assert process.returncode == 0
    return output.decode()
