# SPDX-License-Identifier: Apache-2.0
"""understudy diff: what grew from one recording to another."""

import json
import re
import signal
import subprocess

import pytest

from conftest import COMMAND, clean_environment
from recordings import (facts_of, record, run_into_closed_pipe,  # noqa: F401
                        terminal_output)

# pylint: disable=redefined-outer-name
MIB = 1 << 20

# So many allocations, maybe a call that fails, and empty lines that move the others.
PROGRAM = """
%(move)s
static void* keep(size_t size) {
  void* memory = NULL;
  aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST);
  return memory;
}
int main(void) {
  aclInit(NULL);
  aclrtSetDevice(0);
  for (int i = 0; i < %(count)d; ++i) keep(4 << 20);
  if (%(fail)d) aclrtFree((void*)8);
  return 0;
}
"""


def program(count=2, fail=0, move=0):
    return PROGRAM % {"count": count, "fail": fail, "move": "\n" * move}


@pytest.fixture
def diff(understudy):
    """diff(a, b): what `understudy diff --json` says."""
    def read(before, after):
        run = understudy("diff", "--json", before, after)
        assert (run.returncode, run.stderr) == (0, "")
        return json.loads(run.stdout)
    return read


def by(key, rows):
    return {row[key]: row for row in rows}


def test_growth_is_right_to_the_number(record, diff, facts_of):
    before = record(program(2), "--trace-stacks", "on")
    after = record(program(5, fail=1), "--trace-stacks", "on", file=before.with_suffix(".after"))
    found = diff(before, after)
    functions = by("function", found["functions"])
    assert functions["aclrtMalloc"]["calls"] == {"before": 2, "after": 5, "growth": 3}
    assert functions["aclInit"]["calls"]["growth"] == 0
    assert found["functions"][0]["function"] == "aclrtMalloc"
    peaks = [facts_of(each)["devices"][0]["peak_bytes"] for each in (before, after)]
    device = by("device", found["devices"])[0]
    assert device["peak_bytes"] == {"before": peaks[0], "after": peaks[1],
                                    "growth": peaks[1] - peaks[0]}
    assert device["end_bytes"]["growth"] >= 12 * MIB
    assert found["failed_calls"] == {"before": 0, "after": 1, "growth": 1}
    assert [each["function"] for each in found["failures"]] == ["aclrtFree"]
    (place,) = found["places"]
    assert place["presence"] == "both" and not place["moved"]
    assert place["allocations"] == {"before": 2, "after": 5, "growth": 3}
    assert not found["equal_but_for_times"]
    text = subprocess.run([COMMAND, "diff", before, after], capture_output=True, text=True,
                          env={**clean_environment(), "COLUMNS": "100"}, check=True).stdout
    assert re.search(r"^2 +5 +\+3 +aclrtMalloc$", text, re.MULTILINE)
    assert re.search(r"^- +1 +\+1 +aclrtFree with \d+$", text, re.MULTILINE)
    assert "device 0, at its peak" in text
    assert "aclInit" not in text.split("\nTime in calls\n", maxsplit=1)[0]


def test_equal_recordings_are_one_line(record, understudy):
    first = record(program())
    again = record(program(), name="again")
    assert understudy("diff", first, first).stdout == "The recordings are equal.\n"
    assert re.fullmatch(r"The recordings are equal but for times: \S+ \S+, then \S+ \S+\.\n",
                        understudy("diff", first, again).stdout)
    assert "aclrtSetDevice" in understudy("diff", "--all", first, again).stdout


def test_a_moved_line_is_no_new_place(record, diff):
    before = record(program(), "--trace-stacks", "on")
    moved = record(program(count=3, move=7), "--trace-stacks", "on",
                   file=before.with_suffix(".moved"))
    (place,) = diff(before, moved)["places"]
    assert place["moved"] and place["presence"] == "both"
    assert place["allocations"]["growth"] == 1


def test_without_stacks_in_one_places_are_functions(record, understudy, diff):
    before = record(program(2), "--trace-stacks", "on")
    after = record(program(4), name="after")
    found = diff(before, after)
    assert not found["places_are_stacks"]
    assert [each["place"] for each in found["places"]] == ["aclrtMalloc"]
    assert "not both have stacks" in understudy("diff", before, after).stdout


def test_damage_is_told(record, understudy, tmp_path):
    whole = record(program())
    cut = tmp_path / "cut"
    cut.write_bytes(whole.read_bytes()[:-65536 - 4096])
    run = understudy("diff", whole, cut)
    assert run.returncode == 0
    assert re.search("^understudy diff: .*cut: note: the file is cut short", run.stderr)


def test_wrong_files_are_one_sentence(record, understudy, tmp_path):
    file = record(program())
    other = tmp_path / "other"
    other.write_text("nothing")
    for pair in [(file, other), (other, file)]:
        run = understudy("diff", *pair)
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr.startswith(f"understudy diff: {other} is no recording: ")
        assert len(run.stderr.splitlines()) == 1
    assert understudy("diff", file).returncode == 2


@pytest.mark.parametrize("columns", [40, 80])
def test_lines_fit_the_terminal(record, columns):
    pair = [record(program(2), "--trace-stacks", "on"),
            record(program(5, fail=1), "--trace-stacks", "on", name="after")]
    environment = {**clean_environment(), "TERM": "xterm", "NO_COLOR": "1"}
    text = terminal_output([COMMAND, "diff", *pair], columns, environment)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= columns


def test_closed_pipe_is_no_crash(record):
    file = record(program())
    assert run_into_closed_pipe("diff", "--json", file, file) in (1, -signal.SIGPIPE)
