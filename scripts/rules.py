#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which rules of docs/rules/ have a test.

A rule is covered when the name of a TEST starts with its ID, dashes written as underscores. One
name may start with several IDs: PHYS_01_PHYS_02_NullIsRefused. So that a search for an ID as the
rules write it finds its tests, the comment at the top of a file ends with the IDs in it:
"Covers: PHYS-01, PHYS-02." --update writes these lines, --check compares them.
"""

import argparse
import pathlib
import re
import signal
import sys
import textwrap

import cpp_text

COVERED_LIST = cpp_text.ROOT / "scripts/covered_rules.txt"
RULE_ROW = re.compile(r"^\| ([A-Z][A-Z0-9]{1,8}-\d{2}) \| (.*) \|$", re.MULTILINE)
DECISION_ROW = re.compile(r"^\| ([A-Z][A-Z0-9]{1,8}) \| (\d{2}.*) \|$", re.MULTILINE)
TEST_NAME = re.compile(r"TEST(?:_F|_P)?\(\s*\w+,\s*((?:[A-Z][A-Z0-9]{1,8}_\d{2}_)+)")


def group_of(rule):
    return rule.split("-")[0]


def read_rules(problems):
    """{ID: text} in the order of the pages; a rule found twice or on a wrong page is a problem."""
    rules = {}
    for path in sorted((cpp_text.ROOT / "docs/rules").glob("*.md")):
        text = cpp_text.read(path)
        for match in RULE_ROW.finditer(text):
            where = f"{cpp_text.relative(path)}:{cpp_text.line_of(text, match.start())}"
            if match[1] in rules:
                problems.append(f"{where}: {match[1]} is defined twice")
            if path.stem != group_of(match[1]).lower():
                problems.append(f"{where}: {match[1]} belongs on the page of its group")
            rules[match[1]] = match[2].replace("\\", "")
    return rules


def read_decisions(problems):
    """The IDs of docs/rules/decisions.md; one that is no rule is a problem."""
    path = cpp_text.ROOT / "docs/rules/decisions.md"
    text, rules, decisions = cpp_text.read(path), read_rules([]), set()
    for match in DECISION_ROW.finditer(text):
        for first, last in re.findall(r"(\d{2})(?:-(\d{2}))?", match[2]):
            decisions |= {f"{match[1]}-{number:02}"
                          for number in range(int(first), int(last or first) + 1)}
        for rule in sorted(decisions - rules.keys()):
            line = cpp_text.line_of(text, match.start())
            problems.append(f"{cpp_text.relative(path)}:{line}: {rule} is no rule")
            decisions.discard(rule)
    return decisions


def named_rules(code):
    """Yields (ID, offset) for every ID that the name of a test in the code starts with."""
    for match in TEST_NAME.finditer(code):
        for group, number in re.findall(r"([A-Z][A-Z0-9]{1,8})_(\d{2})_", match[1]):
            yield f"{group}-{number}", match.start(1)


def read_tests():
    """{ID: "file:line" of a test whose name starts with it}"""
    tests = {}
    for path in cpp_text.sources("tests"):
        code = cpp_text.without_comments(cpp_text.read(path))
        for rule, offset in named_rules(code):
            tests.setdefault(rule, f"{cpp_text.relative(path)}:{cpp_text.line_of(code, offset)}")
    return tests


def with_index(text):
    """The text of a test file with the IDs it covers at the end of its first comment."""
    lines = text.split("\n")
    end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    begin = next((i for i in range(end) if lines[i].startswith("// Covers: ")), end)
    rules = sorted({rule for rule, _ in named_rules(cpp_text.without_comments(text))})
    index = textwrap.wrap(f"Covers: {', '.join(rules)}.", 97, break_on_hyphens=False)
    return "\n".join(lines[:begin] + [f"// {line}" for line in index if rules] + lines[end:])


def files_with_another_index():
    """Yields (path, text as it should be)."""
    for path in cpp_text.sources("tests"):
        text = cpp_text.read(path)
        if path.name.endswith("_test.cc") and with_index(text) != text:
            yield path, with_index(text)


def read_covered_list():
    return COVERED_LIST.read_text(encoding="utf-8").split() if COVERED_LIST.exists() else []


def ranges(rules):
    """The numbers of rules of one group, runs shortened: 01-04 07"""
    runs = []
    for number in sorted(int(rule.split("-")[1]) for rule in rules):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{a:02}" if a == b else f"{a:02}-{b:02}" for a, b in runs) or "none"


def print_overview(rules, tests):
    groups = {}
    for rule in rules:
        groups.setdefault(group_of(rule), []).append(rule)
    for group, members in groups.items():
        covered = [rule for rule in members if rule in tests]
        missing = [rule for rule in members if rule not in tests]
        print(f"{group:8} {len(covered):3} of {len(members):3}  covered: {ranges(covered)}"
              f"  open: {ranges(missing)}")
    covered = sum(rule in tests for rule in rules)
    print(f"\n{covered} of {len(rules)} rules covered, {len(rules) - covered} open")


def print_open(rules, tests, groups):
    for rule, text in rules.items():
        if rule not in tests and (not groups or group_of(rule) in groups):
            print(f"{rule:10} {text}")


def unbuilt_tests(test_sources):
    """Yields a sentence for every *_test.cc that no target compiles."""
    lines = pathlib.Path(test_sources).read_text(encoding="utf-8").splitlines()
    built = {pathlib.Path(line).resolve() for line in lines}
    for path in cpp_text.sources("tests"):
        if path.name.endswith("_test.cc") and path.resolve() not in built:
            yield f"{cpp_text.relative(path)}:1: is not built by any target"


def check(rules, tests, test_sources, problems):
    read_decisions(problems)
    for rule, where in tests.items():
        if rule not in rules:
            problems.append(f"{where}: names {rule}, which docs/rules does not know")
    for number, rule in enumerate(read_covered_list(), start=1):
        if rule not in tests:
            problems.append(f"{cpp_text.relative(COVERED_LIST)}:{number}: {rule} was covered and "
                            "has no test any more")
    for path, _ in files_with_another_index():
        problems.append(f"{cpp_text.relative(path)}:1: the index of rules is not that of its tests; "
                        "./dev rules --update writes it")
    if test_sources:
        problems += unbuilt_tests(test_sources)
    new = (rules.keys() & tests.keys()) - set(read_covered_list())
    if new:
        print(f"rules: {len(new)} newly covered; add them to the list with ./dev rules --update")
    return cpp_text.report(problems, f"rules: {len(rules.keys() & tests.keys())} of {len(rules)} "
                                     "covered, none lost")


def update(rules, tests):
    """Only adds. Giving up a covered rule is an edit of the list by hand, for all to see."""
    old = set(read_covered_list())
    new = old | (rules.keys() & tests.keys())
    COVERED_LIST.write_text("".join(f"{rule}\n" for rule in sorted(new)), encoding="utf-8")
    print(f"{cpp_text.relative(COVERED_LIST)}: {len(new)} rules, {len(new - old)} of them new")
    for path, text in files_with_another_index():
        path.write_text(text, encoding="utf-8")
        print(f"{cpp_text.relative(path)}: index of rules written")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev rules", description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--open", nargs="*", metavar="GROUP", help="list open rules with their text")
    what.add_argument("--check", action="store_true", help="fail on unknown or lost rules")
    what.add_argument("--update", action="store_true", help="note the rules covered now")
    parser.add_argument("--test-sources", metavar="FILE",
                        help="with --check: also fail on test files that are not in this list of "
                             "built ones")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    args = arguments()
    problems = []
    rules, tests = read_rules(problems), read_tests()
    if args.check:
        return check(rules, tests, args.test_sources, problems)
    if args.update:
        update(rules, tests)
    elif args.open is not None:
        print_open(rules, tests, {group.upper() for group in args.open})
    else:
        print_overview(rules, tests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
