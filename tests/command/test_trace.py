# SPDX-License-Identifier: Apache-2.0
"""understudy trace: what it says of real recordings, and of files that are none."""

import json
import os
import random
import re
import signal
import subprocess

import pytest

from conftest import COMMAND, clean_environment
from programs import start, until
from recordings import (compile_program, facts_of, record,  # noqa: F401
                        run_into_closed_pipe, terminal_output)

# pylint: disable=redefined-outer-name
MIB = 1 << 20
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

# Every call is known: 3 allocations on device 0, of which two are freed, and two failures.
KNOWN = """
static void* keep(size_t size) {
  void* memory = NULL;
  aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST);
  return memory;
}
int main(void) {
  aclInit(NULL);
  aclrtSetDevice(0);
  void* first = keep(4 << 20);
  void* second = keep(8 << 20);
  aclrtFree(first);
  aclrtFree(first);
  keep(2 << 20);
  aclrtFree(second);
  aclrtFree(NULL);
  void* addresses = NULL;
  aclrtReserveMemAddress(&addresses, 40 << 20, 0, NULL, 0);
  aclrtPhysicalMemProp prop;
  memset(&prop, 0, sizeof prop);
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle block = NULL, idle = NULL;
  aclrtMallocPhysical(&block, 20 << 20, &prop, 0);
  aclrtMallocPhysical(&idle, 6 << 20, &prop, 0);
  aclrtMapMem(addresses, 20 << 20, 0, block, 0);
  return 0;
}
"""

STREAMS = """
static void nothing(void* unused) { (void)unused; }
int main(void) {
  aclInit(NULL);
  aclrtSetDevice(0);
  aclrtStream one, other;
  aclrtCreateStream(&one);
  aclrtCreateStream(&other);
  aclrtEvent event;
  aclrtCreateEvent(&event);
  void* host = NULL;
  void* device = NULL;
  aclrtMallocHost(&host, 4 << 20);
  aclrtMalloc(&device, 4 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  for (int i = 0; i < 5; ++i) {
    aclrtMemcpyAsync(device, 4 << 20, host, 4 << 20, ACL_MEMCPY_HOST_TO_DEVICE, one);
  }
  aclrtRecordEvent(event, one);
  aclrtStreamWaitEvent(other, event);
  aclrtMemcpyAsync(host, 1 << 20, device, 1 << 20, ACL_MEMCPY_DEVICE_TO_HOST, other);
  aclrtSynchronizeStream(one);
  aclrtSynchronizeStream(other);
  (void)nothing;
  return 0;
}
"""


def by(key, rows):
    """Rows of JSON by one of their facts."""
    return {row[key]: row for row in rows}


def test_figures_are_right_to_the_number(record, facts_of):
    facts = facts_of(record(KNOWN, "--trace-stacks", "on"))
    functions = by("function", facts["functions"])
    assert {name: each["calls"] for name, each in functions.items()} == {
        "aclInit": 1, "aclrtSetDevice": 1, "aclrtMalloc": 3, "aclrtFree": 4,
        "aclrtReserveMemAddress": 1, "aclrtMallocPhysical": 2, "aclrtMapMem": 1}
    assert facts["calls"] == 13
    assert facts["failed_calls"] == functions["aclrtFree"]["failed"] == 2
    assert sum(each["calls"] for each in facts["failures"]) == 2
    assert {each["function"] for each in facts["failures"]} == {"aclrtFree"}
    for each in functions.values():
        assert each["total_ns"] >= each["longest_ns"] >= each["p99_ns"] >= each["p50_ns"]
        assert each["mean_ns"] == each["total_ns"] // each["calls"]
    assert facts["duration_ns"] > 0
    assert (facts["lost"], facts["ring"], facts["notes"]) == (0, False, [])


