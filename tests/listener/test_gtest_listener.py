#SPDX - License - Identifier : Apache - 2.0
"""understudy/gtest_listener.h: what a program of tests prints that fails and leaks on purpose."""
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["UNDERSTUDY_TEST_BUILD"])
LEAK = (
    "test leaks: 1 allocation, 2 streams, 2 MiB of device memory (aclrtFree, aclrtDestroyStream)"
)


class Run:
    """A run of the program: its outcome, and the lines it printed for each test."""

    def __init__(self, *arguments, library=BUILD / "lib64", **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("UNDERSTUDY_")}
        environment.update(variables, LD_LIBRARY_PATH=str(library))
        done = subprocess.run(
            [str(BUILD / "bin" / "gtest_listener_program"), *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True, timeout=60,
        )
        self.code, self.output = done.returncode, done.stdout
        self.lines = {}
        for name, body, outcome in re.findall(
            r"^\[ RUN      \] \w+\.(\w+)\n(.*?)^\[ *(OK|FAILED|SKIPPED) *\] \w+\.\1", self.output,
            re.DOTALL | re.MULTILINE,
        ):
            self.lines[name] = [outcome, *(line.strip() for line in body.splitlines())]

    def outcome(self, test):
        return self.lines[test][0]

    def errors(self, test):
        """The lines below the heading."""
        lines = self.lines[test]
        return lines[lines.index("software NPU: errors") + 1 :]


@pytest.fixture(scope="module")
def usual():
    return Run()


def test_a_test_that_leaves_nothing_passes(usual):
    assert usual.code == 1
    assert usual.lines["IsClean"] == ["OK"]
    assert usual.lines["LeavesWhatItsResetEnds"] == ["OK"]


def test_a_test_that_leaves_objects_fails_with_one_sentence(usual):
    assert usual.outcome("LeaksMemoryAndStreams") == "FAILED"
    place, _, sentence = usual.lines["LeaksMemoryAndStreams"][1:]
    assert re.search(r"program\.cc:\d+: Failure$", place) and sentence == LEAK


def test_a_test_that_fails_shows_what_failed_since_its_start(usual):
    assert usual.outcome("Fails") == "FAILED"
    lines = usual.errors("Fails")
    assert [line.partition(": ")[0] for line in lines] == [
        "aclrtFree failed with 100000",
        "aclrtFreeHost failed with 100000",
        "aclrtSetDevice failed with 107001",
    ]
    assert "99" in lines[2]


def test_many_errors_are_cut_in_the_middle(usual):
    lines = usual.errors("FailsOften")
    assert len(lines) == 21 and lines[10] == "(980 more)"
    assert "1000" in lines[0] and "1009" in lines[9]
    assert "1990" in lines[11] and "1999" in lines[20]


def test_a_failure_keeps_its_own_reason(usual):
    assert "its own reason" in usual.lines["FailsAndLeaks"]
    assert not any("test leaks" in line for line in usual.lines["FailsAndLeaks"])


def test_a_failure_without_errors_has_no_heading(usual):
    assert "software NPU: errors" not in usual.lines["FailsWithoutErrors"]


def test_leaks_can_be_a_warning():
    run = Run("--leaks=warn", "--gtest_filter=*Leaks*:-*Fails*")
    assert run.code == 0
    assert run.lines["LeaksMemoryAndStreams"] == ["OK", f"warning: {LEAK}"]


def test_leaks_and_errors_can_be_switched_off():
    run = Run("--leaks=off", "--no-errors")
    assert run.lines["LeaksMemoryAndStreams"] == ["OK"]
    assert run.outcome("Fails") == "FAILED"
    assert "test leaks" not in run.output and "software NPU: errors" not in run.output


def test_the_private_server_ends_with_the_program(usual):
    assert "private server: 1, installed: 1" in usual.output
    directory = re.search(r"^server (.*)$", usual.output, re.MULTILINE)[1]
    assert f"/understudy-{os.geteuid()}.test-" in directory
    assert not os.path.exists(directory)


def test_a_chosen_server_stays(tmp_path):
    tmp_path.chmod(0o700)
    run = Run("--gtest_filter=*IsClean:Server.*", UNDERSTUDY_RUNTIME_DIR=str(tmp_path))
    assert run.code == 0 and f"server {tmp_path}" in run.output
    assert list(tmp_path.iterdir())


def test_without_the_software_npu_it_does_nothing():
    run = Run("--gtest_filter=-Server.*:*FailsOften", library=BUILD / "tests" / "other_library")
    assert "private server: 0, installed: 0" in run.output
    assert run.lines["LeaksMemoryAndStreams"] == ["OK"]
    assert run.outcome("Fails") == "FAILED"
    assert "software NPU" not in run.output


def test_a_scope_has_a_limit(usual):
    assert usual.lines["LimitAllowsWhatEnds"] == ["OK"]
    assert usual.lines["LimitAllowsBytes"] == ["OK"]
    assert usual.outcome("LimitIsPassed") == "FAILED"
    assert re.search(r"program\.cc:\d+: Failure$", usual.lines["LimitIsPassed"][1])
    assert (
        "leaks: 1 allocation, 2 MiB of device memory (aclrtFree); nothing may stay"
        in usual.lines["LimitIsPassed"]
    )
    assert (
        "leaks: 2 allocations, 4 MiB of device memory (aclrtFree); 4 MiB of device memory and"
        " 1 object may stay" in usual.lines["LimitOfObjectsIsPassed"]
    )


def test_cycles_must_not_grow(usual):
    assert usual.lines["RatchetHolds"] == ["OK"]
    assert (
        "grows in each of 4 cycles: by 1 allocation, 2 MiB of device memory a cycle"
        in usual.lines["RatchetFindsGrowth"]
    )


def test_places_are_named_with_a_check(usual):
    assert any(line.startswith("(choose a check") for line in usual.lines["RatchetFindsGrowth"])
    run = Run("--gtest_filter=*Limit*:*Ratchet*", UNDERSTUDY_CHECK="leaks")
    place = re.compile(r"(\d) allocations? of .* on device 0, allocated at program\.cc:\d+ by aclrtMalloc")
    for test, objects in (("LimitIsPassed", 1), ("LimitOfObjectsIsPassed", 2),
                          ("RatchetFindsGrowth", 4)):
        found = [match for match in map(place.match, run.lines[test]) if match]
        assert [int(match[1]) for match in found] == [objects], run.output
    assert "choose a check" not in run.output


def test_limits_do_nothing_without_the_software_npu():
    run = Run("--gtest_filter=*Limit*:*Ratchet*", library=BUILD / "tests" / "other_library")
    assert run.code == 0, run.output
