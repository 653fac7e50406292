# SPDX-License-Identifier: Apache-2.0
"""understudy top in a real terminal, that of tmux, and without one."""

import os
import re
import shutil
import signal
import subprocess
import time
import uuid

import pytest

from conftest import COMMAND
from processes import environment_for, holders, open_terminal

PATIENCE = 60  # seconds until something that must happen counts as missing


def wait_for(condition):
    """Returns what the condition gives once that is true; it is asked again and again."""
    end = time.monotonic() + PATIENCE
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


class Screen:
    """A terminal of tmux with a shell in it."""

    def __init__(self, environment, columns, rows):
        self.socket = f"understudy-{uuid.uuid4().hex}"
        self.environment = {**environment, "LC_ALL": "C.UTF-8", "PS1": "$ "}
        self.environment.pop("TMUX", None)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  "/bin/sh")
        self.tmux("set-option", "-g", "remain-on-exit", "on")

    def tmux(self, *arguments):
        """Runs a command of tmux; what it printed."""
        return subprocess.run(["tmux", "-L", self.socket, *arguments], env=self.environment,
                              text=True, capture_output=True, check=True).stdout

    def close(self):
        """Ends the terminal and all in it."""
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], env=self.environment,
                       capture_output=True, check=False)

    def type(self, *keys):
        """Types keys, by their names in tmux."""
        self.tmux("send-keys", *keys)

    def text(self):
        """What is on it."""
        return self.tmux("capture-pane", "-p")

    def is_alternate(self):
        """Whether a program has the whole screen."""
        return self.tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def wait_for_text(self, pattern):
        """Returns the match once it is there."""
        return wait_for(lambda: re.search(pattern, self.text(), re.MULTILINE))

    def start_top(self, *options):
        """Starts top in the shell."""
        self.type(" ".join([str(COMMAND), "top", *options]) + "; echo status=$?", "Enter")
        self.wait_for_text("q quit")

    def top_pid(self):
        """The number of the running top."""
        pane = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        children = subprocess.run(["pgrep", "-P", pane], text=True, capture_output=True,
                                  check=False).stdout.split()
        return int(children[0]) if children else None

    def assert_restored(self):
        """The terminal is the shell's again: whole screen, echo, lines, cursor."""
        wait_for(lambda: not self.is_alternate())
        self.type("clear; stty -a", "Enter")
        self.wait_for_text(r"(?<!-)\bicanon\b")
        assert re.search(r"(?<!-)\becho\b", self.text())
        assert self.tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"


@pytest.fixture
def environment(tmp_path):
    return environment_for(tmp_path / "server", devices=2, memory="1G")


@pytest.fixture
def screen(environment):
    """screen(columns, rows): opens a terminal, closed at the end."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux")
    for end in open_terminal():
        os.close(end)
    opened = []

    def make(columns=100, rows=24):
        opened.append(Screen(environment, columns, rows))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_devices_and_processes_are_shown(screen, environment):
    with holders(environment, "h 512 b 1 s 2", "d 1 h 2") as (first, second):
        terminal = screen()
        terminal.start_top("--interval", "0.1")
        terminal.wait_for_text(r"^ *0 \[\|+ +\]  50% +512 MiB of 1 GiB")
        terminal.wait_for_text(rf"^ *{first.pid} command_holde +512 MiB +0\.0 +1/\d+ ")
        terminal.wait_for_text(rf"^ *{second.pid} ")
        terminal.wait_for_text("2 processes")
        second.kill()
        terminal.wait_for_text("1 process ")
        terminal.type("q")
        terminal.wait_for_text("status=0")
        terminal.assert_restored()


def test_rates_of_allocation_are_shown(screen, environment):
    with holders(environment, "c 1") as (holder,):
        terminal = screen()
        terminal.start_top("--interval", "0.1")
        terminal.wait_for_text(rf"^ *{holder.pid} command_holde +\S+( KiB)? +[1-9]\d\d+")


def test_devices_are_chosen_by_keys(screen, environment):
    with holders(environment, "d 1 h 20 d 0 h 2") as _:
        terminal = screen()
        terminal.start_top()
        terminal.wait_for_text("all devices")
        for key, device in [("Tab", "device 0"), ("Down", "device 1"), ("Right", "all devices"),
                            ("Up", "device 1"), ("Left", "device 0"), ("BTab", "all devices")]:
            terminal.type(key)
            terminal.wait_for_text(rf"^understudy top  {device}")
        terminal.type("Tab")
        terminal.wait_for_text(r"command_holde +2 MiB")


def test_help_is_shown_and_hidden(screen, environment):
    with holders(environment, "h 2") as _:
        terminal = screen()
        terminal.start_top()
        terminal.type("h")
        terminal.wait_for_text("choose a device")
        terminal.type("h")
        terminal.wait_for_text("PROGRAM")


@pytest.mark.parametrize("columns, rows", [(40, 10), (20, 4), (200, 50)])
def test_any_size_will_do(screen, environment, columns, rows):
    with holders(environment, "h 512") as (holder,):
        terminal = screen(columns, rows)
        terminal.start_top()
        if rows > 4:
            terminal.wait_for_text(rf"^ *{holder.pid} ")
        if columns == 40:
            terminal.wait_for_text(rf"^ *{holder.pid} command_holde +512 MiB +\d")
        assert all(len(line) <= columns for line in terminal.text().splitlines())


def test_resizing_draws_anew(screen, environment):
    with holders(environment, "h 512") as _:
        terminal = screen(100, 24)
        terminal.start_top()
        terminal.wait_for_text("PEAK")
        terminal.tmux("resize-window", "-x", "45", "-y", "12")
        wait_for(lambda: "PEAK" not in terminal.text() and "ALLOC/S" in terminal.text())
        terminal.tmux("resize-window", "-x", "120", "-y", "30")
        terminal.wait_for_text("PEAK")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_terminal_is_restored_after_a_signal(screen, environment, number):
    with holders(environment, "h 2") as _:
        terminal = screen()
        terminal.type("ulimit -c 0", "Enter")
        terminal.start_top()
        assert terminal.is_alternate()
        os.kill(wait_for(terminal.top_pid), number)
        if number != signal.SIGINT:  # a shell whose command was interrupted does not go on
            terminal.wait_for_text(rf"status={128 + number}")
        wait_for(lambda: terminal.top_pid() is None)
        terminal.assert_restored()


def test_interrupt_key_ends_it(screen, environment):
    with holders(environment, "h 2") as _:
        terminal = screen()
        terminal.start_top()
        terminal.type("C-c")
        wait_for(lambda: terminal.top_pid() is None)
        terminal.assert_restored()


def test_without_a_server_it_waits_for_one(screen, environment):
    terminal = screen()
    terminal.start_top("--interval", "0.1")
    terminal.wait_for_text("there is no server at")
    with holders(environment, "h 20") as (holder,):
        terminal.wait_for_text(rf"^ *{holder.pid} ")
    terminal.wait_for_text("no process uses the server")


def test_without_a_terminal_it_says_so(understudy):
    run = understudy("top", stdin=subprocess.DEVNULL)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("understudy: top needs a terminal")


def test_unknown_terminal_is_named(screen):
    terminal = screen()
    terminal.type(f"TERM=abacus {COMMAND} top; echo status=$?", "Enter")
    terminal.wait_for_text("status=2")
    assert "abacus" in terminal.text()


@pytest.mark.parametrize("seconds", ["0", "-1", "often"])
def test_interval_refuses_nonsense(understudy, seconds):
    assert understudy("top", f"--interval={seconds}").returncode == 2