def test_memory_adds_up(record, facts_of):
    facts = facts_of(record(KNOWN, "--trace-stacks", "on"))
    device = by("device", facts["devices"])[0]
    taken = [each for each in facts["places"] if each["allocations"] > 0]
    assert device["allocations"] == sum(each["allocations"] for each in taken) == 5
    assert device["end_bytes"] == sum(each["end_bytes"] for each in taken)
    assert device["peak_bytes"] == sum(each["peak_bytes"] for each in taken)
    assert device["peak_bytes"] == sum(each["bytes"] for each in device["at_peak"])
    assert max(device["curve_bytes"]) == device["curve_bytes"][-1] == device["peak_bytes"]
    # At the end two blocks are there and the last allocation, with what its pages take besides.
    rest = device["peak_bytes"] - (20 + 6 + 2) * MIB
    assert 0 <= rest == device["end_bytes"] - (20 + 6 + 2) * MIB
    assert device["largest_bytes"] == 20 * MIB
    kept = [each for each in taken if each["stack"].startswith("keep at program.c:")]
    assert sum(each["allocations"] for each in kept) == 3
    assert by("kind", device["at_end"])["physical block"] == {
        "kind": "physical block", "objects": 2, "bytes": 26 * MIB}
    assert facts["alive"]["bytes"] == device["end_bytes"]


def test_fragmentation_is_that_of_the_page(record, facts_of):
    found = by("device", facts_of(record(KNOWN))["fragmentation"])[0]["at_end"]
    assert (found["reserved_bytes"], found["mapped_bytes"]) == (40 * MIB, 20 * MIB)
    assert found["unmapped_share"] == 0.5
    assert (found["physical_bytes"], found["idle_physical_bytes"]) == (26 * MIB, 6 * MIB)
    assert (found["allocated_bytes"], found["holes"]) == (2 * MIB, 0)


def test_holes_between_allocations_are_counted(record, facts_of):
    body = """
int main(void) {
  aclInit(NULL);
  aclrtSetDevice(0);
  char* parts[9];
  for (int i = 0; i < 9; ++i) {
    aclrtMalloc((void**)&parts[i], 2 << 20, ACL_MEM_MALLOC_HUGE_ONLY);
  }
  for (int i = 1; i < 9; i += 2) aclrtFree(parts[i]);
  return 0;
}
"""
    facts = facts_of(record(body))
    both = by("device", facts["fragmentation"])[0]
    at_peak, found = both["at_peak"], both["at_end"]
    assert found["allocated_bytes"] == 10 * MIB
    assert found["holes"] == 4
    # What the four freed ones had, and the space that is between any two.
    assert found["hole_bytes"] == at_peak["hole_bytes"] + 8 * MIB
    assert found["largest_hole_bytes"] * 4 >= found["hole_bytes"]
    assert at_peak["allocated_bytes"] == 18 * MIB


def test_tasks_and_streams(record, facts_of):
    facts = facts_of(record(STREAMS))
    kinds = by("kind", facts["task_kinds"])
    assert kinds["copy"]["tasks"] == kinds["copy"]["ran"] == 6
    assert kinds["copy"]["bytes"] == 21 * MIB
    assert (kinds["event record"]["tasks"], kinds["event wait"]["tasks"]) == (1, 1)
    assert facts["tasks"] == sum(each["tasks"] for each in facts["streams"]) == 8
    assert facts["failed_tasks"] == 0
    by_bytes = by("bytes", facts["streams"])
    assert (by_bytes[20 * MIB]["waits"], by_bytes[MIB]["waits"]) == (0, 1)
    for stream in facts["streams"]:
        assert 0 < stream["busy_share"] <= 1
        assert stream["delay_p99_ns"] >= stream["delay_mean_ns"] > 0
        assert stream["device"] == 0


def test_screen_has_the_figures_and_no_control_characters(record, understudy):
    run = understudy("trace", record(KNOWN, "--trace-stacks", "on"), env={"COLUMNS": "100"})
    assert (run.returncode, run.stderr) == (0, "")
    assert not CONTROL.search(run.stdout)
    assert re.search(r"^Calls: 13, .*, 2 failed$", run.stdout, re.MULTILINE)
    assert re.search(r"^ +4 +2 .* aclrtFree$", run.stdout, re.MULTILINE)
    assert re.search(r"^  aclrtFree failed with \d+, [12] times?$", run.stdout, re.MULTILINE)
    assert re.search(r"^Device 0: peak \d+.*MiB at ", run.stdout, re.MULTILINE)
    assert "50 % of 40 MiB reserved is not mapped; 6 MiB of 26 MiB physical" in run.stdout
    assert re.search(r"keep at program\.c:\d+ < main at program\.c:\d+", run.stdout)
    assert re.search("and [1-9] more functions?: --all", run.stdout)
    complete = understudy("trace", "--all", record(KNOWN), env={"COLUMNS": "100"}).stdout
    assert "--all" not in complete
    assert "\nThreads\n" in complete


