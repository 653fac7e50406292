# SPDX-License-Identifier: Apache-2.0
"""Writes the texts of the type stubs as a C++ header: one source for editors and for help().

Usage: make_docstrings.py STUBS OUTPUT
"""
import ast
import json
import pathlib
import sys


def signature(function):
    """What inspect.signature reads: the parameters as the stub has them, without their types."""
    arguments = function.args
    if arguments.args or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        sys.exit(f"{function.name}: every parameter is positional, so a / must end them")
    names = [argument.arg for argument in arguments.posonlyargs]
    for index in range(len(names) - len(arguments.defaults), len(names)):
        names[index] += "=..."
    return f"{function.name}({', '.join(names + ['/'] if names else [])})"


def constant(name, text):
    lines = "\n    ".join(json.dumps(line) for line in text.splitlines(keepends=True))
    return f"inline constexpr char {name}[] =\n    {lines};\n"


def constants(path):
    module = "acl" if path.stem == "__init__" else path.stem
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield constant(f"{module}_module", ast.get_docstring(tree))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if not ast.get_docstring(node):
                sys.exit(f"{path.name}: {node.name} has no text")
            text = f"{signature(node)}\n--\n\n{ast.get_docstring(node)}"
            yield constant(f"{module}_{node.name}", text)


def main():
    stubs, output = map(pathlib.Path, sys.argv[1:])
    parts = ["// Made of the type stubs by make_docstrings.py.", "#pragma once", ""]
    parts.append("namespace understudy::python::doc {\n")
    for path in sorted(stubs.glob("*.pyi")):
        parts.extend(constants(path))
    parts.append("}  // namespace understudy::python::doc\n")
    output.write_text("\n".join(parts), encoding="utf-8")


main()
