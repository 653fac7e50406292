#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the rules of docs/rules/ as rows of a C++ table: make_rule_table.py OUTPUT

For tools/conformance/rule_table.cc: ID, text, whether its code is a decision of this project
(docs/rules/decisions.md), whether it is about a mistake of state (its text has a †).
"""

import json
import pathlib
import sys

import rules


def row(rule, text, is_decision):
    # JSON escapes quotes and backslashes as C++ does, and leaves the rest as UTF-8.
    flags = ", ".join("true" if flag else "false" for flag in (is_decision, "†" in text))
    return f'    {{"{rule}", {json.dumps(text, ensure_ascii=False)}, {flags}}},\n'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    problems = []
    texts, decisions = rules.read_rules(problems), rules.read_decisions(problems)
    if problems:
        sys.exit("\n".join(problems))
    table = "".join(row(rule, text, rule in decisions) for rule, text in texts.items())
    pathlib.Path(sys.argv[1]).write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
