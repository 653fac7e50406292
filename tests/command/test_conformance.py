# SPDX-License-Identifier: Apache-2.0
"""understudy conformance: on our own library, on one with known mistakes, and on one that is taken
for a vendor's. UNDERSTUDY_CONFORMANCE_ALL=1 runs all rules instead of a few groups."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BUILD, COMMAND, clean_environment
from processes import open_terminal

LIBRARY = BUILD / "lib64/libascendcl.so"
WRONG_LIBRARY = BUILD / "lib64/libwrong_library.so"
EVERYTHING = os.environ.get("UNDERSTUDY_CONFORMANCE_ALL") == "1"
# A few seconds: plain calls, tests in fresh processes, of other products, with peers, of our own
# functions (SNAP), and with codes that are decisions.
GROUPS = ["UNMAP", "GRAN", "PROP", "HALF", "PCI", "LIMIT", "ATOM", "VPEER", "SNAP", "RESVN"]

pytestmark = pytest.mark.skipif(not (BUILD / "bin/rule_tests").exists(),
                                reason="the rule tests are not built")


def conformance(understudy, *arguments, **options):
    """The exit status and the report of a run."""
    options.setdefault("timeout", 1800 if EVERYTHING else 250)
    run = understudy("conformance", "--json", *arguments, **options)
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout)


def rules_by_outcome(report):
    found = {}
    for rule in report["rules"]:
        found.setdefault(rule["outcome"], set()).add(rule["rule"])
    return found


def rule_of(report, name):
    return next(rule for rule in report["rules"] if rule["rule"] == name)


def copy_without(symbol, path):
    """A copy of our library that does not export what begins with the symbol: its name is another."""
    data = LIBRARY.read_bytes()
    other = symbol[:-1] + ("Q" if symbol[-1] != "Q" else "X")
    assert symbol.encode() in data
    path.write_bytes(data.replace(b"\0" + symbol.encode(), b"\0" + other.encode()))
    return path


def test_our_own_library_holds(understudy):
    selection = [] if EVERYTHING else ["--rules", *GROUPS]
    status, report = conformance(understudy, *selection)
    outcomes = rules_by_outcome(report)
    assert outcomes.keys() <= {"holds", "not applicable"}, outcomes
    assert status == 0
    assert len(outcomes["holds"]) >= (840 if EVERYTHING else 80)
    assert not report["library"]["foreign"]
    assert report["library"]["file"] == str(LIBRARY.resolve())
    assert report["library"]["soc"] == "Ascend910B3"


def test_mistakes_are_named_and_nothing_else(understudy, tmp_path):
    base = copy_without("aclFloat16ToFloat", tmp_path / "base.so")
    status, report = conformance(
        understudy, "--library", WRONG_LIBRARY, "--time-limit", "10",
        "--rules", "UNMAP", "INFO", "GRAN", "HALF", "PCI", "PROP",
        env={"WRONG_LIBRARY_BASE": str(base)})
    outcomes = rules_by_outcome(report)
    assert status == 1
    assert outcomes["differs"] == {"UNMAP-03", "INFO-04", "INFO-05", "INFO-07", "INFO-09", "GRAN-01",
                                   "HALF-01", "HALF-02", "HALF-03"}
    assert outcomes["crashed"] == {"PCI-01", "PCI-06"}  # which have a test in common
    assert outcomes["hung"] == {"PROP-01"}

    def messages(name):
        return "\n".join(failure["message"] for test in rule_of(report, name)["tests"]
                         for failure in test.get("failures", []))

    assert re.search(r"aclrtUnmapMem.* returned 0, expected 107000", messages("UNMAP-03"))
    assert re.search(r"aclrtMemGetAllocationGranularity.* returned 107000, expected 100000",
                     messages("GRAN-01"))
    assert "the library has no function aclFloat16ToFloat" in messages("HALF-02")
    reasons = [test.get("reason", "") for test in rule_of(report, "PCI-01")["tests"]]
    assert any("signal 11" in reason for reason in reasons)


def test_foreign_library_is_judged_by_what_applies_to_it(understudy, tmp_path):
    library = copy_without("aclUnderstudy", tmp_path / "vendor.so.1.2")
    selection = [] if EVERYTHING else ["--rules", *GROUPS]
    status, report = conformance(understudy, "--library", library, "--jobs", "2", *selection)
    outcomes = rules_by_outcome(report)
    assert outcomes.keys() <= {"holds", "not applicable"}, outcomes
    assert status == 0
    assert report["library"]["foreign"]
    assert report["library"]["product"] == "a2"
    # Every test that does not apply says why.
    reasons = {test["test"]: test["reason"] for rule in report["rules"] for test in rule["tests"]
               if test["outcome"] == "not applicable"}
    assert all(reasons.values())
    found = "\n".join(reasons.values())
    assert "needs aclUnderstudyCountObjects, which only the software NPU has" in found
    assert "is about the product 950" in found
    assert re.search(r"needs UNDERSTUDY_\w+, which only the software NPU knows", found)
    assert "is about the product a2" not in found
    assert "RESVN-04" in outcomes["not applicable"]  # A3 alone has the function
    assert "UNMAP-03" in outcomes["holds"]


def test_foreign_codes_are_accepted_by_decision_and_state_alone(understudy, tmp_path):
    """The wrong library, foreign: GRAN-01 is exact, 507899 is right for UNMAP-03 (†)."""
    base = copy_without("aclUnderstudy", tmp_path / "base.so")
    _, report = conformance(
        understudy, "--library", WRONG_LIBRARY, "--rules", "UNMAP", "GRAN-01", "SNAP-01",
        env={"WRONG_LIBRARY_BASE": str(base), "WRONG_LIBRARY_CODES": "driver"})
    codes = {rule["rule"]: [code for test in rule["tests"] for code in test.get("codes", [])]
             for rule in report["rules"]}
    assert rule_of(report, "UNMAP-03")["outcome"] == "holds"
    assert {"expected": 107000, "got": 507899, "accepted": True}.items() <= \
        codes["UNMAP-03"][0].items()
    assert "aclrtUnmapMem" in codes["UNMAP-03"][0]["call"]
    assert rule_of(report, "GRAN-01")["outcome"] == "differs"
    assert {"expected": 100000, "got": 107000, "accepted": False}.items() <= \
        codes["GRAN-01"][0].items()
    assert rule_of(report, "SNAP-01")["outcome"] == "holds"
    assert codes["SNAP-01"][0]["got"] == 507000


def test_tests_start_on_a_library_that_lacks_functions():
    """Every reference to a function is bound when it is called, and none when the program starts."""
    run = subprocess.run(["readelf", "-rW", BUILD / "bin/rule_tests"], text=True, check=True,
                         capture_output=True)
    kinds = {match[1] for match in re.finditer(r" (R_\w+) .* acl\w+", run.stdout)}
    assert kinds and all(kind.endswith("_JUMP_SLOT") for kind in kinds), kinds


def test_text_report(understudy, tmp_path):
    file = tmp_path / "report.txt"
    run = understudy("conformance", "--rules", "GRAN-01", "GRAN-12", "--report", file)
    assert run.returncode == 0, run.stderr
    assert file.read_text(encoding="utf-8") == run.stdout
    assert run.stdout.splitlines()[-1] == "2 hold, 0 differ, 0 not applicable, 0 crashed"
    assert "\033" not in run.stdout + run.stderr
    for line in ("library   ", "version   runtime 1.17.0", "chip      Ascend910B3, product a2, 8 devices",
                 "machine   Linux ", "  GRAN-01 GRAN-12"):
        assert line in run.stdout


def test_report_as_json(understudy, tmp_path):
    file = tmp_path / "report.json"
    run = understudy("conformance", "--rules", "GRAN-12", "--report", file)
    assert run.returncode == 0
    counts = {"hold": 1, "differ": 0, "not_applicable": 0, "crashed": 0}
    assert json.loads(file.read_text(encoding="utf-8"))["counts"] == counts


def test_report_takes_the_place_of_the_one_before_at_the_end(understudy, tmp_path):
    """By links, with its permissions, and with nothing beside it."""
    folder = tmp_path / "reports"
    folder.mkdir()
    file = folder / "report.txt"
    file.write_text("the one before")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    with open(file, encoding="utf-8") as before:
        run = understudy("conformance", "--rules", "GRAN-12", "--report", tmp_path / "link")
        assert run.returncode == 0, run.stderr
        assert before.read() == "the one before"  # which was not changed, but replaced
    assert file.read_text(encoding="utf-8") == run.stdout
    assert (tmp_path / "link").is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(folder.iterdir()) == [file]


def test_report_that_is_no_plain_file_is_written_in_place(understudy, tmp_path):
    file = tmp_path / "report.txt"
    file.write_text("a longer text than that of the report\n" * 1000)
    os.link(file, tmp_path / "other_name")
    run = understudy("conformance", "--rules", "GRAN-12", "--report", file)
    assert (tmp_path / "other_name").read_text(encoding="utf-8") == run.stdout
    run = understudy("conformance", "--rules", "GRAN-12", "--report", "/dev/null")
    assert run.returncode == 0 and not os.path.isfile("/dev/null")
    if os.path.exists("/dev/full"):
        run = understudy("conformance", "--rules", "GRAN-12", "--report", "/dev/full")
        assert run.returncode == 1
        assert run.stderr == ("understudy conformance: cannot write /dev/full: "
                              "No space left on device\n")


def test_list_has_every_rule(understudy):
    run = understudy("conformance", "--list")
    assert run.returncode == 0
    assert len(run.stdout.splitlines()) >= 860
    assert "UNMAP-01   virPtr == NULL → ACL_ERROR_INVALID_PARAM." in run.stdout
    listed = json.loads(understudy("conformance", "--list", "--json", "--rules", "SNAP").stdout)
    assert len(listed) == 31 and all(rule["decision"] for rule in listed)


def test_rules_are_accepted_in_lower_case(understudy):
    listed = understudy("conformance", "--list", "--rules", "UNMAP-01", "GRAN")
    assert listed.returncode == 0
    assert understudy("conformance", "--list", "--rules", "unmap-01", "Gran").stdout == listed.stdout
    _, report = conformance(understudy, "--rules", "gran-12")
    assert [rule["rule"] for rule in report["rules"]] == ["GRAN-12"]


@pytest.mark.parametrize("arguments, status, words", [
    (["--rules", "DANCE"], 2, "there is no rule or group DANCE"),
    (["--rules", "gran-99"], 2, "there is no rule or group gran-99; --list shows them"),
    (["--rules", "UNMPA-01"], 2, "there is no rule or group UNMPA-01; did you mean UNMAP-01?"),
    (["--rules", "atmo"], 2, "there is no rule or group atmo; did you mean ATOM?"),
    (["--library", "/nonexistent.so"], 1, "/nonexistent.so is no file"),
    (["--library", "/"], 1, "/ is no file"),
    (["--library", __file__], 1, "test_conformance.py cannot be loaded: "),
    (["--tests", "/bin/false"], 1, "cannot be loaded"),
    (["--tests", "/nonexistent"], 2, "/nonexistent is no program that can be executed"),
    (["--jobs", "0"], 2, '--jobs has the value "0"; allowed: 1 to 1024'),
    (["--time-limit", "1m"], 2, '--time-limit has the value "1m"; allowed: 1 to 86400'),
    (["--rules", "GRAN-12", "--report", "/nonexistent/report"], 1,
     "cannot write /nonexistent/report: No such file or directory"),
    (["--rules", "GRAN-12", "--report", "/"], 1, "cannot write /: Is a directory"),
])
def test_wrong_arguments_are_one_sentence(understudy, arguments, status, words):
    run = understudy("conformance", *arguments)
    assert run.returncode == status
    assert words in run.stderr
    assert run.stderr.count("\n") == 1


def wait_until(condition):
    """What the condition gives, once it is true."""
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def test_interrupted_run_leaves_nothing(tmp_path):
    """A test that hangs keeps the run busy until it is interrupted."""
    folder = tmp_path / "work"
    folder.mkdir()
    report = tmp_path / "report.txt"
    report.write_text("the one before")
    environment = {**clean_environment(), "WRONG_LIBRARY_BASE": str(LIBRARY), "TMPDIR": str(folder)}
    with subprocess.Popen([COMMAND, "conformance", "--library", WRONG_LIBRARY, "--rules", "PROP-01",
                           "--report", report],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        wait_until(lambda: [path for path in folder.glob("*/*.records") if path.stat().st_size])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert sorted(tmp_path.iterdir()) == [report, folder]
    assert report.read_text() == "the one before"
    assert not list(folder.iterdir())


def test_progress_is_shown_on_a_terminal_alone(understudy, tmp_path):
    """A hanging test takes longer than the two seconds from which a run is shown."""
    arguments = ["conformance", "--library", WRONG_LIBRARY, "--rules", "PROP-01", "--time-limit", "3"]
    environment = {"WRONG_LIBRARY_BASE": str(LIBRARY), "TERM": "xterm"}
    assert re.fullmatch(r"(\d+ of \d+ tests, \d+:\d\d.*\n)+",
                        understudy(*arguments, env=environment).stderr)
    ours, theirs = open_terminal()
    with subprocess.Popen([COMMAND, *arguments], env={**clean_environment(), **environment},
                          stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # EIO: the command has ended
                break
        process.wait(timeout=60)
    os.close(ours)
    assert re.search(rb"\r0 of \d+ tests, 0:02", shown)
    assert shown.endswith(b"\r\033[K")
