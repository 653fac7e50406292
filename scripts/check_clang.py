#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has clang read bench/, examples/, python/src/ and tools/ with the warnings of the clang preset.

clang-tidy reads src/ with the same flags, so that nothing needs to be built with clang. Headers that
the build makes are those of the dev preset.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

import cpp_text

ROOT = cpp_text.ROOT
FOLDERS = ("bench", "examples", "python", "tools")


def commands():
    """{file: command} of what is read here."""
    entries = json.loads((ROOT / "build/clang/compile_commands.json").read_text(encoding="utf-8"))
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.relative_to(ROOT).parts[0] in FOLDERS:
            words = shlex.split(entry["command"].replace("/build/clang/", "/build/dev/"))
            output = words.index("-o")
            yield path, [*words[:output], *words[output + 2:], "-fsyntax-only"]


def read(command):
    run = subprocess.run(command, cwd=ROOT / "build/dev", stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    return "" if run.returncode == 0 else run.stdout


def main():
    known = dict(commands())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [text for text in pool.map(read, known.values()) if text]
    for text in problems:
        print(text)
    print(f"clang: {len(known)} files")
    return 1 if problems or not known else 0


if __name__ == "__main__":
    sys.exit(main())
