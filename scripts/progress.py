#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one step of ./dev and shows how far it is: progress.py [--log-only] STEP COMMAND...

The command's output goes to build/logs/STEP.log and is printed if the command fails, unless
--log-only says that the caller reports failures. The exit code is the command's. Progress goes to stderr: a live line on a terminal, otherwise a line at the start of a
long step and one every 30 seconds. "[37/159]" is read from the log, as ninja, ctest and run_tidy.py
write it. The expected time comes from the last comparable run, build/logs/durations.json, or from
DEFAULTS below.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

LOGS = pathlib.Path("build/logs")
DURATIONS = LOGS / "durations.json"
# Seconds and items of a cold run on two cores, for trees that have not measured their own.
DEFAULTS = {
    "build-dev": (260, 300),
    "build-asan": (145, 107),
    "build-tsan": (100, 103),
    "build-release": (105, 120),
    "tidy": (60, 11),
    "test-dev": (200, 620),
    "test-asan": (230, 540),
    "test-tsan": (195, 520),
}
# A line of ninja or run_tidy.py: "[37/159] ..."; of ctest: " 37/159 Test  #12: ...".
COUNT = re.compile(rb"^(?:\[(\d+)/(\d+)\]| *(\d+)/(\d+) Test +#)", re.MULTILINE)
LINE_INTERVAL = 30  # seconds between two lines where there is no terminal
LONG_STEP = 10  # seconds from which a step is announced there


def clock(seconds):
    """130 -> "2:10"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def count_in(log):
    """(items done, all items) by the last lines of the log, or (0, 0)."""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 16384))
        counts = COUNT.findall(file.read())
    return tuple(int(number) for number in counts[-1] if number) if counts else (0, 0)


class Expectation:
    """How long a step takes, by its last run that was no mere update of a few files."""

    def __init__(self, step):
        self._step = step
        try:
            self._recorded = json.loads(DURATIONS.read_text())
        except (OSError, ValueError):
            self._recorded = {}
        self._seconds, self._items = self._recorded.get(step) or DEFAULTS.get(step) or (0, 0)

    def seconds(self, items):
        """For that many items; 0 if unknown."""
        if items and self._items:
            return self._seconds * items / self._items
        return self._seconds

    def record(self, seconds, items):
        """Remembers a run, unless it did less than half of what the remembered one did."""
        if items * 2 < self._items:
            return
        self._recorded[self._step] = (round(seconds, 1), items)
        temporary = DURATIONS.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(self._recorded, indent=1) + "\n")
        temporary.replace(DURATIONS)


class Display:
    """Tells about one step on stderr."""

    def __init__(self, step, expectation):
        self._name = step.replace("-", " ")
        self._expectation = expectation
        self._live = sys.stderr.isatty()
        self._start = time.monotonic()
        self._next = 0.5 if self._live else LINE_INTERVAL
        expected = expectation.seconds(0)
        if not self._live and expected >= LONG_STEP:
            self._print(f"{self._name}  started, a cold run takes about {clock(expected)}")

    def elapsed(self):
        return time.monotonic() - self._start

    def update(self, log):
        """Called often; writes when it is time to."""
        elapsed = self.elapsed()
        if elapsed < self._next:
            return
        self._next = elapsed + (1 if self._live else LINE_INTERVAL)
        done, items = count_in(log)
        text = self._name
        if items:
            text += f"  [{done}/{items}]"
        text += f"  {clock(elapsed)}"
        expected = self._expectation.seconds(items)
        if expected > elapsed:
            text += f" of about {clock(expected)}"
        if self._live:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            sys.stderr.write(f"\r{text[:width - 1]}\033[K")
            sys.stderr.flush()
        else:
            self._print(text)

    def close(self):
        if self._live:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    @staticmethod
    def _print(text):
        print(text, file=sys.stderr, flush=True)


def run(step, command, show_failure):
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{step}.log"
    expectation = Expectation(step)
    display = Display(step, expectation)
    try:
        with open(log, "wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while True:
            try:
                status = process.wait(timeout=0.25)
                break
            except subprocess.TimeoutExpired:
                display.update(log)
    finally:
        display.close()
    if status == 0:
        expectation.record(display.elapsed(), count_in(log)[1])
    elif show_failure:
        sys.stderr.buffer.write(log.read_bytes())
        sys.stderr.flush()
    return status if status >= 0 else 128 - status


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log-only", action="store_true")
    parser.add_argument("step")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    try:
        return run(args.step, args.command, show_failure=not args.log_only)
    except FileNotFoundError as error:
        sys.exit(f"progress.py: {error}")
    except KeyboardInterrupt:  # the command has had it as well
        return 130


if __name__ == "__main__":
    sys.exit(main())
