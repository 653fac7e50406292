# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: a test that uses acl without npu is told so."""
import pytest

from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]

TEXT = "this test uses acl without npu"
USES = """
import acl

def test_one(): assert acl.init() == 0
def test_two(): assert acl.rt.set_device(0) == 0
def test_plain(): pass
def test_npu(npu): assert acl.init() == 0
"""


def test_it_is_warned_once(run):
    result = run(USES)
    result.assert_outcomes(passed=4, warnings=2)
    assert len(lines_with(result, f"NpuWarning: {TEXT}")) == 2


def test_a_fixture_that_uses_acl_counts(run):
    result = run(
        """
@pytest.fixture
def device():
    import acl
    acl.init()
    assert acl.rt.set_device(0) == 0

def test_by_fixture(device): pass
"""
    )
    result.assert_outcomes(passed=1, warnings=1)


def test_it_can_be_an_error(run, pytester):
    pytester.makeini("[pytest]\nnpu_missing = error\n")
    result = run(USES)
    result.assert_outcomes(passed=2, failed=2)
    assert len([line for line in result.outlines if line.startswith(TEXT)]) == 2


def test_it_can_be_switched_off(run, pytester):
    pytester.makeini("[pytest]\nnpu_missing = off\n")
    run(USES).assert_outcomes(passed=4)


def test_filters_apply(run):
    run(USES, "-Wignore::understudy.pytest_plugin.NpuWarning").assert_outcomes(passed=4)
    result = run(USES, "-Werror::understudy.pytest_plugin.NpuWarning")
    result.assert_outcomes(passed=4, errors=2)


def test_a_wrong_setting_is_named(run, pytester):
    pytester.makeini("[pytest]\nnpu_missing = never\n")
    result = run("def test_any(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*npu_missing is "warn", "error" or "off", not \'never\''])


def test_another_module_of_that_name_is_left_alone(run, pytester):
    pytester.makepyfile(acl="def init(): return 0\n")
    result = run("import acl\n\ndef test_other(): assert acl.init() == 0\n")
    result.assert_outcomes(passed=1)
