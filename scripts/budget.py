#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what public calls take, and holds it against bench/budget/budget.json.

    budget.py BENCH LIBRARY TABLE [--update [--accept]]

BENCH makes rounds of calls (bench/budget/budget.cc). Valgrind runs each round twice, with two
counts of repetitions: what differs is the cost of the rounds, and starting up cancels out. Counted
are instructions, and atomic read-modify-writes among them, by what the disassembly says of the
address. Both are those of LIBRARY alone: functions of the C library have another length for each
processor and release.

A figure may be 2 % above the table; more is a failure. Rounds that the table does not compare have
tasks, which run on a thread of their own: what that one does beside the caller is not the same
twice. Exits with 77 where nothing can be compared, for a reason that the last line tells.

--update writes the figures that are lower. If some are higher, it names them and writes nothing;
with --accept, it writes these, too.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

TOLERANCE = 1.02
REPETITIONS = (500, 1500)
SKIPPED = 77  # as for scripts/check_page.py
FIGURES = ("instructions", "atomics")
MACHINE = "x86_64"  # whose instructions the table counts
SYS_MEMBARRIER = 324  # on that machine
MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3
NEEDED = ("valgrind", "objdump", "readelf")

# "  2f41c:	lock cmpxchg %ecx,(%rdx)" and "  2f41c:	xchg   %al,0x10(%rdi)".
ATOMIC = re.compile(r"^\s*([0-9a-f]+):\s+(?:(?:\w+ )*lock\b|xchg\s+(?!\s|%\w+,%\w+$))")
COMPILER = re.compile(r"GCC: \(.*\) ([\d.]+)|clang version ([\d.]+)")

Round = collections.namedtuple("Round", FIGURES)


# ---- Counting ----

def executions_in(profile, library):
    """{address: executions} of the library's instructions, of the lines of a profile of Callgrind
    that has instruction addresses, neither lines nor compressed names."""
    executions = collections.Counter()
    is_inside = is_call = False
    for line in profile:
        if line.startswith("0x"):
            # What follows "calls=" is what the callee has cost.
            if is_inside and not is_call:
                address, count = line.split()
                executions[int(address, 16)] += int(count)
            is_call = False
        elif line.startswith("ob="):
            is_inside = line[3:].rstrip("\n") == library
        elif line.startswith("calls="):
            is_call = True
    return executions


def atomic_addresses(disassembly):
    """Where instructions are that read, change and write memory in one step."""
    return {int(found[1], 16) for found in map(ATOMIC.match, disassembly) if found}


def per_round(few, many, rounds, atomics):
    """The cost of a round, by the executions in two runs that differ by so many rounds."""
    def cost(of):
        return (sum(of(many)) - sum(of(few))) / rounds
    return Round(round(cost(lambda run: run.values())),
                 round(cost(lambda run: (run[address] for address in atomics & run.keys())), 2))


