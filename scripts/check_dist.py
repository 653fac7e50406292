#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks an installed tree: check_dist.py DIST

The library has no debug information of its own, and names a file that has it, where debuggers look.
Both files to be sourced lead a shell to the library, and so does the command. The tests of
`understudy conformance`, if they are there, are stripped and find the library by the environment
alone.
"""

import pathlib
import re
import subprocess
import sys

import cpp_text

SCRIPTS = ("set_env.sh", "bin/setenv.bash")


def readelf(*arguments):
    command = ["readelf", "-W", *map(str, arguments)]
    # Behind the name of a debug file stands its checksum, whose bytes are text in no encoding.
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8",
                          errors="replace").stdout


def has_debug_information(path):
    return ".debug_info" in readelf("--sections", path)


def build_id(path):
    found = re.search(r"Build ID: (\w+)", readelf("--notes", path))
    return found[1] if found else None


def check_debug_file(library):
    """Yields a sentence for everything that keeps a debugger from the debug information."""
    if has_debug_information(library):
        yield f"{library}: has debug information, which belongs into a file of its own"
    link = re.search(r"(\S+\.debug)", readelf("--string-dump=.gnu_debuglink", library))
    if not link:
        yield f"{library}: names no file with debug information"
        return
    for folder in ("debug", ".debug"):
        path = library.parent / folder / link[1]
        if not path.exists():
            yield f"{path}: is missing"
        elif not has_debug_information(path):
            yield f"{path}: has no debug information"
        elif build_id(path) != build_id(library):
            yield f"{path}: is of another build than the library"


def check_rule_tests(program):
    """Yields a sentence for everything that the tests have of the tree that they were built in."""
    if not program.exists():
        return
    if has_debug_information(program):
        yield f"{program}: has debug information"
    if re.search(r"\((RPATH|RUNPATH)\)", readelf("--dynamic", program)):
        yield f"{program}: looks for the library in a folder of its own"


def check_script(dist, script):
    """Yields a sentence if sourcing the script does not lead to the library."""
    path = dist / script
    if not path.exists():
        yield f"{path}: is missing"
        return
    command = f'. "{path}" && echo "$ASCEND_HOME_PATH" "${{LD_LIBRARY_PATH%%:*}}"'
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True,
                         env={"PATH": "/usr/bin:/bin"}, check=False)
    home = dist.resolve()
    if run.stdout.split() != [str(home), str(home / "lib64")]:
        yield f"{path}: leads to {run.stdout.strip() or run.stderr.strip() or 'nothing'}"


def check_command(dist):
    """Yields a sentence if the command does not lead to the library, or npu-smi not to it."""
    command = dist.resolve() / "bin/understudy"
    link = dist / "libexec/understudy/npu-smi"
    if link.resolve() != command:
        yield f"{link}: does not lead to {command}"
    if has_debug_information(command):
        yield f"{command}: has debug information"
    print_path = ["run", "--join", "sh", "-c", 'echo "${LD_LIBRARY_PATH%%:*}"']
    run = subprocess.run([command, *print_path], capture_output=True, text=True,
                         env={"PATH": "/usr/bin:/bin"}, check=False)
    if run.stdout.strip() != str(dist.resolve() / "lib64"):
        yield f"{command}: leads to {run.stdout.strip() or run.stderr.strip() or 'nothing'}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    dist = pathlib.Path(sys.argv[1])
    problems = [*check_debug_file(dist / "lib64/libascendcl.so")]
    problems += check_rule_tests(dist / "libexec/understudy/rule_tests")
    for script in SCRIPTS:
        problems += check_script(dist, script)
    problems += check_command(dist)
    return cpp_text.report(problems, "dist: stripped, with a debug file; scripts and command work")


if __name__ == "__main__":
    sys.exit(main())
