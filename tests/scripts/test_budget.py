# SPDX-License-Identifier: Apache-2.0
"""scripts/budget.py counts the instructions and atomics of the library alone, fails what rises by
more than its tolerance, and writes what falls."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import budget  # noqa: E402
from budget import Round  # noqa: E402

LIBRARY = "/build/lib64/libascendcl.so"
PROFILE = f"""# callgrind format
version: 1
positions: instr
events: Ir
summary: 1000

ob=/build/bin/bench_budget
fn=main
0x1000 7
cob={LIBRARY}
cfn=aclrtMemcpy
calls=3 0x2000
0x1004 600

ob={LIBRARY}
fn=aclrtMemcpy
0x2000 3
0x2004 3
cob=/lib/libc.so.6
cfn=memcpy
calls=3 0x9000
0x2008 300
0x2008 3
fn=inside
0x2004 4

ob=/lib/libc.so.6
fn=memcpy
0x2000 300

totals: 1000
"""
DISASSEMBLY = """
0000000000002000 <aclrtMemcpy>:
    2000:	push   %rbx
    2004:	lock cmpxchg %ecx,(%rdx)
    2008:	xchg   %al,0x10(%rdi)
    200a:	xchg   %ax,%ax
    200c:	xchg   %rax,%rdx
    2010:	lock orq $0x0,(%rsp)
    2016:	cs lock xadd %eax,0x8(%rdi)
    201c:	call   2100 <block_that_is_xchg>
"""


def executions():
    return budget.executions_in(PROFILE.splitlines(keepends=True), LIBRARY)


def rows(**compared):
    return {"copy": {"instructions": 100, "atomics": 2,
                     "goal": {"instructions": 80, "atomics": 1}, **compared}}


def table(path, compiler="12.2.0", **compared):
    path.write_text(json.dumps({"compiler": compiler, "rounds": rows(**compared)}))
    return json.loads(path.read_text())


def test_counts_what_the_library_executes_and_not_what_it_calls():
    assert executions() == {0x2000: 3, 0x2004: 7, 0x2008: 3}


def test_atomics_are_locked_instructions_and_exchanges_with_memory():
    assert budget.atomic_addresses(DISASSEMBLY.splitlines()) == {0x2004, 0x2008, 0x2010, 0x2016}


def test_a_round_costs_what_two_runs_differ_by():
    few = {0x2000: 105, 0x2004: 12}
    many = {0x2000: 305, 0x2004: 32, 0x2008: 1}
    assert budget.per_round(few, many, 20, {0x2004, 0x2008}) == Round(11, 1.05)


def test_what_is_within_the_tolerance_does_not_rise():
    assert not list(budget.rises({"copy": Round(102, 2.04)}, rows()))


@pytest.mark.parametrize("costs, sentence", [
    (Round(103, 2), "copy: 103 instructions, and 100 in the table"),
    (Round(100, 3), "copy: 3 atomics, and 2 in the table")])
def test_what_is_above_the_tolerance_is_named(costs, sentence):
    assert list(budget.rises({"copy": costs}, rows())) == [sentence]


def test_a_round_that_is_not_compared_may_rise():
    assert not list(budget.rises({"copy": Round(1000, 20)}, rows(compared=False)))


def test_a_round_that_one_side_does_not_know_is_named():
    assert list(budget.rises({"set": Round(1, 0)}, rows())) == [
        "set: is not in the table", "copy: is in the table, and bench_budget does not know it"]


def test_update_writes_what_fell_and_keeps_the_rest(tmp_path):
    path = tmp_path / "budget.json"
    assert budget.update(path, table(path), {"copy": Round(90, 2.02)}, "12.2.0", False) == 0
    assert json.loads(path.read_text()) == {
        "compiler": "12.2.0",
        "rounds": {"copy": {"instructions": 90, "atomics": 2,
                            "goal": {"instructions": 80, "atomics": 1}}}}


def test_update_writes_rounds_that_are_not_compared_as_they_are():
    row = budget.updated({"copy": Round(110, 3)}, rows(compared=False), accept=False)["copy"]
    assert (row["instructions"], row["atomics"]) == (110, 3)


def test_update_refuses_what_rose_unless_it_is_accepted(tmp_path, capsys):
    path = tmp_path / "budget.json"
    before = table(path)
    measured = {"copy": Round(110, 1)}
    assert budget.update(path, table(path), measured, "12.2.0", False) == 1
    assert "copy: 110 instructions, and 100 in the table" in capsys.readouterr().out
    assert json.loads(path.read_text()) == before
    assert budget.update(path, table(path), measured, "12.2.0", True) == 0
    row = json.loads(path.read_text())["rounds"]["copy"]
    assert (row["instructions"], row["atomics"]) == (110, 1)


def test_update_refuses_figures_of_another_compiler_unless_they_are_accepted(tmp_path):
    path = tmp_path / "budget.json"
    before = table(path)
    assert budget.update(path, table(path), {"copy": Round(90, 1)}, "14.1.0", False) == 1
    assert json.loads(path.read_text()) == before
    assert budget.update(path, table(path), {"copy": Round(90, 1)}, "14.1.0", True) == 0
    assert json.loads(path.read_text())["compiler"] == "14.1.0"


def test_the_table_in_the_tree_is_written_as_update_writes_it():
    text = (pathlib.Path(__file__).resolve().parents[2] / "bench/budget/budget.json").read_text()
    table = json.loads(text)
    assert budget.written(table) == text
    for name, row in table["rounds"].items():
        assert set(budget.FIGURES) <= set(row) <= {*budget.FIGURES, "goal", "compared"}, name
