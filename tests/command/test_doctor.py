# SPDX-License-Identifier: Apache-2.0
"""understudy doctor: what it finds here is what there is, and wrong limits are seen."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess

import pytest
from conftest import COMMAND, clean_environment
from processes import environment_for, holders
from programs import JOIN, as_ordinary_user, in_namespaces, python, start

VERDICTS = {"ok", "could be better", "problem"}


def checks_of(output):
    return {check["name"]: check for check in json.loads(output)["checks"]}


@pytest.fixture
def checks(understudy):
    run = understudy("doctor", "--json")
    assert run.returncode in (0, 1)
    return checks_of(run.stdout)


def with_limit(kind, value):
    """The checks, as a process with another limit sees them."""
    hard = resource.getrlimit(kind)[1]
    run = start("doctor", "--json", preexec_fn=lambda: resource.setrlimit(kind, (value, hard)))
    return checks_of(run.communicate(timeout=60)[0])


def test_every_check_says_what_it_means(checks):
    assert len(checks) >= 20
    for name, check in checks.items():
        assert check["verdict"] in VERDICTS, name
        assert check["found"] and check["meaning"].endswith("."), name
        assert bool(check["command"]) <= (check["verdict"] != "ok"), name


def test_verdict_is_the_exit_status(understudy):
    run = understudy("doctor", "--json")
    problems = sum(check["verdict"] == "problem" for check in checks_of(run.stdout).values())
    assert json.loads(run.stdout)["problems"] == problems
    assert run.returncode == (1 if problems else 0)
    run = understudy("doctor")
    problems = len(re.findall(r"^  problem ", run.stdout, re.MULTILINE))
    assert run.returncode == (1 if problems else 0)


def test_text_has_every_check_and_no_control_characters(understudy, checks):
    text = understudy("doctor").stdout
    for name in checks:
        assert re.search(rf"^  (ok|could be better|problem) +{re.escape(name)}: ", text, re.M), name
    assert not re.search(r"[^\n -~]", text)


def test_huge_page_pool_is_the_kernels(checks):
    pages = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    if not pages.exists():
        pytest.skip(f"this host has no {pages}")
    assert checks["huge page pool"]["found"].startswith(f"{int(pages.read_text())} pages")


def test_figures_are_the_kernels(checks):
    assert os.uname().release in checks["kernel"]["found"]
    assert checks["cores"]["found"] == f"{len(os.sched_getaffinity(0))} usable"
    count = open("/proc/sys/vm/max_map_count", encoding="ascii").read().strip()
    assert checks["map count"]["found"] == f"{count} mappings per process"


def test_few_descriptors():
    for limit, verdict in ((32, "problem"), (256, "could be better"), (1024, "ok")):
        check = with_limit(resource.RLIMIT_NOFILE, limit)["descriptors"]
        assert (check["found"], check["verdict"]) == (f"{limit} per process", verdict)


def test_limited_address_space():
    check = with_limit(resource.RLIMIT_AS, 1 << 40)["address space"]
    assert (check["found"], check["verdict"]) == ("1 TiB per process", "could be better")
    assert check["command"] == "ulimit -v unlimited"


def test_limited_files_are_a_problem():
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    run = start("doctor", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                (1 << 20, hard)))
    output = run.communicate(timeout=60)[0]
    assert run.returncode == 1
    assert "problem          file size: 1 MiB per file\n" in output
    assert output.endswith("There is a problem: see above.\n")


def test_lock_limit_of_an_ordinary_user():
    limit = 1 << 20
    run = start("doctor", "--json", prefix=as_ordinary_user(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit)))
    check = checks_of(run.communicate(timeout=60)[0])["locked memory"]
    assert (check["found"], check["verdict"]) == ("1 MiB per process", "could be better")


def test_one_core():
    run = start("doctor", "--json", preexec_fn=lambda: os.sched_setaffinity(
        0, {min(os.sched_getaffinity(0))}))
    check = checks_of(run.communicate(timeout=60)[0])["cores"]
    assert (check["found"], check["verdict"]) == ("1 usable", "could be better")


def test_unusable_dev_shm():
    for mount in ("mount -t tmpfs -o ro none /dev/shm", "mount -t tmpfs -o size=1M none /dev/shm"):
        run = subprocess.run([*in_namespaces("--mount"), "sh", "-c", f'{mount} && exec "$@"', "sh",
                              str(COMMAND), "doctor", "--json"], env=clean_environment(),
                             capture_output=True, text=True, check=False)
        if not run.stdout:
            pytest.skip("this host lets the test mount nothing")
        assert run.returncode == 1
        assert checks_of(run.stdout)["/dev/shm"]["verdict"] == "problem"


# ---- The installation

def test_wrong_configuration_is_a_problem(understudy):
    run = understudy("doctor", "--json", env={"UNDERSTUDY_DEVICES": "99"})
    check = checks_of(run.stdout)["configuration"]
    assert run.returncode == 1
    assert check["verdict"] == "problem"
    assert check["found"].startswith('configuration key devices has the value "99"')
    assert check["meaning"] == "Every first call fails with 100000."
    assert understudy("doctor", env={"UNDERSTUDY_DEVICES": "99"}).stdout.endswith(
        "There is a problem: see above.\n")


def test_missing_library_is_a_problem(tmp_path, checks):
    copy = tmp_path / "bin/understudy"
    copy.parent.mkdir()
    shutil.copy2(COMMAND, copy)
    run = subprocess.run([copy, "doctor", "--json"], env=clean_environment(), text=True,
                         capture_output=True, check=False)
    check = checks_of(run.stdout)["library"]
    assert (run.returncode, check["verdict"]) == (1, "problem")
    library = f"{tmp_path.resolve()}/lib64/libascendcl.so"
    assert check["found"] == f"{library} is missing or cannot be read"
    assert (checks["library"]["verdict"], checks["configuration"]["verdict"]) == ("ok", "ok")


# ---- A running server

USE = JOIN + """
MIB = 1 << 20
device, host = ctypes.c_void_p(), ctypes.c_void_p()
assert library.aclrtMalloc(ctypes.byref(device), ctypes.c_size_t(64 * MIB), 0) == 0
assert library.aclrtMemset(device, ctypes.c_size_t(64 * MIB), 1, ctypes.c_size_t(64 * MIB)) == 0
assert library.aclrtMallocHost(ctypes.byref(host), ctypes.c_size_t(8 * MIB)) == 0
print("ready", flush=True)
input()
"""


def sentences(text):
    """The paragraph on the server, in one line."""
    paragraph = re.search(r"^Server\n((?:  .*\n)+)", text, re.MULTILINE)[1]
    return " ".join(paragraph.split())


def test_no_server(understudy, tmp_path):
    run = understudy("doctor")
    assert sentences(run.stdout) == f"No server runs: there is no server at {tmp_path}/server."
    facts = json.loads(understudy("doctor", "--json").stdout)["server"]
    assert facts == {"directory": f"{tmp_path}/server", "is_live": False, "processes": 0}


def test_running_server(understudy, tmp_path):
    directory = tmp_path / "used"
    user = start("run", f"--join={directory}", "--devices", "2", "--memory", "1G", *python(USE),
                 stdin=subprocess.PIPE)
    assert user.stdout.readline().strip() == str(directory)
    assert user.stdout.readline() == "ready\n"
    facts = json.loads(understudy("doctor", "--json", "--runtime-dir", directory).stdout)["server"]
    text = sentences(understudy("doctor", "--runtime-dir", directory).stdout)
    user.communicate("\n")
    assert (facts["is_live"], facts["processes"]) == (True, 1)
    used = facts["biggest_holder"]["used"]
    assert 64 << 20 <= used < 70 << 20
    assert facts["biggest_holder"] == {"process": user.pid, "used": used}
    assert facts["fullest_device"] == {"device": 0, "used": used, "shared": 0, "capacity": 1 << 30}
    assert facts["host_memory"]["behind_blocks"] >= 64 << 20
    assert text.startswith(f"The server at {directory} has 1 process and 2 devices. Device 0 is "
                           "the fullest: ")
    assert re.search(r"fullest: 6\d MiB of 1 GiB are in use \(6 %\), none of it shared", text)
    assert re.search(rf"The biggest holder is process {user.pid} with 6\d MiB", text)
    assert re.search(r"of host memory are behind it, [a-z0-9 ]+ % of it in 4 KiB pages\.", text)
    assert re.search(r"of host memory are page-locked, [a-z0-9 ]+ % of the machine's\.$", text)


def test_lines_break_before_a_number_and_not_before_its_unit(understudy, tmp_path):
    """The length of the directory moves the ends of all lines."""
    with holders(environment_for(tmp_path / "server", memory="1G"), "h 500 p 8") as _:
        for slashes in range(1, 40):
            directory = f"{tmp_path}{'/' * slashes}server"
            text = understudy("doctor", "--runtime-dir", directory).stdout
            assert "500 MiB of 1 GiB are in use (48 %)" in sentences(text)
            assert not re.search(r"\d\n +(bytes|[KMGT]?i?B|%)", text), text
            assert all(len(line) <= 80 or directory in line
                       for line in text.partition("\nServer\n")[2].splitlines())


def test_damaged_server(understudy, tmp_path):
    (tmp_path / "server").mkdir(mode=0o700)
    for content in (b"", b"no ledger", bytes(1 << 20)):
        (tmp_path / "server/ledger").write_bytes(content)
        assert sentences(understudy("doctor").stdout).startswith("No server runs: ")
