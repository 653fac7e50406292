# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: every test here runs a pytest of its own on a small test file."""
import fcntl
import glob
import os
import shutil
import signal
import xml.etree.ElementTree

import pytest

pytest_plugins = ["pytester"]

PRELUDE = """
import os, signal, sys, unittest, warnings
import pytest

PROP = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1},
        "reserve": 0}
SIZE = 2 << 20

@pytest.fixture
def rt(npu):
    import acl
    assert acl.init() == 0 and acl.rt.set_device(0) == 0
    return acl.rt

def signal_parent(number):
    # Once it sleeps, it waits for this process.
    while open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()
    os.kill(os.getppid(), number)
    signal.pause()
"""


@pytest.fixture
def run(pytester):
    """run(source, *options) runs a file of tests; gives the result of that pytest."""

    def run_source(source, *options):
        pytester.makepyfile(PRELUDE + source)
        return pytester.runpytest_subprocess(
            "-p", "understudy.pytest_plugin", "--strict-markers", *options, timeout=100
        )

    before = set(glob.glob("/dev/shm/understudy-server-*"))
    yield run_source
    assert set(glob.glob("/dev/shm/understudy-server-*")) <= before


def lines_with(result, text):
    return [line for line in result.outlines if text in line]


# ---- The fixture and its settings


def test_a_test_has_a_server_of_its_own(run):
    result = run(
        """
def test_own(npu):
    import acl, understudy
    assert acl.rt.get_device_count() == (2, 0)
    assert acl.get_soc_name() == "Ascend910B3"
    assert understudy.runtime_directory() == npu.directory
    assert os.environ["UNDERSTUDY_MEMORY"] == "4G"

def test_parent_is_untouched():
    assert "UNDERSTUDY_PRODUCT" not in os.environ and "acl" not in sys.modules
"""
    )
    result.assert_outcomes(passed=2)


def test_two_products_live_in_one_session(run):
    result = run(
        """
@pytest.mark.npu(product="a3", devices=3)
def test_a3(npu):
    import acl
    assert (acl.get_soc_name(), acl.rt.get_device_count()[0]) == ("Ascend910_9392", 3)

@pytest.mark.npu(product="a2", memory="1G")
def test_a2(npu):
    import acl
    assert (acl.get_soc_name(), acl.rt.get_device_count()[0]) == ("Ascend910B3", 2)
    assert npu.settings["memory"] == "1G"
"""
    )
    result.assert_outcomes(passed=2)


def test_ini_options_choose_the_settings(run, pytester):
    pytester.makeini("[pytest]\nnpu_product = a3\nnpu_devices = 5\nnpu_memory = 512M\n")
    result = run(
        """
def test_ini(npu):
    assert npu.settings == {"product": "a3", "devices": "5", "memory": "512M"}

@pytest.mark.npu(devices=1, poison="on")
def test_marker_wins(npu):
    assert npu.settings == {"product": "a3", "devices": "1", "memory": "512M", "poison": "on"}
"""
    )
    result.assert_outcomes(passed=2)


def test_the_nearest_marker_wins_and_markers_add_up(run):
    result = run(
        """
pytestmark = pytest.mark.npu(product="a3", devices=4)

class TestClass:
    @pytest.mark.npu(devices=1)
    def test_method(self, npu):
        assert (npu.settings["product"], npu.settings["devices"]) == ("a3", "1")

def test_marker_alone_is_enough():
    assert os.environ["UNDERSTUDY_DEVICES"] == "4"
"""
    )
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "marker, sentence",
    [
        ("colour='red'", "no server for this test: Server has no setting colour; it has product,"),
        ("'a3'", "no server for this test: the marker npu takes keywords only"),
        ("leaks='no'", "no server for this test: leaks is \"fail\" or \"allow\", not 'no'"),
    ],
)
def test_a_wrong_marker_is_an_error_of_that_test_alone(run, marker, sentence):
    result = run(f"@pytest.mark.npu({marker})\ndef test_a(npu): pass\n\ndef test_b(npu): pass\n")
    result.assert_outcomes(passed=1, errors=1)
    assert lines_with(result, sentence)


def test_asking_for_the_fixture_later_is_too_late(run):
    result = run("def test_late(request): request.getfixturevalue('npu')\n")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "npu must be an argument, a usefixtures or a marker of the test")


def test_without_npu_nothing_forks_and_acl_is_not_imported(run):
    result = run(
        """
PARENT = os.getpid()

def test_plain(tmp_path):
    assert os.getpid() == PARENT and "acl" not in sys.modules
    assert not any("libascendcl" in line for line in open("/proc/self/maps"))
"""
    )
    result.assert_outcomes(passed=1)


# ---- Leaks

