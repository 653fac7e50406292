# SPDX-License-Identifier: Apache-2.0
"""understudy which: the same answer as the dynamic loader's, and the reason for it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import clean_environment
from programs import HOME, as_ordinary_user, start

OURS = HOME / "lib64"
PROGRAM = "int aclInit(const char*); int main(void) { return aclInit(0); }"
VENDOR = "int aclInit(const char* path) { return path != 0; }"


def compile_c(source, output, *options):
    if not shutil.which("gcc"):
        pytest.skip("there is no compiler")
    output.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-x", "c", "-", "-o", output, "-x", "none", *map(str, options)],
                   input=source, text=True, check=True)
    return output


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Programs that find their library in different ways, and a library that is not ours."""
    root = tmp_path_factory.mktemp("which")
    vendor = compile_c(VENDOR, root / "vendor/libascendcl.so", "-shared", "-fPIC",
                       "-Wl,-soname,libascendcl.so")
    middle = compile_c("int aclInit(const char*); int middle(void) { return aclInit(0); }",
                       root / "middle/libmiddle.so", "-shared", "-fPIC", vendor,
                       "-Wl,-soname,libmiddle.so")
    ways = {
        "plain": [],
        "rpath": ["-Wl,--disable-new-dtags,-rpath,$ORIGIN/vendor"],
        "runpath": ["-Wl,--enable-new-dtags,-rpath,${ORIGIN}/vendor"],
    }
    for name, options in ways.items():
        compile_c(PROGRAM, root / name, vendor, *options)
    compile_c("int middle(void); int main(void) { return middle(); }", root / "indirect", middle,
              "-Wl,--disable-new-dtags,-rpath,$ORIGIN/middle:$ORIGIN/vendor",
              f"-Wl,-rpath-link,{root}/vendor")
    compile_c("int main(void) { return 0; }", root / "unrelated")
    compile_c(VENDOR, root / "hook.so", "-shared", "-fPIC")
    return root


@pytest.fixture
def which(understudy):
    def look(*words, **options):
        run = understudy("which", "--json", *words, **options)
        assert run.returncode in (0, 1), run.stderr
        answer = json.loads(run.stdout)
        return {**answer, **{library["name"]: library for library in answer["libraries"]}}
    return look


def loader_says(program, env):
    """Where the dynamic loader of this machine finds the library."""
    output = subprocess.run([program], capture_output=True, text=True, check=True,
                            env={**clean_environment(), **env, "LD_TRACE_LOADED_OBJECTS": "1"})
    found = re.search(r"(\S*libascendcl\.so)(?: => (\S+|not found))? ", output.stdout)
    path = found[2] or found[1] if found else None
    return None if path in (None, "not") else os.path.realpath(path)


@pytest.mark.parametrize("folders", ["", "ours", "vendor", "ours:vendor", "vendor:ours", ":none"])
@pytest.mark.parametrize("program", ["plain", "rpath", "runpath", "indirect"])
def test_answer_is_the_loaders(which, tree, program, folders):
    path = folders.replace("ours", str(OURS)).replace("vendor", f"{tree}/vendor")
    env = {"LD_LIBRARY_PATH": path} if path else {}
    answer = which(tree / program, env=env)["libascendcl.so"]
    found = answer["path"] and os.path.realpath(answer["path"])
    assert found == loader_says(tree / program, env)
    assert answer["is_understudy"] == (found is not None and found.startswith(str(OURS)))
    needed_by = tree / ("middle/libmiddle.so" if program == "indirect" else program)
    assert os.path.realpath(answer["needed_by"]) == str(needed_by)


def test_answer_in_words(understudy, tree):
    run = understudy("which", tree / "rpath", env={"LD_LIBRARY_PATH": str(OURS)})
    assert run.returncode == 0
    assert run.stdout.splitlines() == [
        f"{tree}/rpath: program",
        f"libascendcl.so: {tree}/vendor/libascendcl.so",
        "  whose: not Understudy's",
        f"  why: the RPATH of {tree}/rpath has $ORIGIN/vendor, and comes before LD_LIBRARY_PATH",
        f"  when: at the start; {tree}/rpath needs it",
        f"libacl_rt.so: {OURS}/libacl_rt.so",
        "  whose: Understudy's",
        f"  why: LD_LIBRARY_PATH has {OURS}",
        "  when: a program opens it by its name (dlopen)",
        "note: an RPATH is stronger than any variable but LD_PRELOAD: "
        f"`LD_PRELOAD={OURS}/libascendcl.so` or `patchelf --remove-rpath {tree}/rpath` lead past "
        "it",
    ]


def test_library_that_is_nowhere(understudy, tree):
    run = understudy("which", tree / "plain")
    assert run.returncode == 1
    assert "libascendcl.so: not found\n" in run.stdout
    assert "understudy env" in run.stdout


def test_under_run_it_is_ours(understudy, tree):
    for program in ("plain", "runpath", "unrelated"):
        run = understudy("run", "understudy", "which", "--json", tree / program)
        answer = json.loads(run.stdout)["libraries"][0]
        assert (answer["path"], answer["is_understudy"]) == (f"{OURS}/libascendcl.so", True)
        assert (answer["needed_by"] is None) == (program == "unrelated")


def test_preloaded_library(which, tree):
    answer = which(tree / "rpath", env={"LD_PRELOAD": f"{OURS}/libascendcl.so"})["libascendcl.so"]
    assert (answer["path"], answer["why"]) == (f"{OURS}/libascendcl.so", "LD_PRELOAD names it")
    assert answer["needed_by"] is None
    notes = which(tree / "plain", env={"LD_PRELOAD": f"{tree}/hook.so"})["notes"]
    assert any("hook.so is preloaded and defines aclInit" in note for note in notes)


