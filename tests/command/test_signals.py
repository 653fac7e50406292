# SPDX-License-Identifier: Apache-2.0
"""A program under `understudy run` crashes, is interrupted, stopped and continued, and reads from
the terminal as it does without it."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import COMMAND, clean_environment
from processes import open_terminal
from programs import JOIN, python, start, until_gone

READY = "print('ready', flush=True)\n"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGKILL])
def test_crash_is_the_programs(number):
    run = start("run", *python(f"import os, resource\n"
                               f"resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
                               f"{JOIN}os.kill(os.getpid(), {int(number)})"))
    directory = run.communicate(timeout=60)[0].strip()
    assert run.returncode == -number
    until_gone(directory)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
                                    signal.SIGINT, signal.SIGQUIT])
def test_signal_to_the_command_ends_the_program(number):
    run = start("run", *python("import resource, signal\n"
                               "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
                               f"signal.signal({int(number)}, signal.SIG_DFL)\n{JOIN}"
                               "signal.pause()"))
    directory = run.stdout.readline().strip()
    run.send_signal(number)
    assert run.wait(60) == -number
    until_gone(directory)
    run.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT,
                                    signal.SIGQUIT])
def test_signal_to_the_command_reaches_a_handler(number):
    run = start("run", *python("import os, select, signal\n"
                               f"signal.signal({int(number)}, lambda *_: os._exit(7))\n{READY}"
                               "while True: select.select([], [], [], 0.05)"))
    assert run.stdout.readline() == "ready\n"
    run.send_signal(number)
    assert run.wait(60) == 7
    run.communicate()


def test_ignored_signals_stay_ignored():
    run = start("run", *python("import signal\n"
                               "print(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN,\n"
                               "      signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN,\n"
                               "      signal.pthread_sigmask(signal.SIG_BLOCK, []))"),
                preexec_fn=lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN),
                                    signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                                    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])))
    output = run.communicate(timeout=60)[0]
    assert output.startswith("True True {<Signals.SIGUSR1"), output


def test_no_signal_is_pending_that_the_program_did_not_cause():
    show = python("import signal; print(sorted(map(int, signal.sigpending())))")
    run = start("run", *show,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]))
    assert run.communicate(timeout=60)[0] == "[]\n"
    # One that was there before stays.
    run = start("run", *show,
                preexec_fn=lambda: (signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]),
                                    os.kill(os.getpid(), signal.SIGCHLD)))
    assert run.communicate(timeout=60)[0] == f"[{int(signal.SIGCHLD)}]\n"


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN])
def test_stop_and_continue(number):
    # In a process group of its own: one without a parent in its session, as ours may be, is not
    # stopped by the signals of a terminal.
    run = start("run", *python(READY + "print(input())"), stdin=subprocess.PIPE,
                preexec_fn=os.setpgrp)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(number)
    # The parent of the command is told, as of any stopped child.
    process, status = os.waitpid(run.pid, os.WUNTRACED)
    assert (process, os.WIFSTOPPED(status), os.WSTOPSIG(status)) == (run.pid, True, number)
    run.send_signal(signal.SIGCONT)
    process, status = os.waitpid(run.pid, os.WCONTINUED)
    assert os.WIFCONTINUED(status)
    assert run.communicate("goes on\n", timeout=60)[0] == "goes on\n"
    assert run.returncode == 0


class Terminal:
    """A shell with job control in a terminal of its own."""

    def __init__(self):
        if not shutil.which("bash"):
            pytest.skip("there is no bash, whose job control is needed")
        for end in open_terminal():
            os.close(end)
        self.text = ""
        environment = {**clean_environment(), "PS1": "prompt> ", "TERM": "dumb", "HISTFILE": ""}
        self.shell, self.end = pty.fork()
        if self.shell == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        self.wait_for("prompt> ")

    def type(self, text):
        os.write(self.end, text.encode())

    def wait_for(self, pattern):
        """Reads until the pattern comes; gives its match, and forgets all up to it."""
        while not (match := re.search(pattern, self.text)):
            assert select.select([self.end], [], [], 60)[0], f"no {pattern!r} in {self.text!r}"
            self.text += os.read(self.end, 4096).decode()
        self.text = self.text[match.end():]
        return match

    def close(self):
        os.close(self.end)
        os.kill(self.shell, signal.SIGKILL)
        os.waitpid(self.shell, 0)


@pytest.fixture
def terminal():
    shell = Terminal()
    yield shell
    shell.close()


@pytest.fixture
def program(tmp_path):
    """program(source): the line for a shell that runs it, with the command in front of it."""
    def line(source):
        (tmp_path / "program.py").write_text(source)
        return f"{COMMAND} run {sys.executable} {tmp_path / 'program.py'}\n"
    return line


def test_program_reads_the_terminal(terminal, program):
    terminal.type(program("import os, sys\nprint(os.isatty(0), os.isatty(1), os.ttyname(0))\n"
                          "print('read', input('name? ')[::-1])"))
    terminal.wait_for(r"True True /dev/pts/\d+")
    terminal.wait_for(r"name\? ")
    terminal.type("stranger\n")
    terminal.wait_for("read regnarts")
    terminal.wait_for("prompt> ")


def test_interrupt_from_the_terminal(terminal, program):
    terminal.type(program(f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n{JOIN}"
                          "signal.pause()"))
    directory = terminal.wait_for(r"(/\S+\.run-\w{6})")[1]
    terminal.type("\x03")
    terminal.wait_for("prompt> ")
    terminal.type("echo status $?\n")
    assert terminal.wait_for(r"status (\d+)\r")[1] == str(128 + signal.SIGINT)
    until_gone(directory)


def test_quit_from_the_terminal_reaches_a_handler(terminal, program):
    terminal.type(program("import os, signal\nsignal.signal(signal.SIGQUIT, lambda *_: os._exit(9))"
                          f"\n{READY}signal.pause()"))
    terminal.wait_for("ready\r")
    terminal.type("\x1c")
    terminal.wait_for("prompt> ")
    terminal.type("echo status $?\n")
    assert terminal.wait_for(r"status (\d+)\r")[1] == "9"


def test_job_control(terminal, program):
    terminal.type(program(JOIN + "while True: print('read', input()[::-1], flush=True)"))
    directory = terminal.wait_for(r"(/\S+\.run-\w{6})")[1]
    for _ in range(3):
        terminal.type("\x1a")
        terminal.wait_for(r"\[1\]\+ +Stopped")
        terminal.wait_for("prompt> ")
        terminal.type("fg\n")
        terminal.wait_for("program.py\r")
        terminal.type("again\n")
        terminal.wait_for("read niaga")
    # In the background it stops when it reads, as any program.
    terminal.type("\x1a")
    terminal.wait_for("prompt> ")
    terminal.type("bg\n")
    terminal.wait_for("prompt> ")
    terminal.type("wait %1; jobs\n")
    terminal.wait_for(r"Stopped")
    assert os.path.isdir(directory)
    terminal.type("kill -9 %1\n")
    until_gone(directory)


def test_end_of_the_terminal_ends_the_program(program):
    terminal = Terminal()
    terminal.type(program(JOIN + "import signal; signal.pause()"))
    directory = terminal.wait_for(r"(/\S+\.run-\w{6})")[1]
    terminal.close()  # SIGHUP to the foreground
    until_gone(directory)
