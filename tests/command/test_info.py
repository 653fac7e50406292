# SPDX-License-Identifier: Apache-2.0
"""understudy info and ps: what they show of servers that are there, or not."""

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import time

import pytest

from conftest import COMMAND
from processes import (HOLDER, MIB, environment_for, holders, make_server_directory, open_terminal,
                       ordinary_user)

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture
def environment(tmp_path):
    """Of the processes of a small server, which the fixture `understudy` looks at."""
    return environment_for(tmp_path / "server", devices=2, memory="1G", soc="Ascend910B1")


def info_json(understudy, *arguments):
    run = understudy("info", "--json", *arguments)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["server"]


def test_no_server_is_one_sentence(understudy, tmp_path):
    run = understudy("info")
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr == f"understudy: there is no server at {tmp_path}/server\n"


def test_no_server_in_json(understudy):
    run = understudy("info", "--json")
    assert run.returncode == 1
    assert json.loads(run.stdout) == {"server": None}


def test_wrong_configuration_is_named(understudy):
    run = understudy("info", env={"UNDERSTUDY_DEVICES": "many"})
    assert run.returncode == 1
    assert "many" in run.stderr


def test_figures_of_processes(understudy, environment, tmp_path):
    with holders(environment, "h 20 n 64 f 40 s 3", "d 1 t 8 p 4 b 2") as (first, second):
        server = info_json(understudy)
        assert server["directory"] == str(tmp_path / "server")
        assert (server["product"], server["soc"]) == ("a2", "Ascend910B1")
        assert server["memory"] == 1 << 30
        assert [device["huge"]["used"] for device in server["devices"]] == [20 * MIB, 8 * MIB]
        assert server["devices"][0]["normal"]["used"] >= 64 << 10
        assert (server["devices"][1]["normal"]["total"] + server["devices"][1]["huge"]["total"]
                == 1 << 30)
        processes = {process["pid"]: process for process in server["processes"]}
        assert set(processes) == {first.pid, second.pid}
        mine = processes[first.pid]
        assert mine["program"] == HOLDER.name[:15]
        assert [use["device"] for use in mine["devices"]] == [0]
        assert mine["devices"][0]["huge"] == 20 * MIB
        assert mine["devices"][0]["peak"] >= 60 * MIB
        assert mine["devices"][0]["allocations"] >= 3
        assert mine["busy_streams"] == 0
        assert mine["streams"] >= 3
        theirs = processes[second.pid]
        assert [use["huge"] for use in theirs["devices"] if use["device"] == 1] == [8 * MIB]
        host = theirs["host_memory"]
        assert host["small_pages"] + host["collapsed"] + host["hugetlb"] >= 8 * MIB
        assert host["page_locked"] >= 4 * MIB
        assert theirs["busy_streams"] == 2


def test_text_has_the_same_figures_and_no_control_characters(understudy, environment):
    with holders(environment, "h 20 s 1") as (holder,):
        run = understudy("info")
    assert run.returncode == 0
    assert run.stderr == ""
    assert not CONTROL.search(run.stdout)
    assert "2 devices, Ascend910B1 (Atlas A2), 1 GiB each" in run.stdout
    assert re.search(rf"^ *{holder.pid}  {HOLDER.name[:15]} +0 +20 MiB +20 MiB +- +20 MiB +1$",
                     run.stdout, re.MULTILINE), run.stdout


def test_processes_that_died_are_gone(understudy, environment):
    with holders(environment, "h 20", "h 40") as (first, second):
        first.kill()
        server = info_json(understudy)
        assert [process["pid"] for process in server["processes"]] == [second.pid]
        assert server["devices"][0]["huge"]["used"] == 40 * MIB
        second.kill()
        run = understudy("info")
        assert run.returncode == 1
        assert "no process uses the server" in run.stderr


def test_stopped_process_is_shown(understudy, environment):
    with holders(environment, "h 20") as (holder,):
        os.kill(holder.pid, 19)
        try:
            assert info_json(understudy)["processes"][0]["pid"] == holder.pid
        finally:
            os.kill(holder.pid, 18)