def environment():
    """Without what would choose another software NPU, or another library."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("UNDERSTUDY_", "ASCEND_", "LD_"))}


def profile(bench, name, repetitions, folder):
    """Runs a round under Callgrind. The path of the profile."""
    path = folder / f"{name.replace('/', ' ')}.{repetitions}"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={path}", "--dump-instr=yes",
               "--dump-line=no", "--compress-strings=no", "--compress-pos=no", bench, name,
               str(repetitions)]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"budget: {name}: {run.stderr.strip()}")
    return path


def measure(bench, library):
    """{name: Round} of everything that BENCH can do."""
    names = subprocess.run([bench, "--list"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    disassembly = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], text=True,
                                 capture_output=True, check=True).stdout.splitlines()
    atomics = atomic_addresses(disassembly)
    few, many = REPETITIONS
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def executions(job):
            with open(profile(bench, *job, pathlib.Path(folder)), encoding="utf-8") as file:
                return executions_in(file, library)
        jobs = [(name, repetitions) for name in names for repetitions in REPETITIONS]
        runs = dict(zip(jobs, pool.map(executions, jobs)))
    if not all(runs.values()):
        sys.exit(f"budget: {bench} does not use {library}")
    return {name: per_round(runs[name, few], runs[name, many], many - few, atomics)
            for name in names}


def compiler_of(library):
    """"12.2.0", as the library itself says."""
    text = subprocess.run(["readelf", "-p", ".comment", library], capture_output=True, text=True,
                          check=True).stdout
    found = COMPILER.search(text)
    return (found[1] or f"clang {found[2]}") if found else "unknown"


# ---- Comparing ----

def is_compared(row):
    return row.get("compared", True)


def rises(measured, rows):
    """Yields a sentence for each figure that is more than the tolerance above the table, and for
    each round that only one of the two has."""
    for name, costs in measured.items():
        if name not in rows:
            yield f"{name}: is not in the table"
            continue
        if not is_compared(rows[name]):
            continue
        for figure in FIGURES:
            before, now = rows[name][figure], getattr(costs, figure)
            if now > before * TOLERANCE:
                yield f"{name}: {now:g} {figure}, and {before:g} in the table"
    for name in rows.keys() - measured.keys():
        yield f"{name}: is in the table, and bench_budget does not know it"


def updated(measured, rows, accept):
    """The rows with lower figures; with higher and new ones too if they are accepted. Those that are
    not compared are as measured."""
    result = {}
    for name, costs in measured.items():
        row = dict(rows.get(name, {}))
        for figure in FIGURES:
            now = getattr(costs, figure)
            if figure not in row or accept or now < row[figure] or not is_compared(row):
                row[figure] = now
        result[name] = row
    return result


def written(table):
    """The table as its file has it: a line for each round."""
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}"
                      for name, row in table["rounds"].items())
    return f'{{\n  "compiler": {json.dumps(table["compiler"])},\n  "rounds": {{\n{rows}\n  }}\n}}\n'


def text_of(measured, rows):
    """What was measured, as a table."""
    def line(name, *cells):
        return f"{name:<36}" + "".join(f"{cell:>8}" for cell in cells)
    yield line("round", "instr.", "goal", "before", "atomics", "goal", "before")
    for name, costs in measured.items():
        row = rows.get(name, {})
        cells = []
        for figure in FIGURES:
            goal, before = row.get("goal", {}).get(figure), row.get(figure)
            cells += ["-" if cell is None else f"{cell:g}"
                      for cell in (getattr(costs, figure), goal, before)]
        yield line(name, *cells) + ("" if is_compared(row) else "  not compared")


def reason_not_to_measure():
    """Why nothing can be counted here; nothing if it can."""
    missing = [command for command in NEEDED if shutil.which(command) is None]
    if missing:
        return f"without {', '.join(missing)}"
    if platform.machine() != MACHINE:
        return f"instructions are counted on {MACHINE}, and this is {platform.machine()}"
    if not has_membarrier():
        return "the kernel has no membarrier, without which calls have more to do"
    return None


def has_membarrier():
    """Whether src/platform/asymmetric_fence.cc finds what it needs."""
    commands = ctypes.CDLL(None).syscall(SYS_MEMBARRIER, 0, 0, 0)
    return commands > 0 and commands & MEMBARRIER_PRIVATE_EXPEDITED != 0


# ---- The command ----

def update(path, table, measured, compiler, accept):
    """Writes the table. The exit code."""
    # What another compiler made is no rise and no fall.
    rose = [] if accept else list(rises(measured, table["rounds"]))
    if not accept and compiler != table["compiler"]:
        rose = [f"the table was made with {table['compiler']}, the library with {compiler}"]
    if rose:
        print(*rose, "nothing was written; --accept writes it all the same", sep="\n")
        return 1
    table["compiler"] = compiler
    table["rounds"] = updated(measured, table["rounds"], accept)
    path.write_text(written(table), encoding="utf-8")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--accept", action="store_true")
    args = parser.parse_args()
    if args.accept and not args.update:
        parser.error("--accept goes with --update")
    if reason := reason_not_to_measure():
        print(reason)
        return SKIPPED
    library = str(args.library.resolve())
    table = json.loads(args.table.read_text(encoding="utf-8"))
    compiler = compiler_of(library)
    measured = measure(args.bench, library)
    print(*text_of(measured, table["rounds"]), sep="\n")
    if args.update:
        return update(args.table, table, measured, compiler, args.accept)
    if compiler != table["compiler"]:
        print(f"the table was made with gcc {table['compiler']}, the library with {compiler}")
        return SKIPPED
    if rose := list(rises(measured, table["rounds"])):
        print(*rose, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
