# SPDX-License-Identifier: Apache-2.0
"""understudy run --check: wrong programs are told by the lines that are wrong, right ones run in
silence.

A program is the body of main. In a wrong one, comments name the lines that a finding must name:
/*made*/, /*ended*/ and /*used*/.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import BUILD

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")

FOUND = 86  # the exit status of a program with findings
BEGINNING = """#include <acl/acl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define MIB ((size_t)1 << 20)
static void* kept;
static void free_kept(void) { aclrtFree(kept); }
static void hear(int number) { _exit(number == SIGSEGV ? 3 : 4); }
static aclrtDrvMemHandle new_block(void) {
  aclrtPhysicalMemProp prop = {0};
  aclrtDrvMemHandle handle = NULL;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0);
  return handle;
}
static void* new_range(void) {
  void* range = NULL;
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1);
  return range;
}
static aclrtMemPool new_pool(void) {
  aclrtMemPool pool = NULL;
  aclrtMemPoolProps props = {0};
  props.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtMemPoolCreate(&pool, &props);
  return pool;
}
int main(void) {
  aclInit(NULL);
  aclrtSetDevice(0);
"""
END = """
  aclrtResetDevice(0);
  aclFinalize();
  return 0;
}
"""


@pytest.fixture
def check(understudy, tmp_path):
    """check(body, *options, **of run): compiles a program and runs it with --check."""
    def run(body, *options, begin=BEGINNING, end=END, **run_options):
        source = tmp_path / "prog.c"
        source.write_text(begin + body + end, encoding="utf-8")
        program = tmp_path / "prog"
        subprocess.run(["gcc", "-g", "-O0", "-Wall", "-Werror", "-Wno-unused-function",
                        f"-I{os.getcwd()}/include",
                        str(source), "-o", str(program), f"-L{BUILD}/lib64", "-lascendcl",
                        "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
        return understudy("run", *(options or ["--check"]), "--", program, **run_options)
    return run


def line_of(body, mark):
    lines = (BEGINNING + body).splitlines()
    found = [number for number, line in enumerate(lines, 1) if f"/*{mark}*/" in line]
    assert len(found) == 1, f"{mark} is on lines {found}"
    return f"prog.c:{found[0]}"


# name: (wrong body, the kind of object, right body). A wrong one uses what has ended, or names it
# by the wrong address.
MISUSES = {
    "free_twice": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtFree(memory); /*ended*/
  aclrtFree(memory); /*used*/
""", "allocation", """
  void* memory = NULL;
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree(memory);
"""),
    "free_large_twice": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 8 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtFree(memory); /*ended*/
  aclrtFree(memory); /*used*/
