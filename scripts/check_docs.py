#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks README.md and docs/: relative links lead somewhere, nothing is left to do, and no path of
one machine slipped in."""

import re
import sys

import cpp_text

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
UNFINISHED = re.compile(r"\b(TODO|FIXME)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(?:work|root|home/\w+)/[\w./-]*")


def pages():
    """The pages of the root folder and every page below docs/."""
    return sorted(cpp_text.ROOT.glob("*.md")) + sorted((cpp_text.ROOT / "docs").rglob("*.md"))


def check_links(path, text):
    """Yields a sentence for every relative link without a target."""
    prose = CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for match in LINK.finditer(prose):
        target = match[1] or match[2]
        if ELSEWHERE.match(target):
            continue
        file = target.split("#")[0]
        if not (path.parent / file).exists():
            line = cpp_text.line_of(prose, match.start())
            yield f"{cpp_text.relative(path)}:{line}: links to {target}, which does not exist"


def check_words(path, text):
    """Yields a sentence for every word that should not be published."""
    for match in UNFINISHED.finditer(text):
        line = cpp_text.line_of(text, match.start())
        yield f"{cpp_text.relative(path)}:{line}: {match[0]} is left"
    for match in MACHINE_PATH.finditer(text):
        line = cpp_text.line_of(text, match.start())
        yield f"{cpp_text.relative(path)}:{line}: {match[0]} is a path of one machine"


def main():
    found = pages()
    problems = []
    for path in found:
        text = cpp_text.read(path)
        problems += [*check_links(path, text), *check_words(path, text)]
    return cpp_text.report(problems, f"docs: {len(found)} pages, every link leads somewhere")


if __name__ == "__main__":
    sys.exit(main())