def test_directory_by_option(understudy, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    with holders(environment_for(elsewhere, devices=1), "h 2") as _:
        assert understudy("info").returncode == 1
        assert info_json(understudy, "--runtime-dir", elsewhere)["directory"] == str(elsewhere)


def test_damaged_ledgers_are_survived(understudy, environment, tmp_path):
    with holders(environment, "h 2") as _:
        pass
    ledger = tmp_path / "server/ledger"
    whole = ledger.read_bytes()
    for content in [b"", b"x", whole[:1000], whole[:20000], bytes(1 << 20), os.urandom(1 << 16)]:
        ledger.write_bytes(content)
        run = understudy("info")
        assert run.returncode == 1
        assert len(run.stderr.splitlines()) == 1, run.stderr
    ledger.write_bytes(whole[:8] + b"\x63\0\0\0" + whole[12:])
    assert "version 99" in understudy("info").stderr


def test_watch_repeats_until_it_is_ended(environment):
    with holders(environment, "h 2") as _:
        with subprocess.Popen([COMMAND, "info", "--json", "--watch", "0.05"], env=environment,
                              text=True, stdout=subprocess.PIPE) as watch:
            lines = [watch.stdout.readline() for _ in range(3)]
            watch.terminate()
    assert all(json.loads(line)["server"]["devices"] for line in lines)


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "1e99"])
def test_watch_refuses_nonsense(understudy, seconds):
    assert understudy("info", f"--watch={seconds}").returncode == 2


def test_on_a_terminal_watch_clears_the_screen(environment):
    with holders(environment, "h 2") as _:
        ours, theirs = open_terminal()
        with subprocess.Popen([COMMAND, "info", "--watch", "0.05"], env=environment, stdin=theirs,
                              stdout=theirs, stderr=theirs) as watch:
            os.close(theirs)
            seen = b""
            while seen.count(b"\x1b[H") < 2:
                assert select.select([ours], [], [], 60)[0]
                seen += os.read(ours, 4096)
            watch.terminate()
        os.close(ours)
    assert b"Server at" in seen


def test_nothing_is_written(environment, tmp_path):
    """As from a read-only directory: the command needs no place of its own."""
    with holders(environment, "h 2") as _:
        before = sorted(os.listdir(tmp_path / "server"))
        empty = tmp_path / "empty"
        empty.mkdir()
        empty.chmod(0o500)
        run = subprocess.run([COMMAND, "info"], env={**environment, "HOME": "/nonexistent"},
                             cwd=empty, capture_output=True, check=False)
        assert run.returncode == 0, run.stderr
        assert os.listdir(empty) == []
        assert sorted(os.listdir(tmp_path / "server")) == before


def test_as_an_ordinary_user():
    user = ordinary_user()
    if user is None:
        pytest.skip("an ordinary user cannot reach the build or /dev/shm")
    directory = make_server_directory("understudy-test-")
    if user:
        os.chown(directory, user["user"], user["group"])
    try:
        environment = environment_for(directory + "/server", devices=1, memory="64M")
        with holders(environment, "h 2", **user) as (holder,):
            run = subprocess.run([COMMAND, "info", "--json"], env=environment, text=True,
                                 capture_output=True, check=False, **user)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["server"]["processes"][0]["pid"] == holder.pid
    finally:
        shutil.rmtree(directory)


def test_with_a_hundred_processes(environment, record_property):
    """The limit of 50 ms that users are told is printed; what fails the test is far beyond."""
    with holders(environment, *["h 2"] * 100) as started:
        command = [COMMAND, "info", "--json"]
        times = []
        for _ in range(5):
            begin = time.monotonic()
            output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
            times.append(time.monotonic() - begin)
        assert len(json.loads(output)["server"]["processes"]) == len(started)
    record_property("milliseconds", min(times) * 1000)
    print(f"info with 100 processes: {min(times) * 1000:.1f} ms")
    assert min(times) < 1


def test_ps_lists_the_processes_of_private_servers(understudy):
    """In /dev/shm, where `understudy run` makes them, besides the one that is configured."""
    private = make_server_directory(f"understudy-{os.geteuid()}.run-")
    try:
        with contextlib.ExitStack() as stack:
            (first,) = stack.enter_context(holders(environment_for(private), "h 20"))
            run = understudy("ps")
            assert run.returncode == 0
            assert re.search(rf"^ *{first.pid}  .* 20 MiB .* {private}$", run.stdout, re.MULTILINE)
            servers = json.loads(understudy("ps", "--json").stdout)["servers"]
            assert first.pid in [process["pid"] for server in servers
                                 for process in server["processes"]]
    finally:
        shutil.rmtree(private)


def test_ps_knows_the_configured_server(understudy, environment):
    with holders(environment, "h 20") as (holder,):
        assert str(holder.pid) in understudy("ps").stdout
