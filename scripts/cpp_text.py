# SPDX-License-Identifier: Apache-2.0
"""C and C++ sources as text: comments and strings blanked out, #include lines, listing of files."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

_COMMENT_OR_STRING = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<digits>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))
      | (?P<character>'(?:[^'\\\n]|\\.)+')""",
    re.VERBOSE | re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>|"[^"\n]+")', re.MULTILINE)


def _blank(text):
    """Keeps the line breaks, so that line numbers stay right."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The text with every comment turned into blanks."""
    return _COMMENT_OR_STRING.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


def without_comments_and_strings(text):
    """The text with every comment, string and character turned into blanks."""
    return _COMMENT_OR_STRING.sub(lambda m: m[0] if m["digits"] else _blank(m[0]), text)


def line_of(text, offset):
    """The number of the line at the offset."""
    return text.count("\n", 0, offset) + 1


def includes(text):
    """Yields (line, name with its brackets or quotes) for every #include."""
    code = without_comments(text)
    for match in _INCLUDE.finditer(code):
        yield line_of(code, match.start(1)), match[1]


def sources(folder):
    """Every C or C++ file below the folder of the project, in a stable order."""
    found = (ROOT / folder).rglob("*")
    return sorted(path for path in found if path.suffix in (".h", ".cc", ".c") and path.is_file())


def read(path):
    """The text of a file; the sources are UTF-8."""
    return path.read_text(encoding="utf-8")


def relative(path):
    """The path as it is written in messages."""
    return path.relative_to(ROOT).as_posix()


def report(problems, success):
    """Prints the problems, or one line of success; the value is the exit code."""
    for problem in problems:
        print(problem)
    if not problems:
        print(success)
    return 1 if problems else 0
