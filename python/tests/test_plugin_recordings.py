# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: --npu-record keeps the recordings of tests that fail."""
import pytest
from pytest_runs import PRELUDE, lines_with

pytest_plugins = ["pytest_runs"]

# Lines of the sources below begin behind those of the prelude.
FIRST = len(PRELUDE.strip().splitlines())
BOTH = """
@pytest.fixture
def rt(npu):
    import acl
    assert acl.rt.set_device(0) == 0
    return acl.rt

def test_good(rt):
    assert rt.free(rt.malloc(4096, 0)[0]) == 0

def test_bad(rt):
    assert rt.free(rt.malloc(4096, 0)[0]) == 0
    assert not "good"
"""


@pytest.fixture
def kept(pytester):
    """kept(folder) gives the recordings in a folder, by name."""

    def look(folder="npu-recordings"):
        files = sorted(pytester.path.joinpath(folder).iterdir())
        contents = {file.name: file.read_bytes() for file in files}
        assert all(content.startswith(b"NPSUREC1") for content in contents.values())
        return contents

    return look


@pytest.mark.parametrize("folder, options", [
    ("npu-recordings", ["--npu-record"]), ("kept", ["--npu-record=kept", "--npu-in-process"]),
])
def test_only_that_of_a_failed_test_is_kept(run, kept, request, folder, options):
    result = run(BOTH, *options)
    result.assert_outcomes(passed=1, failed=1)
    module = request.node.originalname
    ((name, content),) = kept(folder).items()
    assert name == f"{module}.py-test_bad.rec"
    assert f"{module}.py:{FIRST + 12} test_bad".encode() in content
    assert b"test_good" not in content
    (place,) = [i for i, line in enumerate(result.outlines) if "software NPU: recording" in line]
    assert result.outlines[place + 1] == f"{folder}/{name}"
    assert result.outlines[place + 2] == f"  understudy trace {folder}/{name}"


def test_without_the_option_nothing_is_recorded(run, pytester):
    result = run(BOTH)
    result.assert_outcomes(passed=1, failed=1)
    assert not lines_with(result, "software NPU: recording")
    assert not list(pytester.path.rglob("*.rec"))


def test_the_ini_option_names_the_folder(run, pytester, kept):
    pytester.makeini("[pytest]\nnpu_record = of/failures\n")
    run(BOTH).assert_outcomes(passed=1, failed=1)
    assert len(kept("of/failures")) == 1
    run(BOTH, "--npu-record=off").assert_outcomes(passed=1, failed=1)


def test_that_of_a_crash_is_kept(run, kept):
    result = run("""
ENDS = [os.abort, lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(0)]
@pytest.mark.parametrize("end", ENDS, ids=["abort", "kill", "exit"])
def test_crash(rt, end):
    rt.malloc(4096, 0)
    end()
""", "--npu-record")
    result.assert_outcomes(failed=3)
    recordings = kept()
    assert len(recordings) == 3
    for name, content in recordings.items():
        assert b"aclrtMalloc(" in content
        assert lines_with(result, f"understudy trace npu-recordings/{name}")


def test_that_of_a_failure_around_the_test_is_kept(run, kept):
    result = run("""
@pytest.fixture
def begins(rt): assert 0

@pytest.fixture
def ends(rt):
    yield
    assert 0

def test_begin(begins): pass
def test_end(ends): pass
def test_leak(rt): rt.malloc(4096, 0)
@pytest.mark.xfail
def test_expected(rt): assert 0
""", "--npu-record")
    outcomes = result.parseoutcomes()
    assert (outcomes["errors"], outcomes["failed"], outcomes["xfailed"]) == (2, 1, 1)
    ends = [name.rpartition("-")[2] for name in kept()]
    assert ends == ["test_begin.rec", "test_end.rec", "test_leak.rec"]


def test_one_of_an_earlier_run_is_replaced(run, kept):
    run(BOTH, "--npu-record")
    (before,) = kept().values()
    run(BOTH.replace('not "good"', "1"), "--npu-record").assert_outcomes(passed=2)
    assert kept() == {}
    run(BOTH, "--npu-record")
    assert len(list(kept().values())[0]) == len(before)


def test_names_of_parametrized_tests_are_safe(run, kept):
    run("""
@pytest.mark.parametrize("text", ["a", "a/b", "a b", "../x", "'$(x)'", "é", "n" * 300, ""])
def test_text(rt, text): assert 0

class TestClass:
    def test_it(self, rt): assert 0
""", "--npu-record").assert_outcomes(failed=9)
    names = list(kept())
    assert len(names) == 9
    module = "test_names_of_parametrized_tests_are_safe.py"
    assert f"{module}-test_text-a.rec" in names and f"{module}-TestClass-test_it.rec" in names
    for name in names:
        assert len(name) < 200 and name.isascii() and not set(name) & set("/ '$()[]\\")


def test_the_first_call_of_a_test_is_in_its_recording(run, kept):
    run("""
import acl  # pytest has the library then, and has made calls

def test_first(npu):
    acl.init()
    assert 0
""", "--npu-record").assert_outcomes(failed=1)
    (content,) = kept().values()
    assert b"aclInit(" in content


def test_processes_of_a_test_are_in_its_recording(run, kept):
    run("""
import subprocess
def test_others(rt):
    source = "import acl; acl.rt.get_device_count()"
    subprocess.run([sys.executable, "-c", source], check=True)
    assert 0
""", "--npu-record").assert_outcomes(failed=1)
    (content,) = kept().values()
    assert b"aclrtGetDeviceCount(" in content


def test_a_test_may_have_a_recording_of_its_own(run, kept, pytester):
    run("""
@pytest.mark.npu(trace=None)
def test_own(npu):
    import understudy
    with understudy.record("own.rec"):
        import acl
        acl.rt.get_device_count()
    assert 0
""", "--npu-record").assert_outcomes(failed=1)
    assert not pytester.path.joinpath("npu-recordings").exists()
    assert b"aclrtGetDeviceCount(" in pytester.path.joinpath("own.rec").read_bytes()


def test_workers_of_xdist_share_the_folder(run, kept):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    run("""
@pytest.mark.parametrize("number", range(8))
def test_number(rt, number): assert number % 2
""", "--npu-record", "-n", "2").assert_outcomes(passed=4, failed=4)
    assert [name[-6:] for name in kept()] == ["-0.rec", "-2.rec", "-4.rec", "-6.rec"]


def test_a_path_is_no_folder(run, pytester):
    pytester.mkdir("more")
    result = run(BOTH, "--npu-record", "more")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("--npu-record=npu-recordings more" in line for line in result.errlines)


def test_a_folder_that_cannot_be_is_an_error_of_the_test(run, pytester):
    pytester.path.joinpath("file").write_text("")
    run(BOTH, "--npu-record=file/folder").assert_outcomes(errors=2)
