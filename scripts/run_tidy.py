#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the checks of .clang-tidy on src/: run_tidy.py [FILE.cc]...

Most of the time that clang-tidy takes for a file is spent in the headers of the standard library, so
it gets the files of a layer at once, in a source that includes them. Where that does not compile,
because two of the files use a name for different things, the batch is divided and tried again.
Batches that passed are skipped until a file of theirs, a header that they include, the checks or the
compiler flags change. The flags are those of the clang preset.
"""

import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import cpp_text
import joined_sources

ROOT = cpp_text.ROOT
BUILD = ROOT / "build/clang"
STAMPS = BUILD / "tidy"
BATCH = 40
# A finding: its place and text, then the lines that belong to it.
FINDING = re.compile(r"^\S+:\d+:\d+: error: .*\n(?:(?!\S+:\d+:\d+: error: ).*\n)*", re.MULTILINE)


def flags_by_folder():
    """{folder of src/: compiler flags}; the files of a layer are compiled alike."""
    flags = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        folder = pathlib.Path(entry["file"]).parent
        if folder.parent == ROOT / "src" and folder not in flags:
            words = shlex.split(entry["command"])
            wanted = ("-D", "-I", "-W", "-f", "-std=", "-isystem")
            flags[folder] = [word for word in words if word.startswith(wanted)]
    return flags


def headers_of(path, known):
    """Every header of src/ that the file includes, directly or not; `known` remembers them."""
    if path not in known:
        known[path] = set()  # ends recursion, should there be a cycle
        for _, name in cpp_text.includes(cpp_text.read(path)):
            header = ROOT / "src" / name.strip('"')
            if name.startswith('"') and header.is_file():
                known[path] |= {header} | headers_of(header, known)
    return known[path]


def stamp_of(batch, flags, version, known):
    """The file that says that the batch passed as it is now."""
    digest = hashlib.sha256(json.dumps([version, flags, list(map(str, batch))]).encode())
    headers = set().union(*(headers_of(path, known) for path in batch))
    for path in [ROOT / ".clang-tidy", *batch, *sorted(headers)]:
        digest.update(path.read_bytes())
    return STAMPS / digest.hexdigest()[:32]


def tidy(batch, flags):
    """What clang-tidy finds in the files."""
    def run(path):
        done = subprocess.run(
            ["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy", path, "--", *flags],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 0:
            return "", False
        text = done.stdout or f"clang-tidy ended with {done.returncode}\n"
        return text, "[clang-diagnostic-error]" in text
    return joined_sources.run_joined(batch, STAMPS, run)


def batches(files):
    """The files by folder, a few at a time."""
    for folder, group in itertools.groupby(files, key=lambda path: path.parent):
        group = list(group)
        for start in range(0, len(group), BATCH):
            yield folder, group[start:start + BATCH]


def main():
    named = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    files = named or [path for path in cpp_text.sources("src") if path.suffix == ".cc"]
    STAMPS.mkdir(parents=True, exist_ok=True)
    flags, known = flags_by_folder(), {}
    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    all_stamps, waiting = set(), []
    for folder, batch in batches(files):
        stamp = stamp_of(batch, flags[folder], version.decode(), known)
        all_stamps.add(stamp)
        if not stamp.exists():
            waiting.append((stamp, batch, flags[folder]))

    waiting.sort(key=lambda entry: -len(entry[1]))  # no core is idle at the end
    told = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(tidy, batch, flags): (stamp, batch) for stamp, batch, flags in waiting}
        for count, run in enumerate(concurrent.futures.as_completed(runs), start=1):
            stamp, batch = runs[run]
            print(f"[{count}/{len(runs)}] {cpp_text.relative(batch[0])} and {len(batch) - 1} more",
                  flush=True)
            if not run.result():
                stamp.touch()
            # Many batches include the same header.
            for finding in FINDING.findall(run.result()) or [run.result()]:
                if finding and finding not in told:
                    told.add(finding)
                    print(finding, flush=True)
    if not named:
        for old in set(STAMPS.iterdir()) - all_stamps:
            old.unlink()
    print(f"tidy: {len(files)} files, {len(waiting)} batches were not known to pass")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
