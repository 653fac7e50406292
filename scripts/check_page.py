#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the timeline page: check_page.py PROGRAMS

The committed page is what its sources build; its tests pass; and in Chromium it shows recordings of
real programs, which are those of a build, in the folder PROGRAMS. Writes to page/node_modules and
folders that are gone at the end. Ends with 77 and a last line that says why, if npm's packages
cannot be had.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import cpp_text

PAGE = cpp_text.ROOT / "page"
SKIPPED = 77
# What npm says where the registry cannot be reached. A lock file that it refuses is another thing.
UNREACHABLE = re.compile(r"\b(ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|"
                         r"ERR_SOCKET_TIMEOUT|E40[37]|E5\d\d|network)\b")
RECORDED = {"demo": ["demo"], "overlap": ["overlap"], "weights": ["weights"],
            "storm": ["command_recorded_storm", "3000", "1"]}


class Skip(Exception):
    """Why nothing can be said."""


def run(*command, env=None, may_fail=False):
    """Runs a command in the folder of the page; what it prints is printed, and returned."""
    done = subprocess.run([str(word) for word in command], cwd=PAGE, env=env, text=True, check=False,
                          encoding="utf-8", errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(done.stdout, end="", flush=True)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"{' '.join(map(str, command))}: ended with {done.returncode}")
    return done


def environment(home):
    """That of this process, without what configures the library. npm and Chromium keep things in
    the home folder, which a user may not have."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("UNDERSTUDY_", "ASCEND_"))}
    env["npm_config_update_notifier"] = "false"
    if not os.access(env.get("HOME", "/nonexistent"), os.W_OK):
        env["HOME"] = str(home)
    return env


def check_node():
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    if int(re.match(r"v(\d+)", version.stdout)[1]) < 18:
        raise Skip(f"node {version.stdout.strip()} is older than 18")


def has_packages():
    """Whether what the lock file names is installed."""
    installed = PAGE / "node_modules/.package-lock.json"
    lock = PAGE / "package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime


def install(env):
    if has_packages():
        return
    if not os.access(PAGE, os.W_OK):
        raise Skip(f"{PAGE} cannot be written")
    done = run("npm", "ci", "--ignore-scripts", env=env, may_fail=True)
    if done.returncode == 0:
        return
    if UNREACHABLE.search(done.stdout):
        raise Skip("npm's packages cannot be reached")
    sys.exit("npm ci: failed")


def check_built_page(folder, env):
    run("npx", "--no-install", "tsc", "--noEmit", env=env)
    run("npx", "--no-install", "vite", "build", "--emptyOutDir", "--outDir", folder, env=env)
    built, committed = folder / "timeline.html", PAGE / "dist/timeline.html"
    if built.read_bytes() != committed.read_bytes():
        sys.exit(f"{committed}: is not what its sources build; npm run build makes it anew")


def record(programs, folder, env):
    """The pages of recordings of real programs."""
    pages = []
    for name, words in RECORDED.items():
        recording, page = folder / f"{name}.recording", folder / f"{name}.html"
        run(programs / "understudy", "run", "--trace", recording, "--trace-stacks", "on", "--",
            programs / words[0], *words[1:], env=env)
        run(programs / "understudy", "trace", recording, "--html", page, env=env)
        pages.append(page)
    return pages


def check(programs, folder):
    env = environment(folder)
    check_node()
    install(env)
    check_built_page(folder / "dist", env)
    run("npx", "--no-install", "vitest", "run", env=env)
    pages = [word for page in record(programs, folder, env) for word in ("--page", page)]
    done = run("node", "tests/browser.mjs", "--calls", "20000", *pages, env=env, may_fail=True)
    if done.returncode == SKIPPED:
        raise Skip(done.stdout.splitlines()[-1])
    return done.returncode


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    with tempfile.TemporaryDirectory(prefix="understudy-page-") as folder:
        try:
            return check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        except Skip as reason:
            print(reason)
            return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
