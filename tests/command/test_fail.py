# SPDX-License-Identifier: Apache-2.0
"""understudy run --fail: a program whose calls fail on purpose, and what is told of it."""

import shutil
import subprocess

import pytest
from conftest import BUILD
from programs import python

# Allocates as often as it is told, and prints the codes.
ALLOCATE = """
import ctypes, sys
library = ctypes.CDLL("libascendcl.so")
assert library.aclInit(None) == 0
assert library.aclrtSetDevice(0) == 0
memory = ctypes.c_void_p()
for call in range(int(sys.argv[1])):
    code = library.aclrtMalloc(ctypes.byref(memory), ctypes.c_size_t(4096), 0)
    print(code)
    if code == 0:
        assert library.aclrtFree(memory) == 0
"""


def test_failures_are_told_with_their_rule(understudy):
    run = understudy("run", "--fail", "aclrtMalloc:nth=2", "--", *python(ALLOCATE, "3"))
    assert run.returncode == 0
    assert run.stdout.split() == ["0", "207001", "0"]
    assert run.stderr.splitlines() == [
        "understudy: aclrtMalloc fails on purpose: call 2 of aclrtMalloc:nth=2",
        "understudy: fail: aclrtMalloc:nth=2: 1 of 3 calls failed on purpose"]


def test_rule_that_never_holds_is_told_at_the_end(understudy):
    run = understudy("run", "--fail", "aclrtMapMem:nth=1", "--", *python(ALLOCATE, "1"))
    assert run.stderr.splitlines() == [
        "understudy: fail: aclrtMapMem:nth=1: 0 of 0 calls failed on purpose"]


def test_option_is_repeated(understudy):
    run = understudy("run", "--fail", "aclrtMalloc:nth=1,code=507899", "--fail=aclrtMalloc:nth=3",
                     "--", *python(ALLOCATE, "3"))
    assert run.stdout.split() == ["507899", "0", "207001"]


def test_seed_repeats_a_run(understudy):
    rule = "aclrtMalloc:probability=0.5,seed=11"
    first, second = (understudy("run", "--fail", rule, *python(ALLOCATE, "50")).stdout
                     for _ in range(2))
    assert first == second
    assert {"0", "207001"} == set(first.split())
    other = understudy("run", "--fail", rule[:-2] + "12", *python(ALLOCATE, "50")).stdout
    assert other != first


# Survives the failure of its second allocation alone.
SWEPT = """
#include <acl/acl_rt.h>
#include <acl/acl.h>
#include <stdlib.h>

int main(void) {
  void* first = NULL;
  void* second = NULL;
  if (aclInit(NULL) != 0) return 3;
  if (aclrtSetDevice(0) != 0) for (;;) {}
  if (aclrtMalloc(&first, 4096, ACL_MEM_MALLOC_HUGE_FIRST) != 0) abort();
  (void)aclrtMalloc(&second, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
  return 0;
}
"""


def test_sweep_tells_which_failures_a_program_does_not_survive(understudy, tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc to compile the program")
    source = tmp_path / "swept.c"
    source.write_text(SWEPT)
    include = BUILD.resolve().parent.parent / "include"
    subprocess.run(["gcc", "-g", "-O1", "-I", include, source, "-L", BUILD / "lib64", "-lascendcl",
                    "-o", tmp_path / "swept"], check=True)
    run = understudy("run", "--fail", "sweep", "--", tmp_path / "swept", timeout=120)
    lines = [line.split("  ") for line in run.stdout.splitlines()]
    rows = [[cell.strip() for cell in line if cell] for line in lines]
    assert run.returncode == 1, run.stderr
    assert rows[0] == ["FUNCTION", "PLACE", "OUTCOME", "RULE"]
    assert ["aclInit", "swept.c:9", "ends with status 3"] in rows
    assert ["aclrtMalloc", "swept.c:12", "goes on"] in rows
    killed = next(row for row in rows if row[:2] == ["aclrtMalloc", "swept.c:11"])
    assert killed[2] == "killed: Aborted"
    endless = next(row for row in rows if row[0] == "aclrtSetDevice")
    assert endless[1:3] == ["swept.c:10", "does not end"]
    assert rows[-1] == ["2 of 4 failures survived"]
    # The rule repeats it.
    repeated = understudy("run", "--fail", killed[3], "--", tmp_path / "swept")
    assert repeated.returncode < 0
    assert f"call 1 of {killed[3]}" in repeated.stderr


def test_sweep_of_a_program_that_survives(understudy):
    run = understudy("run", "--fail", "sweep", "--", *python(ALLOCATE, "2"), timeout=120)
    assert run.stdout.splitlines()[:2] == ["0", "0"]  # of the first run
    # The assertions of the program are its way to end.
    assert "aclrtMalloc" in run.stdout and "goes on" in run.stdout
    assert "ends with status 1" in run.stdout
    assert run.stdout.splitlines()[-1] == "4 of 4 failures survived"
    assert run.returncode == 0


def test_program_that_crashes_is_not_swept(understudy):
    run = understudy("run", "--fail", "sweep", "--", "sh", "-c", "kill -SEGV $$")
    assert run.returncode == 1
    assert run.stderr == ("understudy run: the program does not survive without failures: "
                          "Segmentation fault\n")


@pytest.mark.parametrize("rule, words", [
    ("aclrtMaloc:nth=1", "the nearest is aclrtMalloc"),
    ("all", "a condition"),
    ("all:nth=0", '"nth=0" has a wrong value'),
    ("all@:nth=1", "a place of the program is missing behind @"),
    ("sweep:nth=1", 'there is no function or group "sweep"'),
])
def test_wrong_rule_is_one_sentence(understudy, rule, words):
    run = understudy("run", "--fail", rule, "--", "true")
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1 and words in run.stderr
