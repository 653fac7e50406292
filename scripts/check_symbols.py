#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what the library exports with what its headers declare: check_symbols.py LIBRARY INCLUDE

Every exported symbol is acl*, carries no version and is declared under INCLUDE/acl, and every
function declared there is exported. The SONAME is the name that clients open, and the library can
never be unloaded. No static variable of a function has a lock: a fork in the middle of its
initialization would leave the child waiting for a thread that it does not have.
"""

import pathlib
import re
import subprocess
import sys

import cpp_text

SONAME = "libascendcl.so"
# A name and "(" is a declaration; "(*" after it would be a function pointer returning that type.
DECLARATION = re.compile(r"\b(acl[A-Za-z0-9_]+)\s*\((?!\s*\*)")
# Preprocessor lines, with their continuations: macros are not declarations.
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


def readelf(option, library):
    command = ["readelf", "-W", option, str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared(include):
    """{function: "file:line"} of everything declared under include/acl."""
    functions = {}
    for path in sorted(pathlib.Path(include, "acl").rglob("*.h")):
        code = cpp_text.without_comments_and_strings(cpp_text.read(path))
        code = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)
        for match in DECLARATION.finditer(code):
            functions.setdefault(match[1], f"{path}:{cpp_text.line_of(code, match.start())}")
    return functions


def dynamic_symbols(library):
    """Each dynamic symbol, with its version if it has one, and whether it is defined."""
    for line in readelf("--dyn-syms", library).splitlines():
        # Num: Value Size Type Bind Vis Ndx Name
        fields = line.split()
        if len(fields) >= 8 and re.fullmatch(r"\d+:", fields[0]):
            yield fields[7], fields[6] != "UND"


def exported(library):
    return [symbol for symbol, is_defined in dynamic_symbols(library) if is_defined]


def check_exports(library, functions):
    """Yields a sentence for every symbol that should not be exported like this."""
    for symbol in exported(library):
        name, _, version = symbol.partition("@")
        if version:
            yield f"{library}: {name} has the version {version.strip('@')}; exports carry none"
        if not name.startswith("acl"):
            yield f"{library}: {name} is exported but is no acl* symbol"
        elif name not in functions:
            yield f"{library}: {name} is exported but no header declares it"


def check_declarations(functions, exports):
    """Yields a sentence for every declared function that is not there, and for every entry of the
    list above that is."""
    for name, place in functions.items():
        if name not in exports:
            yield f"{place}: {name} is declared but the library does not export it"


def check_dynamic_section(library):
    """Yields a sentence for every property that clients rely on and the library lacks."""
    dynamic = readelf("--dynamic", library)
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)
    if not soname or soname[1] != SONAME:
        yield f"{library}: the SONAME is {soname[1] if soname else 'missing'}, not {SONAME}"
    if not re.search(r"\(FLAGS_1\).*\bNODELETE\b", dynamic):
        yield f"{library}: not linked with -z nodelete"


def check_locks(library):
    """Yields a sentence if a static variable of a function has a lock."""
    for symbol, _ in dynamic_symbols(library):
        if symbol.startswith("__cxa_guard_acquire"):
            yield (f"{library}: a static variable of a function is initialized under a lock, which "
                   "a fork child may find taken; use constinit, or initialize it at load")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    library, include = sys.argv[1:]
    functions = declared(include)
    exports = {symbol.partition("@")[0] for symbol in exported(library)}
    problems = [*check_exports(library, functions), *check_declarations(functions, exports),
                *check_dynamic_section(library), *check_locks(library)]
    return cpp_text.report(problems, f"symbols: {len(exports)} exported")


if __name__ == "__main__":
    sys.exit(main())