def test_without_stacks_memory_is_by_function(record, understudy):
    text = understudy("trace", record(KNOWN)).stdout
    assert "stacks were not recorded: --trace-stacks" in text
    assert re.search(r"^.* 2 +\S+ MiB  aclrtMallocPhysical$", text, re.MULTILINE)


@pytest.mark.parametrize("locale, block", [("C.UTF-8", "\u2588"), ("C", "#")])
def test_curve_fits_the_locale(record, understudy, locale, block):
    text = understudy("trace", record(KNOWN), env={"LC_ALL": locale}).stdout
    assert block in text
    assert text.isascii() == (block == "#")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(record, columns):
    environment = {**clean_environment(), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    environment.pop("NO_COLOR", None)
    text = terminal_output([COMMAND, "trace", record(KNOWN, "--trace-stacks", "on")], columns,
                           environment)
    assert "\x1b[" in text
    plain = re.sub(r"\x1b\[\d+m", "", text)
    assert max(map(len, plain.splitlines())) <= columns
    assert ("P99" in plain) == (columns >= 80)
    environment["NO_COLOR"] = "1"
    text = terminal_output([COMMAND, "trace", record(KNOWN)], columns, environment)
    assert "\x1b" not in text


def test_killed_program_names_its_call(understudy, facts_of, tmp_path):
    program = compile_program(tmp_path, "program", """
static void never(void* ready) { *(volatile int*)ready = 1; for (;;) pause(); }
int main(void) {
  aclInit(NULL);
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  void* memory = NULL;
  aclrtMalloc(&memory, 4 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  static volatile int ready;
  aclrtLaunchHostFunc(stream, never, (void*)&ready);
  while (!ready) usleep(100);
  printf("%d\\n", getpid());
  fflush(stdout);
  aclrtSynchronizeStream(stream);
  return 0;
}
""")
    file = tmp_path / "killed.recording"
    with start("run", "--trace", file, "--", program,
               env={"UNDERSTUDY_RUNTIME_DIR": str(tmp_path / "server")}) as run:
        pid = int(run.stdout.readline())

        def open_call():
            threads = facts_of(file)["processes"][0]["threads"]
            return [each["open_call"]["function"] for each in threads if each["open_call"]]

        until(lambda: open_call() == ["aclrtSynchronizeStream"])
        os.kill(pid, signal.SIGKILL)
        run.communicate(timeout=60)
    facts = facts_of(file)
    assert facts["processes"][0]["pid"] == pid
    assert by("function", facts["functions"])["aclrtMalloc"]["calls"] == 1
    assert by("device", facts["devices"])[0]["end_bytes"] >= 4 * MIB
    assert open_call() == ["aclrtSynchronizeStream"]
    assert re.search(rf"thread {pid}.* had not come back from aclrtSynchronizeStream, called at ",
                     understudy("trace", file).stdout)


# The parent lives while its child begins, and has the file mapped.
@pytest.mark.parametrize("before, after", [("fork();", ""), ("0;", "child = fork();")])
def test_fork_children_appear(record, facts_of, understudy, before, after):
    file = record("""
int main(void) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) return 1;
  pid_t child = %s
  if (aclInit(NULL) != 0) return 2;
  %s
  if (aclrtSetDevice(child == 0 ? 1 : 0) != 0) return 3;
  void* memory = NULL;
  aclrtMalloc(&memory, 4 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  if (child == 0) {
    aclrtFree(memory);
    if (write(ends[1], &byte, 1) != 1) return 4;
    exit(0);
  }
  if (read(ends[0], &byte, 1) != 1) return 5;
  waitpid(child, NULL, 0);
  return 0;
}
""" % (before, after))
    facts = facts_of(file)
    assert len(facts["processes"]) == 2
    calls = sorted(sum(thread["calls"] for thread in each["threads"])
                   for each in facts["processes"])
    assert calls == ([3, 4] if "fork" in before else [3, 3])
    assert set(by("device", facts["devices"])) == {0, 1}
    assert by("device", facts["devices"])[1]["end_bytes"] == 0
    assert "2 processes" in understudy("trace", file).stdout


def test_a_full_file_says_what_is_lost(record, understudy, facts_of):
    body = """
int main(void) {
  aclInit(NULL);
  size_t free, total;
  aclrtSetDevice(0);
  for (int i = 0; i < 60000; ++i) aclrtGetMemInfo(ACL_HBM_MEM, &free, &total);
  return 0;
}
"""
    file = record(body, "--trace-limit", "1M")
    facts = facts_of(file)
    assert facts["lost"] > 0
    assert facts["calls"] + facts["lost"] == 60002
    assert f"note: {facts['lost']} records found no room" in understudy("trace", file).stdout
    ring = facts_of(record(body, "--trace-limit", "1M", "--trace-ring", "on", name="ring"))
    assert ring["ring"] and ring["lost"] == 0 and 0 < ring["calls"] < 60002


def test_cut_file_opens_with_a_note(record, understudy, tmp_path):
    whole = record(KNOWN).read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[:-65536 - 4096])
    run = understudy("trace", cut)
    assert run.returncode == 0
    assert re.search("^note: the file is cut short", run.stdout, re.MULTILINE)


