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
import joined_sources

ROOT = cpp_text.ROOT
BUILD = ROOT / "build/clang"
FOLDERS = ("bench", "examples", "python", "tools")
BATCH = 16


def commands():
    """(file, its command without the file) of what is read here."""
    entries = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.relative_to(ROOT).parts[0] in FOLDERS:
            words = shlex.split(entry["command"].replace("/build/clang/", "/build/dev/"))
            # The output, and behind it -c and the source.
            yield path, (*words[:words.index("-o")], "-fsyntax-only")


def batches():
    """(files, their command): those of the command and of the Python module a few at a time, since a
    program has one main."""
    together = {}
    for path, command in commands():
        is_part = path.suffix == ".cc" and path.relative_to(ROOT).parts[0] in ("python", "tools")
        together.setdefault(command if is_part else path, (command, []))[1].append(path)
    for command, files in together.values():
        for start in range(0, len(files), BATCH):
            yield files[start:start + BATCH], command


def read(batch, command):
    """What clang says about the files."""
    def run(path):
        done = subprocess.run([*command, path], cwd=ROOT / "build/dev", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return ("", False) if done.returncode == 0 else (done.stdout, True)
    return joined_sources.run_joined(batch, BUILD, run)


def main():
    known = list(batches())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [text for text in pool.map(read, *zip(*known)) if text]
    for text in problems:
        print(text)
    print(f"clang: {sum(len(files) for files, _ in known)} files")
    return 1 if problems or not known else 0


if __name__ == "__main__":
    sys.exit(main())
