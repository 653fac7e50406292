# SPDX-License-Identifier: Apache-2.0
"""The command as a whole: help, wrong usage, version."""

import json
import os
import re
import signal
import subprocess

import pytest

from conftest import BUILD, COMMAND
from processes import environment_for


def test_help_lists_the_subcommands(understudy):
    run = understudy("--help")
    assert run.returncode == 0
    assert re.search(r"^ +version +\S", run.stdout, re.MULTILINE)


WORDS = "sh, bash, dash, ksh, zsh, fish, csh, tcsh"


@pytest.mark.parametrize("arguments, sentence", [
    ([], ": a subcommand is missing; --help lists them"),
    (["dance"], ": there is no subcommand dance; --help lists them"),
    (["rnu"], ": there is no subcommand rnu; did you mean run?"),
    (["Doctor"], ": there is no subcommand Doctor; did you mean doctor?"),
    ([""], ": there is no subcommand ; --help lists them"),
    (["--dance"], ": there is no option --dance; --help lists them"),
    (["--hlep"], ": there is no option --hlep; did you mean --help?"),
    (["--version", "--json", "x"], " version: there is no use for the argument x"),
    (["env", "--shel", "fish"], " env: there is no option --shel; did you mean --shell?"),
    (["env", "--shel=fish"], " env: there is no option --shel; did you mean --shell?"),
    (["env", "-x"], " env: there is no option -x; --help lists them"),
    (["env", "fish"], " env: there is no use for the argument fish"),
    (["env", "--shell"], " env: --shell needs a value"),
    (["env", "--shell", "fsih"],
     f' env: --shell has the value "fsih"; allowed: {WORDS}; did you mean fish?'),
    (["env", "--shell", "cmd"], f' env: --shell has the value "cmd"; allowed: {WORDS}'),
    (["env", "--shell", "sh", "--shell", "sh"], " env: --shell is given more than once"),
    (["env", "--undo=perhaps"], " env: --undo takes no value"),
    (["ps", "--JSON"], " ps: there is no option --JSON; did you mean --json?"),
    (["info", "--watch=often"], ' info: --watch has the value "often"; allowed: 0.05 to 86400'),
    (["info", "--watch=nan"], ' info: --watch has the value "nan"; allowed: 0.05 to 86400'),
    (["info", "--runtime-dir"], " info: --runtime-dir needs a value"),
    (["top", "--interval", "0"], ' top: --interval has the value "0"; allowed: 0.05 to 3600'),
    (["conformance", "--jobs", "0"], ' conformance: --jobs has the value "0"; allowed: 1 to 1024'),
    (["conformance", "--jobs", "-1"], ' conformance: --jobs has the value "-1"; allowed: 1 to 1024'),
    (["conformance", "--jobs", "1x"], ' conformance: --jobs has the value "1x"; allowed: 1 to 1024'),
    (["conformance", "--rules"], " conformance: --rules needs a value"),
    (["run", "--devcies", "2", "true"], " run: there is no option --devcies; did you mean --devices?"),
    (["run", "--memory", "1G", "--memory", "1G", "true"], " run: --memory is given more than once"),
    (["run", "--memory"], " run: --memory needs a value"),
    (["which", "--jsn"], " which: there is no option --jsn; did you mean --json?"),
])
def test_wrong_usage_is_one_sentence(understudy, arguments, sentence):
    run = understudy(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"understudy{sentence}\n"


def test_version_tells_version_and_library(understudy):
    run = understudy("version")
    assert run.returncode == 0
    version = re.fullmatch(r"understudy (\d+\.\d+\.\d+)\nlibrary (/.+)\n", run.stdout)
    facts = json.loads(understudy("version", "--json").stdout)
    assert facts == {"version": version[1], "home": str(BUILD.resolve()), "library": version[2]}
    assert version[2] == f"{BUILD.resolve()}/lib64/libascendcl.so"


def test_version_is_an_option_too(understudy):
    text = understudy("version").stdout
    for option in ("--version", "-V"):
        run = understudy(option)
        assert (run.returncode, run.stdout) == (0, text)
    assert "-V,--version" in understudy("--help").stdout.replace(" ", "")


@pytest.mark.parametrize("name, words", [
    ("understudy", ["version"]), ("understudy", ["--help"]), ("understudy", ["env"]),
    ("understudy", ["version", "--json"]), ("npu-smi", ["info"]), ("npu-smi", ["--version"]),
    ("understudy", ["info", "--json"]), ("understudy", ["ps", "--json"]),
    ("understudy", ["info", "--json", "--watch", "0.05"]), ("understudy", ["info", "--watch=0.05"]),
    ("understudy", ["clean", "--dry-run"]), ("understudy", ["clean", "--dry-run", "--json"]),
    ("understudy", ["doctor"]), ("understudy", ["doctor", "--json"]), ("understudy", ["which"]),
    ("understudy", ["conformance", "--list"]), ("understudy", ["run", "--help"])])
def test_output_that_cannot_be_written_is_a_failure(tmp_path, name, words):
    if not os.path.exists("/dev/full"):
        pytest.skip("this host has no /dev/full")
    link = tmp_path / name
    link.symlink_to(COMMAND)
    with open("/dev/full", "w", encoding="ascii") as full:
        run = subprocess.run([link, *words], env=environment_for(tmp_path / "server"), stdout=full,
                             stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert run.returncode == 1
    # The reason is gone where the text was flushed before the end.
    told = run.stderr.splitlines()
    assert told[-1] in [f"{name}: standard output: {reason}"
                        for reason in ("No space left on device", "not all could be written")]
    # Before it there is only that no server runs here.
    assert len(told) <= 2 and (len(told) == 1 or words[0] == "info"), told


@pytest.mark.parametrize("ignored", [True, False])
def test_reader_that_goes_away_ends_the_command(tmp_path, ignored):
    """By the signal, as usual; where that is ignored, as output that cannot be written."""
    with subprocess.Popen([COMMAND, "info", "--json", "--watch", "0.05"], text=True,
                          env=environment_for(tmp_path / "server"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, restore_signals=not ignored) as process:
        assert json.loads(process.stdout.readline()) == {"server": None}
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(timeout=60)
    told = "understudy: standard output: Broken pipe\n"
    assert process.returncode == (1 if ignored else -signal.SIGPIPE)
    assert errors.endswith(told) == ignored


def test_every_subcommand_has_help(understudy):
    names = re.findall(r"^  (\w+) {2,}\S", understudy("--help").stdout, re.MULTILINE)
    assert {"run", "env", "which", "doctor", "version"} <= set(names)
    for name in names:
        run = understudy(name, "--help")
        assert run.returncode == 0
        assert run.stdout and not run.stderr