LEAKS = {
    "free(rt.malloc(3 * SIZE, 1)[0])": "",
    "malloc((1 << 20) - 64, 2)": "test leaks: 1 allocation, 1 MiB of device memory (acl.rt.free)",
    "malloc_host(64)": "test leaks: 1 host allocation (acl.rt.free_host)",
    "malloc_physical(SIZE, PROP, 0)": "test leaks: 1 physical handle, 2 MiB of device memory"
    " (acl.rt.free_physical)",
    "reserve_mem_address(SIZE, 0, 0, 0)": "test leaks: 1 reservation"
    " (acl.rt.release_mem_address)",
}


@pytest.mark.parametrize("call", LEAKS, ids=lambda call: call.partition("(")[0])
def test_what_stays_alive_fails_the_test(run, call):
    result = run(f"def test_call(rt):\n    rt.{call}\n")
    if LEAKS[call]:
        result.assert_outcomes(failed=1)
        assert lines_with(result, "::test_call - test leaks: 1 ")
        assert LEAKS[call] in result.outlines
    else:
        result.assert_outcomes(passed=1)


def test_a_mapping_keeps_its_block_alive(run):
    result = run(
        """
def test_mapping(rt):
    handle, ret = rt.malloc_physical(SIZE, PROP, 0)
    address, ret = rt.reserve_mem_address(SIZE, 0, 0, 0)
    assert rt.map_mem(address, SIZE, 0, handle, 0) == 0
    assert rt.free_physical(handle) == 0
"""
    )
    result.assert_outcomes(failed=1)
    assert (
        "test leaks: 1 reservation, 1 mapping, 2 MiB of device memory"
        " (acl.rt.release_mem_address, unmap_mem)" in result.outlines
    )


def test_several_are_counted(run):
    result = run("def test_two(rt): [rt.reserve_mem_address(SIZE, 0, 0, 0) for _ in range(2)]\n")
    assert "test leaks: 2 reservations (acl.rt.release_mem_address)" in result.outlines


def test_what_a_reset_frees_is_no_leak(run):
    result = run("def test_reset(rt): assert rt.malloc(SIZE, 1)[1] == rt.reset_device(0) == 0\n")
    result.assert_outcomes(passed=1)


def test_what_fixtures_free_afterwards_is_no_leak(run):
    result = run(
        """
@pytest.fixture(scope="module")
def wide():
    import acl
    acl.init(), acl.rt.set_device(0)
    pointer, ret = acl.rt.malloc(SIZE, 1)
    yield
    acl.rt.set_device(0)
    assert acl.rt.free(pointer) == 0

@pytest.fixture
def early():
    import acl
    acl.init(), acl.rt.set_device(0)
    handle, ret = acl.rt.malloc_host(64)
    yield
    assert acl.rt.free_host(handle) == 0

def test_early(early, wide, npu): pass
def test_late(npu, wide, early): pass
"""
    )
    result.assert_outcomes(passed=2)


def test_owners_in_a_cycle_are_collected_first(run):
    result = run(
        """
class Owner:
    def __init__(self, rt):
        self.free, (self.pointer, ret) = rt.free_host, rt.malloc_host(64)
        self.me = self
    def __del__(self):
        self.free(self.pointer)

def test_cycle(rt):
    Owner(rt)
"""
    )
    result.assert_outcomes(passed=1)


def test_a_failure_keeps_its_own_reason(run):
    result = run("def test_both(rt):\n    rt.malloc_host(64)\n    assert 'mine' == 'yours'\n")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "assert 'mine' == 'yours'") and not lines_with(result, "test leaks")


def test_leaks_can_be_allowed(run):
    result = run("@pytest.mark.npu(leaks='allow')\ndef test_it(rt):\n    rt.malloc_host(64)\n")
    result.assert_outcomes(passed=1)


def test_a_leak_can_be_an_expected_failure(run):
    result = run(
        """
@pytest.mark.xfail
def test_loose(rt): rt.malloc_host(64)

@pytest.mark.xfail(strict=True)
def test_strict(rt): rt.malloc_host(64)
"""
    )
    result.assert_outcomes(xfailed=2)


# ---- The child


def test_a_crash_is_one_failed_test(run):
    result = run(
        """
import ctypes

def test_before(npu): pass

def test_crash(rt):
    pointer, ret = rt.malloc(SIZE, 1)
    print("about to read")
    ctypes.string_at(pointer, 4)

def test_after(npu): pass
"""
    )
    result.assert_outcomes(passed=2, failed=1)
    assert "SIGSEGV: the test's process ended before the test" in result.outlines
    assert lines_with(result, "in test_crash")
    result.stdout.fnmatch_lines(["*Captured stdout call*", "about to read"])