@pytest.mark.parametrize("content, why", [
    (b"", "is no recording: the file is empty"),
    (b"x" * 50, "is no recording: the file is shorter than its header"),
    (b"x" * 5000, "is no recording: it does not begin like one"),
])
def test_other_files_are_named(understudy, tmp_path, content, why):
    file = tmp_path / "file"
    file.write_bytes(content)
    run = understudy("trace", file)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"understudy trace: {file} {why}\n"


def test_missing_file_is_one_sentence(understudy, tmp_path):
    run = understudy("trace", tmp_path / "none")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"understudy trace: {tmp_path}/none cannot be read: " \
                         "No such file or directory\n"
    assert len(understudy("trace", tmp_path).stderr.splitlines()) == 1


def test_names_cannot_reach_the_terminal(understudy, tmp_path):
    program = compile_program(tmp_path, "program", KNOWN)
    file = tmp_path / "recording"
    word = b"\x1b[2J\xc2\x9b31m\xff\n\xe2\x80\xae!"
    assert understudy("run", "--trace", file, "--", program, os.fsdecode(word)).returncode == 0
    run = understudy("trace", file, env={"LC_ALL": "C.UTF-8"})
    assert run.returncode == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", run.stdout)
    assert json.loads(understudy("trace", "--json", file).stdout)["calls"] == 13


def test_closed_pipe_is_no_crash(record):
    file = record(KNOWN)
    for options in ([], ["--json"], ["--all"]):
        assert run_into_closed_pipe("trace", *options, file) in (1, -signal.SIGPIPE)


def test_full_disk_is_told(record):
    file = record(KNOWN)
    with open("/dev/full", "wb") as full:
        run = subprocess.run([COMMAND, "trace", file], env=clean_environment(), stdout=full,
                             stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert "No space left on device" in run.stderr


def test_damaged_files_end_in_a_sentence_or_a_summary(record, understudy, tmp_path):
    whole = record(KNOWN, "--trace-stacks", "on").read_bytes()
    file = tmp_path / "damaged"
    draw = random.Random(1)
    for _ in range(25):
        damaged = bytearray(whole)
        for _ in range(40):
            # The front of a chunk, where its header and records are.
            place = draw.randrange(len(whole) // 65536) * 65536 + draw.randrange(2048)
            damaged[place] = draw.randrange(256)
        file.write_bytes(damaged)
        for options in ([], ["--all"], ["--json"]):
            run = understudy("trace", *options, file)
            assert run.returncode in (0, 1), run.stderr
            assert not CONTROL.search(run.stdout)
            if run.returncode == 1:
                assert len(run.stderr.splitlines()) == 1 and run.stdout == ""
            elif options == ["--json"]:
                assert json.loads(run.stdout)["file"] == str(file)
