#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up a run of the tests: test_report.py [--failed-stage NAME]... [RESULT.xml]...

Each result is what `ctest --output-junit` wrote. The tests of a shard, and of a Python file that
passed, are told one by one from its output. Prints the output of every failed test, every skipped test with
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
GTEST_CASE = re.compile(r"^\[ +(OK|SKIPPED|FAILED) +\] ([^\s,]+).*\(\d+ ms\)$", re.MULTILINE)
GTEST_STATUS = {"OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}
GTEST_BEGIN = re.compile(r"^\[ RUN +\] (\S+)$", re.MULTILINE)


def cases(result):
    """Yields (name, status, output) of every test in the file."""
    for case in xml.etree.ElementTree.parse(result).iter("testcase"):
        output = case.findtext("system-out") or ""
        status = STATUS.get(case.get("status"), "failed")
        if status == "skipped" and case.find("skipped") is None and output != "Disabled":
            status = "failed"  # not run, and not because the test itself said so
        label = case.get("name").split("/")[0]
        if "/shard " in case.get("name") and status != "skipped":
            yield from cases_of_shard(case.get("name"), status, output)
        elif label in ("python", "command", "scripts") and status == "passed":
            yield from cases_of_pytest(label, output)
        else:
            yield case.get("name"), status, output


def cases_of_shard(shard, outcome, output):
    """The same for the tests of a shard, from what gtest printed."""
    label = shard.split("/")[0]
    begin, seen = 0, {}
    for case in GTEST_CASE.finditer(output):
        # A test that ran in a fresh process is there twice; the second one is the test itself.
        inner = seen[case[2]][1] if case[2] in seen else ""
        seen[case[2]] = GTEST_STATUS[case[1]], inner + output[begin:case.end()]
        begin = case.end()
    yield from ((f"{label}/{name}", *what) for name, what in seen.items())
    if outcome != "failed":
        return
    # It crashed or did not end in the test that has no outcome.
    open_cases = [name for name in GTEST_BEGIN.findall(output) if name not in seen]
    if open_cases or all(status != "failed" for status, _ in seen.values()):
        yield (f"{label}/{open_cases[-1]}" if open_cases else shard), "failed", output[begin:]


def cases_of_pytest(label, output):
    """The same for the tests of a Python file, from what pytest printed."""
    for file, name, outcome, reason in PYTEST_CASE.findall(output):
        status = "skipped" if outcome == "SKIPPED" else "passed"
        yield f"{label}/{file}::{name}", status, f"Skipped\n{reason}"


def skip_reason(output):
    """The text behind GTEST_SKIP(), which gtest prints after the place of the skip."""
    if output == "Disabled":
        return "disabled by its name"
    # The last one is that of the test itself where a fresh process skipped it.
    reasons = SKIP_REASON.findall(output)
    return reasons[-1].strip() if reasons else "no reason given"


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
