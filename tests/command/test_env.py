# SPDX-License-Identifier: Apache-2.0
"""understudy env: what a shell is told, for installations at any path."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import BUILD, COMMAND

SET_ENV = pathlib.Path(__file__).resolve().parents[2] / "cmake/set_env.sh"
BARE = {"PATH": "/usr/bin:/bin"}
PRINT = "env -0"
NAMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "LD_LIBRARY_PATH", "PATH", "CMAKE_PREFIX_PATH",
         "PYTHONPATH")


@pytest.fixture(params=["plain", "two words", "it's \"$HOME\" `x` \\ !y *", "line\nbreak"])
def home(request, tmp_path):
    """An installation with its command at a path that is hard to quote."""
    root = (tmp_path / request.param).resolve()
    (root / "bin").mkdir(parents=True)
    shutil.copy2(COMMAND, root / "bin/understudy")
    shutil.copy2(SET_ENV, root / "set_env.sh")
    (root / "lib64").symlink_to(BUILD / "lib64")
    (root / "python").symlink_to(BUILD / "python")
    (root / "libexec/understudy").mkdir(parents=True)
    (root / "libexec/understudy/npu-smi").symlink_to("../../bin/understudy")
    return root


def environment_after(words, env, shell="sh"):
    """The variables that a shell has after it evaluated what a command prints."""
    script = f'text=$("$@") && eval "$text" && {PRINT}'
    output = subprocess.run([shell, "-c", script, shell, *map(str, words)], env=env, check=True,
                            capture_output=True).stdout.decode()
    return dict(line.split("=", 1) for line in output.split("\0") if line)


def shell_variables(shell, script, env):
    """The variables that a shell has after a script that prints them."""
    output = subprocess.run([shell, "-c", script], env=env, check=True, capture_output=True).stdout
    return dict(line.split("=", 1) for line in output.decode().split("\0") if line)


def shell_for(home, name):
    """The program of a shell that can evaluate the lines of an installation."""
    program = shutil.which(name)
    if not program:
        pytest.skip(f"{name} is not installed")
    if name == "tcsh" and "\n" in str(home):
        pytest.skip("csh ends a word at a line break of what it evaluates")
    return program


def variables_after_script(program, lines, env, home, folder):
    """The same after a file of lines. They find the command by a path that needs no quotes."""
    (folder / "command").symlink_to(home / "bin/understudy")
    (folder / "script").write_text("\n".join(lines) + "\n")
    output = subprocess.run([program, folder / "script"], check=True, capture_output=True,
                            env={**env, "command": folder / "command"}).stdout
    return dict(line.split("=", 1) for line in output.decode().split("\0") if line)


def chosen(variables):
    return {name: variables.get(name) for name in NAMES}


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_it_does_what_set_env_does(home, shell):
    ours = environment_after([home / "bin/understudy", "env"], BARE, shell)
    script = f'. "$1" && {PRINT}'
    theirs = subprocess.run(["bash", "-c", script, "bash", home / "set_env.sh"], env=BARE,
                            check=True, capture_output=True).stdout.decode()
    theirs = dict(line.split("=", 1) for line in theirs.split("\0") if line)
    assert chosen(ours) == chosen(theirs)


def test_run_does_the_same(home):
    ours = environment_after([home / "bin/understudy", "env"], BARE)
    run = subprocess.run([home / "bin/understudy", "run", "env", "-0"], env=BARE, check=True,
                         capture_output=True).stdout.decode()
    assert chosen(dict(line.split("=", 1) for line in run.split("\0") if line)) == chosen(ours)


def test_evaluating_twice_changes_nothing(home):
    once = environment_after([home / "bin/understudy", "env"], BARE)
    assert environment_after([home / "bin/understudy", "env"], once) == once


def test_lists_keep_their_other_entries(home):
    env = {**BARE, "LD_LIBRARY_PATH": f"/a:{home}/lib64:/b c", "PYTHONPATH": "/p"}
    variables = environment_after([home / "bin/understudy", "env"], env)
    assert variables["LD_LIBRARY_PATH"] == f"{home}/lib64:/a:/b c"
    assert variables["PYTHONPATH"] == f"{home}/python:/p"


def test_without_path_the_usual_folders_stay(home):
    command = home / "bin/understudy"
    run = subprocess.run([command, "run", "ls", "/"], env={}, check=False, capture_output=True)
    assert run.returncode == 0, run.stderr
    after = shell_variables("sh", 'unset PATH; eval "$("$command" env)"; /usr/bin/env -0',
                            {"command": command})
    assert after["PATH"] == f"{home}/bin:/usr/local/bin:/usr/bin:/bin"
    lines = subprocess.run([command, "env", "--undo"], env={}, check=True, capture_output=True,
                           text=True).stdout
    assert lines == ""


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh"])
def test_path_that_the_shell_does_not_export_stays(home, shell):
    program = shell_for(home, shell)
    script = 'PATH="/a b:/usr/bin"; eval "$("$command" env --npu-smi)"; env -0'
    after = shell_variables(program, script, {"command": home / "bin/understudy"})
    assert after["PATH"] == f"{home}/libexec/understudy:{home}/bin:/a b:/usr/bin"
    # Exported now, it is as usual: nothing is there twice, and an undo leaves the shell's own.
    once = environment_after([home / "bin/understudy", "env", "--npu-smi"], after)
    assert once["PATH"] == after["PATH"]
    undone = environment_after([home / "bin/understudy", "env", "--undo"], after)
    assert undone["PATH"] == "/a b:/usr/bin"


@pytest.mark.parametrize("shell", ["fish", "tcsh"])
def test_path_of_other_shells_stays(home, tmp_path, shell):
    program = shell_for(home, shell)
    lines = {
        "fish": ["set -gu PATH '/a b' /usr/bin", "$command env --shell fish | source", "env -0"],
        "tcsh": ["set path = ( '/a b' /usr/bin )", "unsetenv PATH",
                 'eval "`$command env --shell csh`"', "env -0"],
    }[shell]
    after = variables_after_script(program, lines, {}, home, tmp_path)
    assert after["PATH"] == f"{home}/bin:/a b:/usr/bin"


@pytest.mark.parametrize("shell, line", [
    ("sh", "export PATH='{}/bin':\"${{PATH:-/usr/local/bin:/usr/bin:/bin}}\""),
    ("fish", "set -gx PATH '{}/bin' $PATH"), ("csh", "set path = ( '{}/bin' $path:q );")])
def test_each_shell_extends_its_own_path(shell, line):
    lines = subprocess.run([COMMAND, "env", "--shell", shell], env={}, check=True,
                           capture_output=True, text=True).stdout.splitlines()
    assert line.format(BUILD.resolve()) in lines
    assert len(lines) == len(NAMES)


def test_undo_takes_all_of_it_back(home):
    before = {**BARE, "LD_LIBRARY_PATH": "/a::/b c", "LANG": "C"}
    inside = environment_after([home / "bin/understudy", "env", "--npu-smi"], before)
    after = environment_after([home / "bin/understudy", "env", "--undo"], inside)
    assert chosen(after) == chosen(before)


def test_undo_leaves_another_installation(home):
    env = {**BARE, "ASCEND_HOME_PATH": "/usr/local/Ascend", "LD_LIBRARY_PATH": "/usr/local/Ascend"}
    after = environment_after([home / "bin/understudy", "env", "--undo"], env)
    assert chosen(after) == chosen(env)


def test_npu_smi_is_opt_in(home):
    without = environment_after([home / "bin/understudy", "env"], BARE)
    assert "libexec" not in without["PATH"]
    with_it = environment_after([home / "bin/understudy", "env", "--npu-smi"], BARE)
    assert with_it["PATH"].startswith(f"{home}/libexec/understudy:{home}/bin:")
    found = shutil.which("npu-smi", path=with_it["PATH"])
    assert os.path.realpath(found) == str(home / "bin/understudy")


def test_build_tree_has_npu_smi():
    assert os.path.realpath(BUILD / "libexec/understudy/npu-smi") == os.path.realpath(COMMAND)


@pytest.mark.parametrize("shell", ["fish", "tcsh"])
def test_other_shells(home, tmp_path, shell):
    program = shell_for(home, shell)
    lines = {
        "fish": ["$command env --shell fish | source", "env -0"],
        "tcsh": ['eval "`$command env --shell csh`"', "env -0"],
    }[shell]
    variables = variables_after_script(program, lines, BARE, home, tmp_path)
    assert chosen(variables) == chosen(environment_after([home / "bin/understudy", "env"], BARE))


@pytest.mark.parametrize("shell, first", [("sh", "export ASCEND_HOME_PATH='"),
                                          ("fish", "set -gx ASCEND_HOME_PATH '"),
                                          ("csh", "setenv ASCEND_HOME_PATH '")])
def test_each_shell_has_its_own_words(understudy, shell, first):
    run = understudy("env", "--shell", shell)
    assert run.stdout.startswith(first)
    assert len(run.stdout.splitlines()) == len(NAMES)


def test_unknown_shell_is_wrong_usage(understudy):
    run = understudy("env", "--shell", "cmd.exe")
    assert run.returncode == 2
    assert run.stderr == ('understudy env: --shell has the value "cmd.exe"; '
                          "allowed: sh, bash, dash, ksh, zsh, fish, csh, tcsh\n")


def test_shells_of_a_kind_have_the_same_words(understudy):
    for kind, others in (("sh", ["bash", "dash", "ksh", "zsh"]), ("csh", ["tcsh"])):
        words = understudy("env", "--shell", kind).stdout
        for shell in others:
            assert understudy("env", "--shell", shell).stdout == words
