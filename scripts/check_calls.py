#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the table of public functions with the headers: check_calls.py

src/device/public_calls.cc has every function that answers a code exactly once, and no other.
"""

import re
import sys

import cpp_text

TABLE = cpp_text.ROOT / "src/device/public_calls.cc"
DECLARATION = re.compile(r"\baclError\s+(acl\w+)\s*\(")
ROW = re.compile(r'"(acl\w+)"')


def declared():
    """The functions of the headers that answer a code."""
    functions = set()
    for path in sorted((cpp_text.ROOT / "include/acl").rglob("*.h")):
        functions |= set(DECLARATION.findall(
            cpp_text.without_comments_and_strings(cpp_text.read(path))))
    return functions


def problems():
    """Yields a sentence for every row that is missing, too many or there twice."""
    rows = ROW.findall(cpp_text.without_comments(cpp_text.read(TABLE)))
    functions = declared()
    for name in sorted(functions - set(rows)):
        yield f"{name} is declared and has no group"
    for name in sorted(set(rows)):
        if name not in functions:
            yield f"{name} is no function that answers a code"
        if rows.count(name) > 1:
            yield f"{name} has two groups"


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__.splitlines()[0])
    found = list(problems())
    for problem in found:
        print(f"{TABLE.relative_to(cpp_text.ROOT)}: {problem}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