@pytest.mark.parametrize(
    "source, end",
    [
        ("os._exit(0)", "exit code 0"),
        ("os._exit(7)", "exit code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("os.abort()", "SIGABRT"),
    ],
)
def test_an_early_end_is_a_failure(run, source, end):
    result = run(f"def test_end(npu): {source}\ndef test_after(npu): pass\n")
    result.assert_outcomes(passed=1, failed=1)
    assert f"{end}: the test's process ended before the test" in result.outlines


def test_a_crash_is_no_expected_failure(run):
    result = run("@pytest.mark.xfail\ndef test_crash(npu): os.abort()\n")
    result.assert_outcomes(failed=1)


def test_a_parent_that_uses_acl_does_not_disturb_its_children(run):
    result = run(
        """
import acl, understudy

def test_here():
    assert acl.init() == 0 and acl.rt.set_device(0) == 0
    assert acl.rt.malloc(SIZE, 1)[1] == 0
    assert understudy.objects().device_bytes > 0

def test_child(rt, npu):
    assert understudy.runtime_directory() == npu.directory
    assert understudy.objects() == understudy.Objects()

def test_here_again():
    assert understudy.objects().device_bytes > 0
"""
    )
    result.assert_outcomes(passed=3)


def test_a_test_that_forks_and_returns_twice_is_reported_once(run):
    result = run(
        """
def test_twice(npu):
    if os.fork() == 0:
        return
    assert os.wait()[1] == 1 << 8
"""
    )
    result.assert_outcomes(passed=1)


def test_a_child_that_lives_on_does_not_hold_the_session(run, pytester):
    os.mkfifo(pytester.path / "gate")
    result = run(
        """
def test_daemon(npu):
    if os.fork() == 0:
        open("gate").close()
        os._exit(0)
"""
    )
    result.assert_outcomes(passed=1)
    open(pytester.path / "gate", "w").close()  # waits for the child, and lets it go


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


def test_exit_and_interrupt_end_the_session(run):
    result = run("def test_exit(npu): pytest.exit('enough', 3)\ndef test_after(npu): pass\n")
    assert result.ret == 3 and lines_with(result, "enough")
    result = run("def test_stop(npu): raise KeyboardInterrupt\ndef test_after(npu): pass\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result = run("def test_key(npu): signal_parent(signal.SIGINT)\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_no_test_outlives_pytest(run, pytester):
    result = run(
        """
import fcntl, threading

def test_orphan(npu):
    lock = open("lock", "w")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    open("directory", "w").write(npu.directory)
    os.kill(os.getppid(), signal.SIGKILL)
    threading.Event().wait(30)
    open("outlived", "w").close()
"""
    )
    assert result.ret == -signal.SIGKILL
    with open(pytester.path / "lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # waits for the end of the test
    assert not (pytester.path / "outlived").exists()
    shutil.rmtree((pytester.path / "directory").read_text())  # nobody was left to do so


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


def test_a_timeout_by_signal_fails_the_test_alone(run, pytester):
    pytester.makeconftest(
        """
import signal
import pytest

def late(number, frame):
    pytest.fail("too late")

signal.signal(signal.SIGALRM, late)
"""
    )
    result = run(
        """
def test_endless(npu): signal_parent(signal.SIGALRM)
def test_after(npu): pass
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    assert "too late: the test's process ended before the test" in result.outlines


# ---- Without a child


def test_in_process_tests_share_the_first_server(run):
    result = run(
        """
PARENT, SEEN = os.getpid(), []

def test_first(rt, npu):
    assert os.getpid() == PARENT
    SEEN.append(npu)

@pytest.mark.npu(product="a2")
def test_same(npu): assert SEEN == [npu]

@pytest.mark.npu(product="a3")
def test_other(npu): pass

def test_leak(npu):
    import acl
    acl.rt.malloc_host(64)

def test_after_the_leak(npu): pass
""",
        "--npu-in-process",
        "-rs",
    )
    result.assert_outcomes(passed=3, skipped=1, failed=1)
    assert lines_with(result, "the test asks for product=a3, the session has <understudy.Server")
    assert "test leaks: 1 host allocation (acl.rt.free_host)" in result.outlines


def test_in_process_wide_fixtures_do_not_leak(run):
    result = run(
        """
@pytest.fixture(scope="module")
def wide():
    import acl
    acl.init(), acl.rt.set_device(0)
    pointer, ret = acl.rt.malloc_host(64)
    yield
    assert acl.rt.free_host(pointer) == 0

def test_one(npu, wide): pass
def test_two(npu, wide): pass
""",
        "--npu-in-process",
    )
    result.assert_outcomes(passed=2)


def test_in_process_needs_a_process_without_a_server(run):
    result = run(
        "def test_uses_acl():\n    import acl\n    acl.init()\n\ndef test_npu(npu): pass\n",
        "--npu-in-process",
    )
    result.assert_outcomes(passed=1, errors=1)
    assert lines_with(result, "no server for this test: this process uses the server in ")