def test_without_a_program(which):
    answer = which(env={"LD_LIBRARY_PATH": str(OURS)})
    assert answer["program"] is None
    assert answer["libascendcl.so"]["path"] == f"{OURS}/libascendcl.so"


def test_static_program(which, tree):
    try:
        compile_c("int main(void) { return 0; }", tree / "static", "-static")
    except subprocess.CalledProcessError:
        pytest.skip("this compiler links nothing statically")
    assert any("statically" in note for note in which(tree / "static")["notes"])


@pytest.mark.parametrize("first_line", ["#!{python}", "#!/usr/bin/env python3"])
def test_python_script(understudy, which, tmp_path, first_line):
    if not (HOME / "python/acl.abi3.so").exists():
        pytest.skip("the Python module is not built")
    script = tmp_path / "script"
    script.write_text(first_line.format(python=sys.executable) + "\nraise SystemExit('ran')\n")
    script.chmod(0o755)
    folder = os.path.dirname(sys.executable)
    env = {"PYTHONPATH": str(HOME / "python"), "PATH": f"{folder}:{os.environ['PATH']}"}
    for words in ([script], [sys.executable, "-c", "import acl"]):
        answer = which(*words, env=env)
        assert answer["python"]["acl"] == f"{HOME}/python/acl.abi3.so"
        library = answer["libascendcl.so"]
        assert os.path.realpath(library["path"]) == os.path.realpath(OURS / "libascendcl.so")
        assert library["needed_by"] == f"{HOME}/python/acl.abi3.so"
    run = understudy("which", script, env=env)
    assert f"  when: at import acl; {HOME}/python/acl.abi3.so needs it\n" in run.stdout
    # As the interpreter is told not to look at the variable, it does not.
    assert which(sys.executable, "-I", "-c", "import acl", env=env)["python"]["acl"] is None


def make_script(path, *lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


def test_python_behind_a_shell_script(which, tmp_path):
    """As pyenv has it: the python3 on PATH is a shell script that executes the right one."""
    if not (HOME / "python/acl.abi3.so").exists():
        pytest.skip("the Python module is not built")
    shim = make_script(tmp_path / "shims/python3", "#!/usr/bin/env bash",
                       f'exec "{sys.executable}" "$@"')
    script = make_script(tmp_path / "script", "#!/usr/bin/env python3", "raise SystemExit('ran')")
    env = {"PYTHONPATH": str(HOME / "python"), "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    for words in ([script], ["python3", script], [shim]):
        answer = which(*words, env=env)
        assert answer["python"]["acl"] == f"{HOME}/python/acl.abi3.so"
        assert os.path.realpath(answer["python"]["interpreter"]) == os.path.realpath(sys.executable)
        assert not any("shell script" in note for note in answer["notes"])
    assert which(script, env=env)["kind"] == f"script of {shim}"


def test_what_a_shell_script_executes_is_not_seen(which, tmp_path):
    broken = make_script(tmp_path / "shims/python3", "#!/bin/bash", "exit 127")
    other = make_script(tmp_path / "shims/torchrun", "#!/usr/bin/env bash",
                        f'exec "{sys.executable}" "$@"')
    script = make_script(tmp_path / "script", "#!/usr/bin/env python3", "raise SystemExit('ran')")
    env = {"PATH": f"{broken.parent}:{os.environ['PATH']}"}
    for words, blind in ((["torchrun"], other), ([script], broken), (["python3"], broken)):
        answer = which(*words, env=env)
        assert "python" not in answer
        shell = answer["kind"].removeprefix("script of ")
        assert (f"{blind} is a shell script; which programs it executes cannot be seen, and the "
                f"answer is only that of {shell}") in answer["notes"]
    # A script without any shell has no such note.
    answer = which(make_script(tmp_path / "awk", "#!/usr/bin/awk -f", "{}"))
    assert not any("shell script" in note for note in answer["notes"])


def test_program_is_not_executed(which, tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    assert which(script)["kind"].startswith("script of /bin/sh")
    assert not (tmp_path / "ran").exists()


def test_files_that_are_no_programs(which, tree, tmp_path):
    good = (tree / "plain").read_bytes()
    (tmp_path / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "pipe")
    contents = {"empty": b"", "text": b"hello", "cut": good[:100], "header": good[:64],
                "tables": good[:64] + b"\xff" * 4096, "half": good[:len(good) // 2]}
    for position in range(16, 64):  # every byte of the header, wrong in turn
        broken = bytearray(good)
        broken[position] ^= 0xFF
        contents[f"byte{position}"] = bytes(broken)
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    for name in [*contents, "pipe", "."]:
        which(tmp_path / name)


def test_program_that_is_not_there(understudy):
    run = understudy("which", "no-such-program")
    assert (run.returncode, run.stderr) == (127, "understudy which: no-such-program: not found\n")


def test_program_with_rights_of_another_user(tree):
    prefix = as_ordinary_user()
    if not prefix:
        pytest.skip("only root can make a program with the rights of another user")
    program = tree / "privileged"
    shutil.copy2(tree / "plain", program)
    program.chmod(0o4755)
    for folder in (tree, *tree.parents[:2]):
        folder.chmod(0o755)
    run = start("which", program, prefix=prefix, env={"LD_LIBRARY_PATH": str(OURS)})
    output = run.communicate(timeout=60)[0]
    assert "libascendcl.so: not found" in output
    assert "LD_LIBRARY_PATH and LD_PRELOAD do not count" in output
