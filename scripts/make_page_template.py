#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the timeline page as a C++ table: make_page_template.py PAGE OUTPUT

For tools/recording/timeline_page.cc: what is in front of the element that holds the recording, and
what is behind it, in pieces that every compiler takes as a string.
"""

import json
import pathlib
import re
import sys

ELEMENT = '<script id="recording" type="application/octet-stream"></script>'
PIECE = 4000  # characters


def literal(text):
    # JSON escapes quotes and backslashes as C++ does, and leaves the rest as UTF-8. Compilers warn of
    # what was a trigraph once.
    return json.dumps(text, ensure_ascii=False).replace("??", "?\\?")


def table(name, text):
    pieces = (text[at:at + PIECE] for at in range(0, len(text), PIECE))
    rows = "".join(f"    {literal(piece)},\n" for piece in pieces)
    return f"constexpr std::string_view {name}[] = {{\n{rows}}};\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    parts = page.split(ELEMENT)
    if len(parts) != 2:
        sys.exit(f"{sys.argv[1]}: has the element of the recording {len(parts) - 1} times, not once")
    if found := re.search(r"[\x00-\x08\x0b\x0e-\x1f]", page):
        sys.exit(f"{sys.argv[1]}: has the character {found[0]!r}, which C++ would write otherwise")
    text = table("kBeforeRecording", parts[0]) + table("kBehindRecording", parts[1])
    pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
