# SPDX-License-Identifier: Apache-2.0
"""The command as npu-smi: by a link of that name, in the layout that its readers expect."""

import re
import subprocess

import pytest

from conftest import COMMAND
from processes import environment_for, holders


@pytest.fixture
def npu_smi(tmp_path):
    """npu_smi(*arguments, **settings): runs the link to its end."""
    link = tmp_path / "npu-smi"
    link.symlink_to(COMMAND)

    def run(*arguments, **settings):
        environment = environment_for(tmp_path / "server", **settings)
        return subprocess.run([link, *arguments], env=environment, text=True, capture_output=True,
                              check=False, timeout=60)
    return run


def values_of(text):
    """{name: value} of lines `name : value`."""
    return dict(re.findall(r"^\t(.*?) +: (.*)$", text, re.MULTILINE))


def rows_of(text):
    """The cells of the rows of the table that have three."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.count("|") == 4]


def test_overview_without_a_server_shows_idle_devices(npu_smi):
    run = npu_smi("info", devices=2)
    assert run.returncode == 0, run.stderr
    assert len({len(line) for line in run.stdout.splitlines()}) == 1
    assert re.search(r"\| npu-smi understudy-\d+\.\d+\.\d+ +Version: 26\.0\.RC1 ", run.stdout)
    rows = rows_of(run.stdout)
    assert rows[0] == ["NPU   Name", "Health", "Power(W)    Temp(C)           Hugepages-Usage(page)"]
    assert rows[1] == ["Chip", "Bus-Id", "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)"]
    assert [row[0].split() for row in rows[2:]] == [["0", "910B3"], ["0"], ["1", "910B3"], ["0"]]
    assert rows[2][1] == "OK"
    assert re.fullmatch(r"[0-9A-F]{4}:[0-9A-F]{2}:00\.0", rows[3][1])
    assert re.fullmatch(r"0 +0 +/ 0 +0 +/ 65536", rows[3][2])
    assert run.stdout.count("No running processes found in NPU") == 2


def test_idle_devices_use_what_they_use_when_idle(npu_smi, tmp_path):
    settings = {"devices": 1, "memory": "1G", "idle_usage": "100M"}
    idle = npu_smi("info", **settings).stdout
    assert re.search(r"0 +0 +/ 0 +100 +/ 1024 *\|", idle)
    with holders(environment_for(tmp_path / "server", **settings), "h 2") as _:
        assert re.search(r"0 +0 +/ 0 +102 +/ 1024 *\|", npu_smi("info", **settings).stdout)


def test_overview_shows_use_and_processes(npu_smi, tmp_path):
    environment = environment_for(tmp_path / "server", devices=2, memory="1G")
    with holders(environment, "d 1 h 300") as (holder,):
        run = npu_smi("info", devices=2, memory="1G")
    assert re.search(r"0 +0 +/ 0 +300 +/ 1024 *\|", run.stdout)
    assert re.search(rf"^\| 1 +0 +\| {holder.pid} +\| command_holder +\| 300 +\|$", run.stdout,
                     re.MULTILINE)
    assert "No running processes found in NPU 0" in run.stdout
    assert "No running processes found in NPU 1" not in run.stdout


def test_server_counts_and_not_the_configuration(npu_smi, tmp_path):
    with holders(environment_for(tmp_path / "server", devices=3, memory="1G"), "h 2") as _:
        assert values_of(npu_smi("info", "-l", devices=8).stdout)["Total Count"] == "3"


def test_cards_of_two_chips(npu_smi):
    run = npu_smi("info", product="a3", devices=4)
    rows = rows_of(run.stdout)
    assert rows[1][0] == "Chip  Phy-ID"
    assert [row[0].split() for row in rows[2:]] == [
        ["0", "Ascend910"], ["0", "0"], ["0", "Ascend910"], ["1", "1"],
        ["1", "Ascend910"], ["0", "2"], ["1", "Ascend910"], ["1", "3"]]
    assert values_of(npu_smi("info", "-l", product="a3", devices=4).stdout)["Total Count"] == "2"
    mapped = npu_smi("info", "-m", product="a3", devices=4).stdout.splitlines()
    assert mapped[0].split() == ["NPU", "ID", "Chip", "ID", "Chip", "Logic", "ID", "Chip", "Phy-ID",
                                 "Chip", "Name"]
    assert mapped[4].split() == ["1", "1", "3", "3", "Ascend910"]
    usages = npu_smi("info", "-t", "usages", "-i", "1", "-c", "1", product="a3", devices=4)
    assert usages.stdout.count("Chip ID") == 1
    assert npu_smi("info", "-t", "usages", "-i", "1", product="a3",
                   devices=4).stdout.count("Chip ID") == 2


def test_products_without_hbm(npu_smi):
    run = npu_smi("info", product="inf", devices=1)
    rows = rows_of(run.stdout)
    assert "HBM" not in run.stdout
    assert rows[2][0].split() == ["0", "310P3"]
    values = values_of(npu_smi("info", "-t", "memory", "-i", "0", product="inf").stdout)
    assert int(values["DDR Capacity(MB)"]) > 0


def test_list(npu_smi):
    text = npu_smi("info", "-l", devices=2).stdout
    assert values_of(text)["Total Count"] == "2"
    assert re.findall(r"NPU ID +: (\d)", text) == ["0", "1"]
    assert values_of(text)["Chip Count"] == "1"


def test_map(npu_smi):
    lines = npu_smi("info", "-m", devices=2).stdout.splitlines()
    assert re.split(r" {2,}", lines[0].strip()) == ["NPU ID", "Chip ID", "Chip Logic ID",
                                                    "Chip Name"]
    assert re.split(r" {2,}", lines[2].strip()) == ["1", "0", "1", "Ascend 910B3"]


def test_typed_figures(npu_smi, tmp_path):
    with holders(environment_for(tmp_path / "server", devices=1, memory="1G"), "h 512") as _:
        usages = values_of(npu_smi("info", "-t", "usages", "-i", "0").stdout)
        memory = values_of(npu_smi("info", "-t", "memory", "-i", "0", "-c", "0").stdout)
        board = values_of(npu_smi("info", "-t", "board", "-i", "0").stdout)
    assert (usages["HBM Capacity(MB)"], usages["HBM Usage Rate(%)"]) == ("1024", "50")
    assert usages["Aicore Usage Rate(%)"] == "0"
    assert memory["HBM Capacity(MB)"] == "1024"
    assert memory["Chip ID"] == "0"
    assert board["Model"] == "Ascend910B3"
    assert board["Chip Count"] == "1"


@pytest.mark.parametrize("arguments", [
    [], ["dance"], ["info", "-t", "memory"], ["info", "-t", "colour", "-i", "0"],
    ["info", "-t", "memory", "-i", "99"], ["info", "-t", "memory", "-i", "0", "-c", "7"],
    ["info", "-t", "memory", "-i", "-1"], ["info", "-t", "memory", "-i", "x"], ["info", "-x"]])
def test_wrong_usage(npu_smi, arguments):
    run = npu_smi(*arguments)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("npu-smi") and run.stderr.count("\n") == 1


def test_wrong_configuration_is_named(npu_smi):
    run = npu_smi("info", product="b7")
    assert run.returncode == 1
    assert "b7" in run.stderr


def test_version(npu_smi):
    for option in ("-v", "--version"):
        run = npu_smi(option)
        assert (run.returncode, run.stdout) == (0, "npu-smi version: 26.0.RC1\n")
    assert npu_smi("-v", driver="1.0").returncode == 1


def test_version_is_the_drivers(npu_smi):
    for name, version in (("newest", "26.0.RC1"), ("25.5.0", "25.5.0"), ("25.0.RC1", "25.0.RC1")):
        assert npu_smi("-v", driver=name).stdout == f"npu-smi version: {version}\n"
        overview = npu_smi("info", driver=name).stdout
        assert re.search(rf"Version: {re.escape(version)} +\|$", overview, re.MULTILINE)
        assert len({len(line) for line in overview.splitlines()}) == 1
        board = npu_smi("info", "-t", "board", "-i", "0", driver=name).stdout
        assert values_of(board)["Software Version"] == version
