# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: what pytest offers works as in other tests."""
import xml.etree.ElementTree

import pytest

from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]


def test_skip_xfail_and_parametrize(run):
    result = run(
        """
def test_skip(npu): pytest.skip("not today")

@pytest.mark.skip(reason="marked")
def test_skip_marked(npu): pass

@pytest.mark.xfail
def test_xfail(npu): assert False

@pytest.mark.xfail
def test_xpass(npu): pass

@pytest.mark.parametrize("product, soc", [("a2", "Ascend910B3"), ("a3", "Ascend910_9392")])
def test_parameters(product, soc, npu): assert soc.startswith("Ascend910")

DEVICES = [pytest.param(n, marks=pytest.mark.npu(devices=n)) for n in (1, 3)]

@pytest.mark.parametrize("count", DEVICES)
def test_marked_parameters(npu, count):
    import acl
    assert acl.rt.get_device_count() == (count, 0)
""",
        "-rs",
    )
    result.assert_outcomes(passed=4, skipped=2, xfailed=1, xpassed=1)
    assert lines_with(result, "not today") and lines_with(result, "marked")


def test_unittest_cases_use_it(run):
    result = run(
        """
@pytest.mark.usefixtures("npu")
class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import acl
        cls.devices, ret = acl.rt.get_device_count()

    def test_good(self): self.assertEqual(self.devices, 2)
    def test_bad(self): self.assertEqual(self.devices, 3)
    def test_leak(self):
        import acl
        acl.init(), acl.rt.set_device(0), acl.rt.malloc_host(64)
"""
    )
    result.assert_outcomes(passed=1, failed=2)
    assert "test leaks: 1 host allocation (acl.rt.free_host)" in result.outlines


def test_fixtures_of_the_parent_are_torn_down_once_by_it(run, pytester):
    pytester.makepyfile(test_zz_next="def test_other_module(): pass\n")
    result = run(
        """
def log(text):
    with open("log", "a") as file:
        print(text, "in the parent" if os.getpid() == PARENT else "in a child", file=file)

PARENT = os.getpid()

@pytest.fixture(scope="module")
def wide():
    log("wide begins")
    yield
    log("wide ends")

@pytest.fixture(scope="module")
def childs():
    log("childs begins")
    yield
    log("childs ends")

def test_here(wide): pass
def test_child(wide, childs, npu): pass
""",
    )
    result.assert_outcomes(passed=3)
    assert pytester.path.joinpath("log").read_text().splitlines() == [
        "wide begins in the parent",
        "childs begins in a child",
        "childs ends in a child",
        "wide ends in the parent",
    ]


def test_a_teardown_that_fails_in_the_parent_is_an_error(run):
    result = run(
        """
@pytest.fixture(scope="module")
def wide():
    yield
    assert False, "wide cannot end"

def test_here(wide): pass
def test_child(wide, npu): pass
"""
    )
    result.assert_outcomes(passed=2, errors=1)
    assert lines_with(result, "wide cannot end")


def test_output_belongs_to_the_test_that_printed_it(run):
    result = run(
        """
def test_silent(npu): print("unheard")

def test_loud(npu):
    print("to stdout")
    os.write(2, b"to stderr\\n")
    assert False
"""
    )
    result.stdout.fnmatch_lines(
        ["*Captured stdout call*", "to stdout", "*Captured stderr call*", "to stderr"]
    )
    assert not lines_with(result, "unheard")


def test_capsys_and_tmp_path_work(run, pytester):
    result = run(
        """
def test_capsys(npu, capsys):
    print("seen")
    assert capsys.readouterr().out == "seen\\n"

@pytest.mark.parametrize("n", range(3))
def test_tmp_path(npu, tmp_path, n): assert not list(tmp_path.iterdir())
""",
        "-s",
    )
    result.assert_outcomes(passed=4)


def test_x_k_and_lf_select(run):
    source = "def test_one(npu): assert 0\ndef test_two(npu): assert 0\ndef test_three(npu): pass\n"
    run(source, "-x").assert_outcomes(failed=1)
    run(source, "-k", "three").assert_outcomes(passed=1, deselected=2)
    run(source).assert_outcomes(passed=1, failed=2)
    run(source, "--lf").assert_outcomes(failed=2)


@pytest.mark.parametrize("plugin", ["terminal", "capture", "faulthandler", "warnings", "junitxml"])
def test_it_works_without_other_plugins(run, plugin):
    source = "def test_good(npu): pass\ndef test_crash(npu): os.abort()\n"
    assert run(source, "-k", "good", f"-pno:{plugin}").ret == pytest.ExitCode.OK
    assert run(source, f"-pno:{plugin}").ret == pytest.ExitCode.TESTS_FAILED


def test_warnings_reach_the_summary(run):
    result = run(
        """
def test_warns(npu):
    class Local(UserWarning): pass
    warnings.warn("heard of it")
    warnings.warn(Local("and of this"))
"""
    )
    result.assert_outcomes(passed=1)
    assert lines_with(result, "UserWarning: heard of it")
    assert lines_with(result, "UserWarning: Local: and of this")


def test_suite_properties_are_kept(run, pytester):
    run(
        """
def test_one(npu, record_testsuite_property): record_testsuite_property("first", "from a child")
def test_two(record_testsuite_property): record_testsuite_property("second", "from here")
def test_three(npu, record_testsuite_property): record_testsuite_property("third", 3)
""",
        "--junitxml=report.xml",
    )
    suite = xml.etree.ElementTree.parse(pytester.path / "report.xml").getroot()[0]
    assert [(one.get("name"), one.get("value")) for one in suite.find("properties")] == [
        ("first", "from a child"), ("second", "from here"), ("third", "3")
    ]


def test_junitxml_has_times_properties_and_failures(run, pytester):
    run(
        """
def test_good(npu, record_property): record_property("product", "a2")
def test_leak(rt): rt.malloc_host(64)
def test_crash(npu): os.abort()
""",
        "--junitxml=report.xml",
        "--override-ini=junit_family=xunit1",
    )
    suite = xml.etree.ElementTree.parse(pytester.path / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    good, leak, crash = suite.findall("testcase")
    assert good.find("properties/property").attrib == {"name": "product", "value": "a2"}
    assert all(float(case.get("time")) >= 0 for case in (good, leak, crash))
    assert leak.find("failure").get("message").startswith("test leaks: 1 host allocation")
    assert "SIGABRT" in crash.find("failure").get("message")
