#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up a run of the tests: test_report.py [--failed-stage NAME]... [RESULT.xml]...

Each result is what `ctest --output-junit` wrote. The tests of a shard or of a Python file that passed
are told one by one from its output. Prints the output of every failed test, every skipped test with
its reason, and last the line "N passed, M failed". A failed stage counts as a
failure, unless it is the "test PRESET" stage of failed tests that are counted themselves.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree

# What ctest calls it, and what we call it.
STATUS = {"run": "passed", "notrun": "skipped", "disabled": "skipped"}
SKIP_REASON = re.compile(r"Skipped\n(.+)")
# A test in the output of pytest -v: "tests/test_x.py::test_name SKIPPED (no numpy)   [ 50%]".
PYTEST_CASE = re.compile(r"^\S+/(\w+)\.py::(.+?) (PASSED|XFAIL|SKIPPED)(?: \((.*)\))? +\[ *\d+%\]$",
                         re.MULTILINE)
# A test in the output of a gtest program: "[       OK ] Suite.Name (3 ms)".
GTEST_CASE = re.compile(r"^\[ +(OK|SKIPPED) +\] ([^\s,]+).*\(\d+ ms\)$", re.MULTILINE)


def cases(result):
    """Yields (name, status, output) of every test in the file."""
    for case in xml.etree.ElementTree.parse(result).iter("testcase"):
        output = case.findtext("system-out") or ""
        status = STATUS.get(case.get("status"), "failed")
        if status == "skipped" and case.find("skipped") is None and output != "Disabled":
            status = "failed"  # not run, and not because the test itself said so
        if "/shard " in case.get("name") and status == "passed":
            yield from cases_of_shard(case.get("name").split("/")[0], output)
        elif case.get("name").startswith("python/") and status == "passed":
            yield from cases_of_pytest(output)
        else:
            yield case.get("name"), status, output


def cases_of_shard(label, output):
    """The same for the tests of a shard, from what gtest printed."""
    begin, seen = 0, set()
    for case in GTEST_CASE.finditer(output):
        if case[2] not in seen:  # a test that ran in a fresh process is there twice
            seen.add(case[2])
            status = "passed" if case[1] == "OK" else "skipped"
            yield f"{label}/{case[2]}", status, output[begin:case.end()]
        begin = case.end()


def cases_of_pytest(output):
    """The same for the tests of a Python file, from what pytest printed."""
    for file, name, outcome, reason in PYTEST_CASE.findall(output):
        status = "skipped" if outcome == "SKIPPED" else "passed"
        yield f"python/{file}::{name}", status, f"Skipped\n{reason}"


def skip_reason(output):
    """The text behind GTEST_SKIP(), which gtest prints after the place of the skip."""
    if output == "Disabled":
        return "disabled by its name"
    reason = SKIP_REASON.search(output)
    return reason[1].strip() if reason else "no reason given"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--failed-stage", action="append", default=[], metavar="NAME")
    parser.add_argument("results", nargs="*", type=pathlib.Path)
    args = parser.parse_args()

    tests = [(result.parent.name, *case) for result in args.results for case in cases(result)]
    passed, failed, skipped = ([test for test in tests if test[2] == status]
                               for status in ("passed", "failed", "skipped"))
    counted = {f"test {preset}" for preset, *_ in failed}
    stages = [stage for stage in args.failed_stage if stage not in counted]

    for preset, name, _, output in failed:
        print(f"\n---- {preset}: {name} failed:\n{output.strip()}")
    print(f"\n{len(skipped)} skipped")
    for preset, name, _, output in skipped:
        print(f"  {preset}: {name}: {skip_reason(output)}")
    for preset, name, *_ in failed:
        print(f"failed: {preset}: {name}")
    for stage in stages:
        print(f"failed: {stage}")
    print(f"{len(passed)} passed, {len(failed) + len(stages)} failed")
    return 1 if failed or stages else 0


if __name__ == "__main__":
    sys.exit(main())