""", "allocation", """
  void* memory = NULL;
  aclrtMalloc(&memory, 8 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree(memory);
"""),
    "free_inside": ("""
  char* memory = NULL;
  aclrtMalloc((void**)&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtFree(memory + 4096); /*used*/
  aclrtFree(memory);
""", "allocation", """
  char* memory = NULL;
  aclrtMalloc((void**)&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree(memory);
"""),
    "copy_into_freed": ("""
  void* memory = NULL;
  char bytes[64] = {0};
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtFree(memory); /*ended*/
  aclrtMemcpy(memory, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE); /*used*/
""", "allocation", """
  void* memory = NULL;
  char bytes[64] = {0};
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(memory, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtFree(memory);
"""),
    "set_freed": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtFree(memory); /*ended*/
  aclrtMemset(memory, MIB, 0, MIB); /*used*/
""", "allocation", """
  void* memory = NULL;
  aclrtMalloc(&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(memory, MIB, 0, MIB);
  aclrtFree(memory);
"""),
    "map_freed_block": ("""
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtFreePhysical(block); /*ended*/
  aclrtMapMem(range, 2 * MIB, 0, block, 0); /*used*/
  aclrtReleaseMemAddress(range);
""", "physical block", """
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
"""),
    "free_block_twice": ("""
  aclrtDrvMemHandle block = new_block();
  aclrtFreePhysical(block); /*ended*/
  aclrtFreePhysical(block); /*used*/
""", "physical block", """
  aclrtDrvMemHandle block = new_block();
  aclrtFreePhysical(block);
"""),
    "retained_handle_freed_once_too_often": ("""
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtDrvMemHandle retained = NULL;
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtMemRetainAllocationHandle(range, &retained);
  aclrtFreePhysical(block);
  aclrtFreePhysical(retained); /*ended*/
  aclrtFreePhysical(block); /*used*/
  aclrtUnmapMem(range);
  aclrtReleaseMemAddress(range);
""", "physical block", """
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtDrvMemHandle retained = NULL;
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtFreePhysical(block);
  aclrtMemRetainAllocationHandle(range, &retained);
  aclrtFreePhysical(retained);
  aclrtUnmapMem(range);
  aclrtReleaseMemAddress(range);
"""),
    "copy_into_unmapped": ("""
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  char bytes[64] = {0};
  aclrtMapMem(range, 2 * MIB, 0, block, 0); /*made*/
  aclrtUnmapMem(range); /*ended*/
  aclrtMemcpy(range, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE); /*used*/
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""", "mapping", """
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  char bytes[64] = {0};
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtMemcpy(range, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
"""),
    "unmap_twice": ("""
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0); /*made*/
  aclrtUnmapMem(range); /*ended*/
  aclrtUnmapMem(range); /*used*/
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
""", "mapping", """
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0);
  aclrtUnmapMem(range);
  aclrtFreePhysical(block);
  aclrtReleaseMemAddress(range);
"""),
    "copy_into_reserved": ("""
  void* range = NULL;
  char bytes[64] = {0};
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1); /*made*/
  aclrtMemcpy((char*)range + MIB, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE); /*used*/
  aclrtReleaseMemAddress(range);
""", "reservation", """
  void* range = NULL;
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1);
  aclrtReleaseMemAddress(range);
"""),
    "release_twice": ("""
  void* range = NULL;
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1); /*made*/
  aclrtReleaseMemAddress(range); /*ended*/
  aclrtReleaseMemAddress(range); /*used*/
""", "reservation", """
  void* range = NULL;
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1);
  aclrtReleaseMemAddress(range);
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1);
  aclrtReleaseMemAddress(range);
"""),
    "free_host_twice": ("""
  void* memory = NULL;
  aclrtMallocHost(&memory, 100000); /*made*/
  aclrtFreeHost(memory); /*ended*/
  aclrtFreeHost(memory); /*used*/
""", "host block", """
  void* memory = NULL;
  aclrtMallocHost(&memory, 100000);
  aclrtFreeHost(memory);
"""),
    "free_inside_host": ("""
  char* memory = NULL;
  aclrtMallocHost((void**)&memory, 100000); /*made*/
  aclrtFreeHost(memory + 512); /*used*/
  aclrtFreeHost(memory);
""", "host block", """
  char* memory = NULL;
  aclrtMallocHost((void**)&memory, 100000);
  aclrtFreeHost(memory);
"""),
    "unregister_twice": ("""
  void* memory = aligned_alloc(4096, 65536);
  void* on_device = NULL;
  aclrtHostRegister(memory, 65536, ACL_HOST_REGISTER_MAPPED, &on_device); /*made*/
  aclrtHostUnregister(memory); /*ended*/
  aclrtHostUnregister(memory); /*used*/
  free(memory);
""", "registration", """
  void* memory = aligned_alloc(4096, 65536);
  void* on_device = NULL;
  aclrtHostRegister(memory, 65536, ACL_HOST_REGISTER_MAPPED, &on_device);
  aclrtHostUnregister(memory);
  free(memory);
"""),
    "destroyed_stream": ("""
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream); /*made*/
  aclrtDestroyStream(stream); /*ended*/
  aclrtSynchronizeStream(stream); /*used*/
""", "stream", """
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtSynchronizeStream(stream);
  aclrtDestroyStream(stream);
"""),
    "destroyed_event": ("""
  aclrtStream stream = NULL;
  aclrtEvent event = NULL;
  aclrtCreateStream(&stream);
  aclrtCreateEvent(&event); /*made*/
  aclrtDestroyEvent(event); /*ended*/
  aclrtRecordEvent(event, stream); /*used*/
  aclrtDestroyStream(stream);
""", "event", """
  aclrtStream stream = NULL;
  aclrtEvent event = NULL;
  aclrtCreateStream(&stream);
  aclrtCreateEvent(&event);
  aclrtRecordEvent(event, stream);
  aclrtSynchronizeStream(stream);
  aclrtDestroyEvent(event);
  aclrtDestroyStream(stream);
"""),
    "destroyed_notify": ("""
  aclrtStream stream = NULL;
  aclrtNotify notify = NULL;
  aclrtCreateStream(&stream);
  aclrtCreateNotify(&notify, 0); /*made*/
  aclrtDestroyNotify(notify); /*ended*/
  aclrtRecordNotify(notify, stream); /*used*/
  aclrtDestroyStream(stream);
""", "notify", """
  aclrtStream stream = NULL;
  aclrtNotify notify = NULL;
  aclrtCreateStream(&stream);
  aclrtCreateNotify(&notify, 0);
  aclrtRecordNotify(notify, stream);
  aclrtSynchronizeStream(stream);
  aclrtDestroyNotify(notify);
  aclrtDestroyStream(stream);
"""),
    "destroyed_pool": ("""
  void* memory = NULL;
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtMemPool pool = new_pool();
  aclrtMemPoolDestroy(pool); /*ended*/
  aclrtMemPoolMallocAsync(&memory, 4096, pool, stream); /*used*/
  aclrtDestroyStream(stream);
""", "memory pool", """
  void* memory = NULL;
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtMemPool pool = new_pool();
  aclrtMemPoolMallocAsync(&memory, 4096, pool, stream);
  aclrtMemPoolFreeAsync(memory, stream);
  aclrtSynchronizeStream(stream);
  aclrtMemPoolDestroy(pool);
  aclrtDestroyStream(stream);
"""),
    "memory_that_a_pool_took_back": ("""
  void* memory = NULL;
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtMemPool pool = new_pool();
  aclrtMemPoolMallocAsync(&memory, 4096, pool, stream); /*made*/
  aclrtMemPoolFreeAsync(memory, stream); /*ended*/
  aclrtMemPoolFreeAsync(memory, stream); /*used*/
  aclrtSynchronizeStream(stream);
  aclrtMemPoolDestroy(pool);
  aclrtDestroyStream(stream);
""", "allocation", """
  void* memory = NULL;
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtMemPool pool = new_pool();
  aclrtMemPoolMallocAsync(&memory, 4096, pool, stream);
  aclrtFree(memory);
  aclrtMemPoolDestroy(pool);
  aclrtDestroyStream(stream);
"""),
    "asynchronous_copy_of_freed": ("""
  void *memory = NULL, *host = NULL;
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtMallocHost(&host, 4096);
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  aclrtFree(memory); /*ended*/
  aclrtMemcpyAsync(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream); /*used*/
  aclrtDestroyStream(stream);
  aclrtFreeHost(host);
""", "allocation", """
  void *memory = NULL, *host = NULL;
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream);
  aclrtMallocHost(&host, 4096);
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(memory, 4096, 0, 4096);
  aclrtMemcpyAsync(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  aclrtSynchronizeStream(stream);
  aclrtFree(memory);
  aclrtDestroyStream(stream);
  aclrtFreeHost(host);
"""),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_explained_by_the_life_of_the_object(check, name):
    body, kind, _ = MISUSES[name]
    run = check(body)
    assert run.returncode == FOUND, run.stderr
    findings = [line for line in run.stderr.splitlines() if line.startswith("understudy: history")]
    assert len(findings) == 1, run.stderr
    assert f"; {kind}" in findings[0]
    for mark in ("made", "ended"):
        if f"/*{mark}*/" in body:
            assert f" at {line_of(body, mark)}," in findings[0], (mark, findings[0])
    used = "used again at" if "/*ended*/" in body else "used at"
    assert findings[0].endswith(f"{used} {line_of(body, 'used')}"), findings[0]
    assert "understudy: leaks" not in run.stderr


@pytest.mark.parametrize("name", MISUSES)
def test_right_program_runs_in_silence(check, name):
    run = check(MISUSES[name][2])
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# name: (body, what is left, when)
LEAKS = {
    "allocation": ("""
  void* memory = NULL;
  aclrtMalloc(&memory, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
""", "1 allocation of 3 MiB on device 0 is not freed before its device is reset"),
    "allocations_of_one_place": ("""
  void* memory = NULL;
  for (int i = 0; i < 5; ++i) {
    aclrtMalloc(&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  }
  aclrtFree(memory);
""", "4 allocations of 4 MiB together on device 0 are not freed before its device is reset"),
    "block": ("""
  aclrtPhysicalMemProp prop = {0};
  aclrtDrvMemHandle handle = NULL;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0); /*made*/
""", "1 physical block of 2 MiB on device 0 is not freed at the end of the process"),
    "mapping": ("""
  void* range = new_range();
  aclrtDrvMemHandle block = new_block();
  aclrtMapMem(range, 2 * MIB, 0, block, 0); /*made*/
  aclrtFreePhysical(block);
""", "1 mapping of 2 MiB on device 0 is not unmapped at the end of the process"),
    "reservation": ("""
  void* range = NULL;
  aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1); /*made*/
""", "1 reservation of 64 MiB is not released at the end of the process"),
    "host_block": ("""
  void* memory = NULL;
  aclrtMallocHost(&memory, 4096); /*made*/
""", "1 host block of 4 KiB is not freed at the end of the process"),
    "registration": ("""
  void* memory = aligned_alloc(4096, 65536);
  void* on_device = NULL;
  aclrtHostRegister(memory, 65536, ACL_HOST_REGISTER_MAPPED, &on_device); /*made*/
""", "1 registration of 64 KiB is not unregistered at the end of the process"),
    "stream": ("""
  aclrtStream stream = NULL;
  aclrtCreateStream(&stream); /*made*/
""", "1 stream on device 0 is not destroyed before its device is reset"),
    "event": ("""
  aclrtEvent event = NULL;
  aclrtCreateEvent(&event); /*made*/
""", "1 event on device 0 is not destroyed before its device is reset"),
    "pool": ("""
  aclrtMemPool pool = NULL;
  aclrtMemPoolProps props = {0};
  props.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtMemPoolCreate(&pool, &props); /*made*/
""", "1 memory pool on device 0 is not destroyed before its device is reset"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_told_with_the_place_that_made_it(check, name):
    body, sentence = LEAKS[name]
    run = check(body)
    assert run.returncode == FOUND, run.stderr
    leaks = [line for line in run.stderr.splitlines() if line.startswith("understudy: leaks")]
    assert any(sentence in leak and f" at {line_of(body, 'made')} " in leak
               for leak in leaks), run.stderr


def test_leaks_without_reset_are_told_at_the_end(check):
    run = check("""
  void* memory = NULL;
  aclrtMalloc(&memory, 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
""", end="return 0; }")
    assert run.returncode == FOUND
    assert "1 allocation of 3 MiB on device 0 is not freed at the end of the process" in run.stderr


def test_what_handlers_of_exit_free_is_no_leak(check):
    run = check("""
  atexit(free_kept);
  aclrtMalloc(&kept, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
""", end="return 0; }")
    assert (run.returncode, run.stderr) == (0, "")


def test_each_check_can_be_chosen_alone(check):
    body = """
  void* memory = NULL;
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree((char*)memory + 512);
"""
    assert "understudy: leaks" not in (run := check(body, "--check=history")).stderr
    assert run.returncode == FOUND and "understudy: check: 1 finding (history 1)" in run.stderr
    assert "understudy: history" not in (run := check(body, "--check=leaks")).stderr
    assert run.returncode == FOUND and "understudy: check: 1 finding (leaks 1)" in run.stderr
    run = check(body, "--check=off")
    assert (run.returncode, run.stderr) == (0, "")


def test_wrong_list_of_checks_is_refused(check):
    run = check("", "--check=leaks,nothing")
    assert run.returncode == 2
    assert "--check" in run.stderr and "history, leaks" in run.stderr


def test_exit_status_can_be_chosen_and_overrides_the_programs(check):
    body = "aclrtFree(&stdout);\nvoid* memory;\naclrtMalloc(&memory, 4096, 0);\n"
    assert check(body, "--check", "--check-exit", "3", end="return 7; }").returncode == 3
    assert check(body, "--check", "--check-exit=0", end="return 7; }").returncode == 0
    assert check("", "--check", end="return 7; }").returncode == 7


def test_output_of_the_program_is_not_lost(check):
    run = check("""
  void* memory = NULL;
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  printf("without a newline");
""")
    assert (run.returncode, run.stdout) == (FOUND, "without a newline")


def test_same_places_are_told_once(check):
    run = check("""
  void* memory = NULL;
  aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree(memory);
  for (int i = 0; i < 10; ++i) aclrtFree(memory);
""")
    assert run.stderr.count("understudy: history") == 1


def test_json_report(check, tmp_path):
    body = MISUSES["free_twice"][0]
    run = check(body, "--check", "--check-report", "report.json", cwd=tmp_path)
    assert run.returncode == FOUND
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    finding, = report["findings"]
    assert finding["check"] == "history"
    assert [note["frames"][0]["place"] for note in finding["notes"]] == [
        line_of(body, "used"), line_of(body, "made"), line_of(body, "ended")]
    assert [note["call"] for note in finding["notes"]] == ["aclrtFree", "aclrtMalloc", "aclrtFree"]
    assert finding["notes"][0]["frames"][0]["function"] == "main"


def test_junit_report(check, tmp_path):
    run = check(MISUSES["free_twice"][0], "--check", "--check-report", tmp_path / "report.xml")
    assert run.returncode == FOUND
    suite = xml.etree.ElementTree.parse(tmp_path / "report.xml").getroot()
    cases = {case.get("name"): case.find("failure") for case in suite}
    assert set(cases) == {"history", "leaks", "host", "order", "init"}
    assert (suite.get("tests"), suite.get("failures")) == (str(len(cases)), "1")
    assert cases["leaks"] is None
    assert "used again at prog.c:" in cases["history"].get("message")


def test_processes_of_a_run_do_not_overwrite_their_reports(check, tmp_path):
    run = check("""
  void* memory = NULL;
  const pid_t child = fork();
  if (child == 0) {
    aclrtSetDevice(0);
    aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d", WEXITSTATUS(status));
""", "--check", "--check-report", tmp_path / "report.json")
    assert (run.returncode, run.stdout) == (0, str(FOUND))
    findings = sorted(len(json.loads(file.read_text(encoding="utf-8"))["findings"])
                      for file in tmp_path.glob("report*.json"))
    assert findings == [0, 1]


def test_suppressions_name_places_functions_and_sentences(check, tmp_path):
    body = LEAKS["stream"][0]
    file = tmp_path / "known.txt"
    for line in (f"leaks:{line_of(body, 'made')}", "leaks:main", "*:*1 stream on device 0*"):
        file.write_text(f"# known\n\n{line}\n", encoding="utf-8")
        run = check(body, "--check", "--check-suppressions", file)
        assert (run.returncode, run.stderr) == (
            0, "understudy: check: 0 findings, 1 suppressed\n"), line
    for line in ("history:main", "leaks:other"):
        file.write_text(line, encoding="utf-8")
        assert check(body, "--check", "--check-suppressions", file).returncode == FOUND


def test_wrong_suppressions_are_an_error_of_the_first_call(check, tmp_path):
    file = tmp_path / "known.txt"
    file.write_text("leaks:main\nnonsense\n", encoding="utf-8")
    body = 'printf("%s", aclGetRecentErrMsg() ? "told" : "silent");'
    run = check(body, "--check", "--check-suppressions", file)
    assert run.stdout == "told"


def test_findings_have_colors_on_a_terminal_alone(check):
    run = check(LEAKS["stream"][0])
    assert "\x1b[" not in run.stderr


def test_a_program_without_debug_information_has_sites(understudy, tmp_path):
    source = tmp_path / "prog.c"
    source.write_text(BEGINNING + LEAKS["stream"][0] + END, encoding="utf-8")
    subprocess.run(["gcc", "-O0", f"-I{os.getcwd()}/include", str(source), "-o",
                    str(tmp_path / "prog"), f"-L{BUILD}/lib64", "-lascendcl",
                    "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
    run = understudy("run", "--check", "--", tmp_path / "prog")
    assert re.search(r"created at prog\+0x[0-9a-f]+ by aclrtCreateStream", run.stderr), run.stderr


def test_python_program_is_checked(understudy):
    run = understudy("run", "--check", "--", sys.executable, "-c", """
import ctypes
library = ctypes.CDLL("libascendcl.so")
library.aclInit(None)
library.aclrtSetDevice(0)
stream = ctypes.c_void_p()
library.aclrtCreateStream(ctypes.byref(stream))
""")
    assert run.returncode == FOUND
    assert "1 stream on device 0 is not destroyed at the end of the process" in run.stderr


def test_out_of_memory_tells_who_holds_what_and_the_last_calls(check):
    body = """
  void* memory[3] = {0};
  for (int i = 0; i < 2; ++i) {
    aclrtMalloc(&memory[i], 100 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  }
  aclrtMalloc(&memory[2], 1024 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*used*/
  aclrtFree(memory[0]);
  aclrtFree(memory[1]);
"""
    run = check(body, "--check", "--memory", "512M")
    assert run.returncode == 0, run.stderr  # a program may try
    lines = run.stderr.splitlines()
    assert lines[0].startswith("understudy: out of memory: aclrtMalloc: ")
    assert lines[1:3] == ["  this process holds",
                          "    2 allocations of 200 MiB together on device 0, allocated at "
                          + line_of(body, "made")]
    assert [line.split(",")[0].strip() for line in lines[-4:]] == [
        "aclInit 0", "aclrtSetDevice 0", "aclrtMalloc 0", "aclrtMalloc 0"]


def test_lines_of_python_are_named(understudy, tmp_path):
    program = tmp_path / "kv.py"
    program.write_text("""import acl

def grow():
    return acl.rt.malloc(4096, 0)[0]

acl.init()
acl.rt.set_device(0)
first = grow()
second = grow()
acl.rt.free(first)
acl.rt.free(first)
""", encoding="utf-8")
    run = understudy("run", "--check", "--", sys.executable, program)
    assert run.returncode == FOUND, run.stderr
    assert ("allocated at kv.py:4, freed at kv.py:10, used again at kv.py:11\n"
            "  used by aclrtFree\n    kv.py:11 <module>\n"
            "  allocated by aclrtMalloc\n    kv.py:4 grow\n    kv.py:8 <module>\n") in run.stderr
    assert "1 allocation of 4 KiB on device 0 is not freed at the end of the process" in run.stderr
    assert "    kv.py:4 grow\n    kv.py:9 <module>\n" in run.stderr


# name: (what main does with device memory, what the finding says of it)
HOST_ACCESSES = {
    "write": ("memory[64] = 1; /*used*/", "the CPU writes 0x[0-9a-f]+, 64 bytes into"),
    "read": ("return memory[0]; /*used*/", "the CPU reads 0x[0-9a-f]+, at the start of"),
    "in_the_c_library": ("memset(memory + 8, 0, 4096); /*used*/",
                         "the CPU writes 0x[0-9a-f]+, 8 bytes into"),
    "behind_the_end": ("memory[4 * MIB + 512] = 1; /*used*/",
                       "the CPU writes 0x[0-9a-f]+, 512 bytes behind the end of"),
    "freed": ("aclrtFree(memory); memory[1] = 1; /*used*/",
              "the CPU writes 0x[0-9a-f]+, 1 bytes? into"),
}


@pytest.mark.parametrize("name", HOST_ACCESSES)
def test_cpu_that_follows_a_device_pointer_is_told(check, tmp_path, name):
    access, sentence = HOST_ACCESSES[name]
    body = f"""
  volatile char* memory = NULL;
  aclrtMalloc((void**)&memory, 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST); /*made*/
  {access}
""".replace("memset(memory", "memset((char*)memory").replace("Free(memory", "Free((void*)memory")
    run = check(body, "--check=host", "--check-report", tmp_path / "report.json")
    assert run.returncode == -signal.SIGSEGV
    first = run.stderr.splitlines()[0]
    assert re.match(f"understudy: host: {sentence} allocation of 4 MiB on device 0", first), first
    assert f", at {line_of(body, 'used')};" in first
    assert f"    {line_of(body, 'made')} main" in run.stderr
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["findings"]


def test_handler_of_the_program_hears_of_a_fault_afterwards(check):
    run = check("""
  char* memory = NULL;
  signal(SIGSEGV, hear);
  aclrtMalloc((void**)&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  memory[0] = 1;
""", "--check=host")
    assert run.returncode == 3
    assert "understudy: host" not in run.stderr  # its handler came later, and is the only one


def test_handler_that_was_there_is_called_behind_the_finding(check):
    run = check("""
  char* memory = NULL;
  aclrtMalloc((void**)&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  memory[0] = 1;
""", "--check=host", begin=BEGINNING.replace("aclInit(NULL);", "signal(SIGSEGV, hear);\n  aclInit(NULL);"))
    assert run.returncode == 3
    assert "understudy: host: the CPU writes" in run.stderr


def test_fault_that_is_none_of_ours_is_left_alone(check):
    run = check("*(volatile int*)8 = 1;", "--check=host")
    assert (run.returncode, run.stderr) == (-signal.SIGSEGV, "")
