# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: --npu-check, npu_check and the marker limit_leaks."""
import pytest
from pytest_runs import PRELUDE, lines_with

pytest_plugins = ["pytest_runs"]

# Lines of the sources below begin behind those of the prelude.
FIRST = len(PRELUDE.strip().splitlines())
TWICE = """
def test_twice(rt):
    pointer, ret = rt.malloc(4096, 0)
    assert rt.free(pointer) == 0
    rt.free(pointer)
"""


@pytest.mark.parametrize("options", [["--npu-check"], ["--npu-check=history"]], ids=" ".join)
def test_a_finding_fails_the_test_by_lines_of_python(run, options):
    result = run(TWICE, *options)
    result.assert_outcomes(failed=1)
    (sentence,) = [line for line in lines_with(result, "understudy: history: aclrtFree: ")
                   if not line.startswith("FAILED ")]  # once, and not as captured as well
    made, ended, used = (f"{FIRST + line}" for line in (3, 4, 5))
    assert sentence.endswith(
        f"allocated at test_a_finding_fails_the_test_by_lines_of_python.py:{made},"
        f" freed at test_a_finding_fails_the_test_by_lines_of_python.py:{ended},"
        f" used again at test_a_finding_fails_the_test_by_lines_of_python.py:{used}"
    )
    assert "  used by aclrtFree" in result.outlines


def test_without_the_option_there_are_no_checks(run):
    run(TWICE).assert_outcomes(passed=1)


def test_the_ini_option_chooses_checks(run, pytester):
    pytester.makeini("[pytest]\nnpu_check = history,order\n")
    run(TWICE).assert_outcomes(failed=1)
    run(TWICE, "--npu-check=order").assert_outcomes(passed=1)
    run(TWICE, "--npu-check=off").assert_outcomes(passed=1)


def test_a_marker_chooses_checks_for_one_test(run):
    result = run("@pytest.mark.npu(check='history')" + TWICE + TWICE.replace("twice", "unchecked"))
    result.assert_outcomes(passed=1, failed=1)


def test_known_findings_are_suppressed(run, pytester):
    pytester.makeini("[pytest]\nnpu_check = on\nnpu_check_suppressions = known.txt\n")
    pytester.path.joinpath("known.txt").write_text("history:*is device memory that was freed*\n")
    run(TWICE).assert_outcomes(passed=1)
    pytester.path.joinpath("known.txt").write_text("history:*another one*\n")
    run(TWICE).assert_outcomes(failed=1)


def test_right_tests_pass_with_checks(run):
    result = run(
        """
def test_right(rt):
    pointer, ret = rt.malloc(4096, 0)
    assert rt.free(pointer) == 0
    assert rt.reset_device(0) == 0
""",
        "--npu-check",
    )
    result.assert_outcomes(passed=1)


def test_a_test_that_fails_otherwise_keeps_its_reason(run):
    result = run(TWICE + "    assert 'its own' == 'reason'\n", "--npu-check")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "AssertionError: assert 'its own' == 'reason'")
    assert lines_with(result, "software NPU: findings of checks")
    assert not lines_with(result, "Captured stderr")


def test_findings_and_leaks_are_told_together(run):
    result = run(TWICE + "    rt.create_stream()\n", "--npu-check")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "understudy: history: aclrtFree")
    assert lines_with(result, "test leaks: 1 stream")


def test_xfail_applies_to_findings(run):
    run("@pytest.mark.xfail" + TWICE, "--npu-check").assert_outcomes(xfailed=1)


LEFT_TO_RESET = """
def test_reset(rt):
    rt.create_stream()
    assert rt.reset_device(0) == 0
"""


def test_what_is_left_to_a_reset_is_a_finding_of_leaks(run):
    run(LEFT_TO_RESET).assert_outcomes(passed=1)
    result = run(LEFT_TO_RESET, "--npu-check")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "1 stream on device 0 is not destroyed before its device is reset")
    run("@pytest.mark.npu(leaks='allow')" + LEFT_TO_RESET, "--npu-check").assert_outcomes(passed=1)


def test_advice_is_asked_for_by_name(run):
    source = """
def test_waste(rt):
    pointer, ret = rt.malloc(SIZE, 1)
    assert rt.free(pointer) == 0
"""
    run(source, "--npu-check").assert_outcomes(passed=1)
    result = run(source, "--npu-check=advice")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "asks for 2 MiB and takes 4 MiB")


def test_findings_of_each_test_in_process(run):
    right = "\ndef test_right(rt): assert rt.free(rt.malloc(64, 0)[0]) == 0\n"
    source = (TWICE + right).replace("(rt):", "(npu):\n    import acl; rt = acl.rt; rt.set_device(0)"
                                     "\n   ").replace("rt.set_device(0)\n    \n", "rt.set_device(0)\n")
    result = run(source, "--npu-check", "--npu-in-process")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == 1  # and not that of checks


def test_a_path_is_no_list_of_checks(run, pytester):
    pytester.mkdir("more")
    result = run(TWICE, "--npu-check", "more")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("write --npu-check=on more" in line for line in result.errlines)


# ---- The marker limit_leaks

LEAVE = """
def test_leave(rt):
    rt.malloc(SIZE - 64, 1)
"""


@pytest.mark.parametrize("limit, passes", [
    ("'2MB'", True), ("2 << 20", True), ("'1MB'", False), ("'2MB', objects=1", True),
    ("bytes='2MB', objects=0", False), ("objects=1", False), ("", False),
])
def test_a_marker_limits_what_may_be_left(run, limit, passes):
    result = run(f"@pytest.mark.limit_leaks({limit})" + LEAVE)
    result.assert_outcomes(passed=int(passes), failed=int(not passes))
    if not passes:
        assert lines_with(result, "test leaks: 1 allocation, 2 MiB of device memory (acl.rt.free)")
        assert f"  1 allocation by acl.rt.malloc at test_a_marker_limits_what_may_be_left.py:" \
            f"{FIRST + 3}" in result.outlines


def test_the_limit_is_in_the_sentence(run):
    result = run("@pytest.mark.limit_leaks('1MB', objects=2)" + LEAVE)
    assert lines_with(result, "; 1 MiB of device memory and 2 objects may stay")


@pytest.mark.parametrize("limit", ["'many'", "objects=-1", "more=1"])
def test_a_wrong_limit_is_an_error_of_the_test(run, limit):
    result = run(f"@pytest.mark.limit_leaks({limit})" + LEAVE)
    result.assert_outcomes(errors=1)


def test_ratchet_names_the_line_in_a_test_with_checks(run):
    result = run(
        """
@pytest.mark.npu(leaks="allow")
def test_cycles(rt):
    import understudy
    for _ in understudy.ratchet(10):
        rt.create_stream()
""",
        "--npu-check",
    )
    result.assert_outcomes(failed=1)
    assert lines_with(result, "grows in each of 8 cycles: by 1 stream a cycle")
    assert lines_with(result, "  8 streams on device 0, created at "
                      f"test_ratchet_names_the_line_in_a_test_with_checks.py:{FIRST + 6}")
