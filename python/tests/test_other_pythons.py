# SPDX-License-Identifier: Apache-2.0
"""The same file works with every Python of the machine from 3.8 on."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("any_python.py")
NAME = re.compile(r"python3(\.(8|9|\d\d))?(-dbg|d)?$")


def folders():
    yield from filter(None, os.environ.get("PATH", "").split(":"))
    pyenv = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    yield from (os.path.join(pyenv, version, "bin") for version in names_in(pyenv))


def names_in(folder):
    """Nothing if there is no such folder, or it is not for us."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def ask(python, source):
    """What the source prints, or nothing if it cannot be run."""
    try:
        return subprocess.check_output([python, "-c", source], stderr=subprocess.DEVNULL,
                                       universal_newlines=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def interpreters():
    """{what it is: path} of all that can be found."""
    found = {}
    for folder in dict.fromkeys(folders()):
        for name in filter(NAME.match, names_in(folder)):
            path = os.path.join(folder, name)
            what = ask(path, "import sys, sysconfig; "
                             "debug = hasattr(sys, 'gettotalrefcount'); "
                             "has_gil = not sysconfig.get_config_var('Py_GIL_DISABLED'); "
                             "print(sys.implementation.name + '-' + sys.version.split()[0] "
                             "+ '-debug' * debug if sys.version_info >= (3, 8) and has_gil "
                             "else '')")
            if what.startswith("cpython"):
                found.setdefault(what, path)
    return found


PYTHONS = interpreters()


@pytest.mark.parametrize("what", sorted(PYTHONS))
def test_the_module_works(what, tmp_path):
    done = subprocess.run(
        [PYTHONS[what], str(PROGRAM)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, timeout=100,
        env={**os.environ, "UNDERSTUDY_RUNTIME_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("everything works\n")


def test_this_python_is_among_them():
    assert any(what.split("-")[1] == sys.version.split()[0] for what in PYTHONS)
