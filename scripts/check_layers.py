#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which layer includes which.

The layers and what each USES are read from src/CMakeLists.txt; a layer may include itself and
every layer below it. Prints one sentence per broken rule and fails if there is any. Long files in
src/ are only mentioned.
"""

import re
import sys

import cpp_text

# Layers that may not be reached even though they lie below: capi goes through runtime.
SKIPPED = {"capi": {"platform"}}
PUBLIC_HEADER_LAYERS = {"capi"}
PUBLISHED_SPELLING_LAYERS = {"capi"}
SYSTEM_HEADER_LAYERS = {"platform"}
THIRD_PARTY_LAYERS = {"device", "runtime"}
# What the layer below all others needs of the system: threads cannot be cancelled while they nap.
SYSTEM_HEADERS_OF_BASE = {"src/base/no_cancel.cc": {"<pthread.h>"}}

SYSTEM_HEADER = re.compile(
    r"<((sys|linux|asm|netinet|arpa)/.*|"
    r"(unistd|fcntl|pthread|sched|signal|dlfcn|errno|poll|spawn|semaphore|syscall)\.h|"
    r"cerrno|csignal)>")
THIRD_PARTY_HEADER = re.compile(r"<(toml\+\+|nlohmann)/")
PUBLIC_HEADER = re.compile(r'["<](acl|understudy)/')
PUBLISHED_SPELLING = re.compile(r"\b(acl(?:rt|sys)?[A-Z]\w*|ACL_\w+)")
# Folders that see the library as a user does, and the folder their "..." includes start from.
BLACK_BOXES = {"tests/rules": "tests", "tests/process": "tests", "tests/stress": "tests",
               "tests/regress": "tests", "tests/listener": "tests", "tests/support": "tests",
               "examples": "examples", "bench": "bench", "python/src": "python/src"}
# What the command sees of src/: facts about the machine and the products, a server from outside, how
# a recording is written down, and where device addresses are.
SEEN_BY_TOOLS = re.compile(
    r"(base|platform|device)/|server/server_(view|removal)\.h$|observe/recording_format\.h$"
    r"|memory/address_layout\.h$")
# Made by the build.
GENERATED = {"docstrings.h", "rule_table.inc", "timeline_template.inc"}
# One that measures what no published function does alone.
SEES_INSIDE = ("bench/ledger/",)
LONG_FILE = 400


def read_layers():
    """{layer: set of the layers it may include}, from the us_add_layer lines."""
    text = re.sub(r"#.*", "", cpp_text.read(cpp_text.ROOT / "src/CMakeLists.txt"))
    reach = {}
    for name, rest in re.findall(r"\bus_add_layer\(\s*(\w+)([^)]*)\)", text):
        uses = re.search(r"\bUSES((?:\s+[a-z]\w*)+)", rest)
        reach[name] = {name}
        for used in uses[1].split() if uses else []:
            reach[name] |= {used} | reach.get(used, set())
    return {name: below - SKIPPED.get(name, set()) for name, below in reach.items()}


def check_include(layer, reach, name):
    """What is wrong with this include in this layer, or None."""
    if PUBLIC_HEADER.match(name):
        return None if layer in PUBLIC_HEADER_LAYERS else f"public headers are not for {layer}/"
    if name.startswith("<"):
        if SYSTEM_HEADER.match(name) and layer not in SYSTEM_HEADER_LAYERS:
            return f"system headers belong in platform/, not in {layer}/"
        if THIRD_PARTY_HEADER.match(name) and layer not in THIRD_PARTY_LAYERS:
            return f"third-party headers belong in device/ and runtime/, not in {layer}/"
        return None
    path = name.strip('"')
    if path.endswith(".cc"):
        return "a .cc file is compiled, not included"
    first = path.split("/")[0]
    if "/" not in path or first not in reach:
        return 'project headers are written as "<layer>/<file>"'
    if first not in reach[layer]:
        return f"{layer}/ may not include {first}/"
    return None


def check_layer_file(path, reach):
    """Yields the problems of one file of src/."""
    layer = path.relative_to(cpp_text.ROOT / "src").parts[0]
    where = cpp_text.relative(path)
    if layer not in reach:
        yield f"{where}:1: {layer} is not a layer of src/CMakeLists.txt"
        return
    text = cpp_text.read(path)
    for line, name in cpp_text.includes(text):
        if name in SYSTEM_HEADERS_OF_BASE.get(where, set()):
            continue
        problem = check_include(layer, reach, name)
        if problem:
            yield f"{where}:{line}: includes {name}: {problem}"
    if layer not in PUBLISHED_SPELLING_LAYERS:
        code = cpp_text.without_comments_and_strings(text)
        for match in PUBLISHED_SPELLING.finditer(code):
            line = cpp_text.line_of(code, match.start())
            yield f"{where}:{line}: {match[1]} is a published spelling; those stop at capi/"


def check_black_box_file(path, root):
    """Yields the problems of one file that must not see the inside of the library."""
    where = cpp_text.relative(path)
    if str(where).startswith(SEES_INSIDE):
        return
    for line, name in cpp_text.includes(cpp_text.read(path)):
        inner = name[1:-1]
        if inner.startswith(("acl/", "understudy/")) or inner in GENERATED:
            continue
        if name.startswith("<"):
            inside = (cpp_text.ROOT / "src" / inner).is_file()
        else:
            own = (path.parent / inner, cpp_text.ROOT / root / inner)
            roots = (cpp_text.ROOT / "src", cpp_text.ROOT / "include")
            inside = not any(place.is_file() and not any(
                top in place.resolve().parents for top in roots) for place in own)
        if inside:
            yield (f"{where}:{line}: includes {name}: only public headers, the system's, gtest, "
                   '"support/..." and files of its own are allowed here')


def check_tool_file(path):
    """Yields the problems of one file of the command."""
    where = cpp_text.relative(path)
    for line, name in cpp_text.includes(cpp_text.read(path)):
        inner = name[1:-1]
        own = inner.startswith(("acl/", "tools/")) or inner in GENERATED
        if name.startswith('"') and not own and not SEEN_BY_TOOLS.match(inner):
            yield (f"{where}:{line}: includes {name}: the command sees base, platform, device, "
                   "the server's view and removal, the format of recordings, and address_layout.h")


def long_files():
    """Yields a remark for every file of src/ that is worth a hard look."""
    for path in cpp_text.sources("src"):
        lines = cpp_text.read(path).count("\n")
        if lines > LONG_FILE:
            yield f"{cpp_text.relative(path)}:1: warning: {lines} lines; look hard past {LONG_FILE}"


def main():
    reach = read_layers()
    problems = [p for path in cpp_text.sources("src") for p in check_layer_file(path, reach)]
    for folder, root in BLACK_BOXES.items():
        for path in cpp_text.sources(folder):
            problems += check_black_box_file(path, root)
    for path in cpp_text.sources("tools"):
        problems += check_tool_file(path)
    for remark in long_files():
        print(remark)
    return cpp_text.report(problems, f"layers: {len(reach)} layers, every include is allowed")


if __name__ == "__main__":
    sys.exit(main())
