# SPDX-License-Identifier: Apache-2.0
"""understudy clean: what is left of servers goes, everything else stays."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, clean_environment
from processes import HOLDER, environment_for, holders, make_server_directory
from programs import NOBODY, until


@pytest.fixture
def abandoned(tmp_path):
    """The directory of a server whose processes have ended."""
    directory = tmp_path / "server"
    with holders(environment_for(directory, devices=1, memory="64M"), "h 2") as (holder,):
        holder.kill()
    return directory


def test_abandoned_server_is_removed(understudy, abandoned):
    run = understudy("clean", "--runtime-dir", abandoned, "--dry-run")
    assert (run.returncode, run.stdout) == (0, f"would remove {abandoned}\n")
    assert abandoned.exists()
    run = understudy("clean", "--runtime-dir", abandoned)
    assert (run.returncode, run.stdout) == (0, f"removed {abandoned}\n")
    assert not abandoned.exists()


def test_server_in_use_stays(understudy, tmp_path):
    directory = tmp_path / "server"
    with holders(environment_for(directory, devices=1, memory="64M"), "h 2") as _:
        run = understudy("clean", "--runtime-dir", directory, "--json")
        assert run.returncode == 0
        kept = json.loads(run.stdout)
        assert kept["removed"] == []
        assert kept["kept"][0]["directory"] == str(directory)
        assert "in use" in kept["kept"][0]["reason"]
        assert understudy("info").returncode == 0


def test_other_directories_stay(understudy, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir(mode=0o700)
    (plain / "ledger").write_text("accounts of 1923")
    run = understudy("clean", "--runtime-dir", plain)
    assert run.returncode == 0
    assert run.stdout.startswith("kept ")
    assert (plain / "ledger").exists()


def test_nothing_is_to_be_removed_where_nothing_is(understudy, tmp_path):
    for nowhere in (tmp_path / "nowhere", tmp_path / "no/where"):
        for option in ([], ["--dry-run"]):
            run = understudy("clean", "--runtime-dir", nowhere, *option)
            assert (run.returncode, run.stderr) == (0, "")
            assert run.stdout == f"{nowhere} does not exist; there is nothing to remove\n"
        facts = json.loads(understudy("clean", "--json", "--runtime-dir", nowhere).stdout)
        assert facts == {"removed": [], "kept": []}


def test_files_that_are_not_the_servers_stay(understudy, abandoned):
    (abandoned / "notes").write_text("mine")
    dry_run = understudy("clean", "--runtime-dir", abandoned, "--dry-run")
    assert (abandoned / "ledger").exists()
    run = understudy("clean", "--runtime-dir", abandoned)
    assert run.returncode == 1
    assert (dry_run.returncode, dry_run.stdout) == (run.returncode, run.stdout)
    assert (abandoned / "notes").read_text() == "mine"
    assert not (abandoned / "ledger").exists()


def test_a_new_server_begins_where_one_was_removed(understudy, abandoned):
    assert understudy("clean", "--runtime-dir", abandoned).returncode == 0
    with holders(environment_for(abandoned, devices=2, memory="64M"), "h 2") as _:
        assert understudy("info").returncode == 0


def test_private_servers_of_this_user_are_found(understudy):
    """Only looked at: servers of other tests are among those of this user."""
    own = make_server_directory(f"understudy-{os.geteuid()}.run-")
    foreign = make_server_directory(f"understudy-{os.geteuid()}0-")
    try:
        for directory in [own, foreign]:
            with holders(environment_for(directory, devices=1, memory="64M"), "h 2") as (holder,):
                holder.kill()
        found = json.loads(understudy("clean", "--dry-run", "--json").stdout)["removed"]
        assert own in found
        assert foreign not in found
    finally:
        shutil.rmtree(own)
        shutil.rmtree(foreign)


@pytest.mark.parametrize("end", ["", "/", "/../tmp"])
def test_private_servers_elsewhere_are_found(understudy, tmp_path, end):
    folder = tmp_path / "tmp"
    own = folder / f"understudy-{os.geteuid()}.run-abcdef"
    folder.mkdir()
    with holders(environment_for(own, devices=1, memory="64M"), "h 2") as (holder,):
        listed = understudy("ps", env={"TMPDIR": f"{folder}{end}"}).stdout
        assert str(holder.pid) in listed
        holder.kill()
    found = json.loads(understudy("clean", "--dry-run", "--json",
                                  env={"TMPDIR": f"{folder}{end}"}).stdout)["removed"]
    assert any(os.path.samefile(each, own) for each in found if os.path.exists(each))


def test_servers_of_killed_test_programs_are_found(understudy):
    """A program with a server of understudy.Server, as pytest has one, that could not remove it."""
    if not (BUILD / "python/understudy").exists():
        pytest.skip("the Python package is not built")
    source = """
import sys, understudy
server = understudy.Server(devices=1, memory="64M")
print(server.directory, flush=True)
server.run([sys.argv[1], "h", "2"])
"""
    environment = {**clean_environment(), "PYTHONPATH": str(BUILD / "python")}
    with subprocess.Popen([sys.executable, "-c", source, HOLDER], env=environment, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          start_new_session=True) as program:
        directory = program.stdout.readline().strip()
        try:
            assert f"/understudy-{os.geteuid()}.test-" in directory
            assert program.stdout.readline() == "ready\n"
            assert directory in understudy("ps").stdout
            assert "in use" in understudy("clean", "--runtime-dir", directory).stdout
        finally:
            os.killpg(program.pid, signal.SIGKILL)  # the holder, too
    try:
        until(lambda: directory in json.loads(
            understudy("clean", "--dry-run", "--json").stdout)["removed"])
    finally:
        shutil.rmtree(directory)


def test_directories_of_other_users_are_not_looked_at(understudy, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    folder = tmp_path / "tmp"
    own = folder / f"understudy-{os.geteuid()}.test-abcdef"
    own.mkdir(mode=0o700, parents=True)
    environment = {"TMPDIR": str(folder)}
    assert str(own) in understudy("clean", "--dry-run", env=environment).stdout
    os.chown(own, NOBODY, NOBODY)
    assert str(own) not in understudy("clean", "--dry-run", env=environment).stdout


def test_configured_server_is_found(understudy, abandoned):
    found = json.loads(understudy("clean", "--dry-run", "--json").stdout)["removed"]
    assert str(abandoned) in found
