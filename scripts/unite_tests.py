#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins test sources to one that compiles faster: unite_tests.py OUTPUT SOURCE...

Most of the time that a test source takes is spent in headers and templates that its neighbors use as
well. What a source has in its anonymous namespace goes into a namespace of its own inside it, so that
two sources may use the same names, and its macros end with it. Compilers and debuggers still name the
sources and their lines. The output is left alone if nothing has changed.
"""

import pathlib
import re
import sys

OPENING = re.compile(r"^namespace \{$", re.MULTILINE)
CLOSING = re.compile(r"^\}  // namespace$", re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)


def part(source):
    """The text of one source, as it goes into the joint one."""
    text = source.read_text(encoding="utf-8")
    if len(OPENING.findall(text)) != 1 or len(CLOSING.findall(text)) != 1:
        sys.exit(f"{source}: a test source has one anonymous namespace, closed by '}}  // namespace'")
    text = OPENING.sub("namespace { namespace in_" + source.stem + " {", text)
    text = CLOSING.sub("} }  // namespace", text)
    undefined = "".join(f"#undef {name}\n" for name in dict.fromkeys(MACRO.findall(text)))
    return f'#line 1 "{source}"\n{text}\n{undefined}'


def main():
    output, *sources = map(pathlib.Path, sys.argv[1:])
    text = "".join(map(part, sources))
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
