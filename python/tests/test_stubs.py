# SPDX-License-Identifier: Apache-2.0
"""The module, its stubs and the tables of docs/python_api.md tell the same."""
import ast
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import acl

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUBS = ROOT / "python" / "acl-stubs"
MODULES = {"acl": acl, "acl.rt": acl.rt, "acl.util": acl.util, "acl.media": acl.media}
PARTS = {"rt", "util", "media"}
ROW = re.compile(r"^\| `(\w+)\((.*)\)`(?: †)? \| `(.+)` \| (.+) \|$")


def stub_functions(module):
    """{name: definition} of a module's stub."""
    file = STUBS / ("__init__.pyi" if module == "acl" else f"{module[len('acl.'):]}.pyi")
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def table_rows():
    """Yields (module, name, parameters, result) of every row of the page."""
    module = None
    for line in (ROOT / "docs" / "python_api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = re.match(r"## `?(acl(?:\.\w+)?)", line)
            module = heading and heading[1]
        row = ROW.match(line)
        if row:
            yield module, row[1], row[2], row[3]


FUNCTIONS = [(module, name) for module in MODULES for name in stub_functions(module)]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_exactly_the_functions_of_its_stub(module):
    public = {name for name in dir(MODULES[module]) if not name.startswith("_")}
    if module == "acl":
        assert PARTS <= public
        public -= PARTS
    assert public == set(stub_functions(module))


@pytest.mark.parametrize("module, name", FUNCTIONS)
def test_a_signature_is_that_of_the_stub(module, name):
    stub = stub_functions(module)[name]
    parameters = inspect.signature(getattr(MODULES[module], name)).parameters.values()
    assert [parameter.name for parameter in parameters] == [a.arg for a in stub.args.posonlyargs]
    assert all(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters)
    optional = [parameter for parameter in parameters if parameter.default is not parameter.empty]
    assert len(optional) == len(stub.args.defaults)


@pytest.mark.parametrize("module, name", FUNCTIONS)
def test_a_function_takes_as_many_arguments_as_its_stub_says(module, name):
    stub = stub_functions(module)[name]
    count = len(stub.args.posonlyargs)
    how = "at most" if stub.args.defaults else "exactly"
    expected = f"function takes {how} {count} argument{'s' * (count != 1)} ({count + 1} given)"
    with pytest.raises(TypeError) as caught:
        getattr(MODULES[module], name)(*[0] * (count + 1))
    assert str(caught.value) == f"{module}.{name}: {expected}"


@pytest.mark.parametrize("module, name", FUNCTIONS)
def test_a_docstring_is_that_of_the_stub(module, name):
    function = getattr(MODULES[module], name)
    assert inspect.getdoc(function) == ast.get_docstring(stub_functions(module)[name])
    assert function.__module__ == module


def test_the_tables_name_every_function_and_no_other():
    assert sorted((module, name) for module, name, *_ in table_rows()) == sorted(FUNCTIONS)


@pytest.mark.parametrize("module, name, parameters, result", table_rows())
def test_a_row_of_the_tables_is_the_stub(module, name, parameters, result):
    stub = stub_functions(module)[name]
    optional = parameters.startswith("[")
    names = [part.strip() for part in parameters.strip("[]").split(",") if part.strip()]
    assert names == [argument.arg for argument in stub.args.posonlyargs]
    assert optional == bool(stub.args.defaults)
    returns = ast.unparse(stub.returns) if hasattr(ast, "unparse") else None
    if returns is not None and result.startswith("("):
        assert returns.startswith("tuple[")
        assert returns.count(",") == result.count(",")
    elif returns is not None:
        assert not returns.startswith("tuple[")


def test_a_type_checker_accepts_the_stubs_and_a_program_that_uses_them(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(
        "import acl\n"
        "from acl import util\n"
        "address, ret = acl.rt.malloc(64, 0)\n"
        "number: int = address + ret\n"
        "data: bytes = util.ptr_to_bytes(0, 0)\n"
        "text: str = acl.get_soc_name() or ''\n"
    )
    folder = tmp_path / "acl"
    folder.symlink_to(STUBS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"),
         str(program)],
        cwd=tmp_path, stdout=subprocess.PIPE, universal_newlines=True,
    )
    assert done.returncode == 0, done.stdout
