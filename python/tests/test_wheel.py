# SPDX-License-Identifier: Apache-2.0
"""A wheel is made of the built files, installed without a network, and used with nothing else."""
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import acl

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = pathlib.Path(acl.__file__)
LIBRARY = MODULE.parent.parent / "lib64" / "libascendcl.so"


def make(output, *options):
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_wheel.py"), "--version", "0.0.1",
         "--module", str(MODULE), "--library", str(LIBRARY), "--python", str(ROOT / "python"),
         "--license", str(ROOT / "LICENSE"), "--output", str(output), *options],
        check=True,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    make(folder)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    pytest.importorskip("pip", reason="pip is not installed")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
         "--disable-pip-version-check", "--no-cache-dir", "--target", str(folder), str(wheel)],
        check=True,
    )
    return folder


def run(folder, source, directory):
    """Runs Python source that sees the folder and no other place where the library could be."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=directory, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True,
        env={**environment, "PYTHONPATH": str(folder), "UNDERSTUDY_RUNTIME_DIR": str(directory)},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


USE = """
import acl
assert acl.init() == 0 and acl.rt.set_device(0) == 0
print(acl.__file__)
print(next(line.split()[-1] for line in open("/proc/self/maps") if "libascendcl" in line))
print(acl.get_soc_name())
"""


def test_it_is_for_every_python_from_3_8_on(wheel):
    assert wheel.name.startswith("understudy-0.0.1-cp38-abi3-linux_")


def test_equal_contents_make_equal_files(wheel, tmp_path):
    make(tmp_path)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_it_lists_its_contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read("understudy-0.0.1.dist-info/RECORD").decode()
    assert [line.split(",")[0] for line in record.splitlines()] == names
    assert not [name for name in names if "__pycache__" in name]


def test_it_has_the_library_inside_and_uses_it(installed, tmp_path):
    module, library, soc = run(installed, USE, tmp_path).splitlines()
    assert pathlib.Path(module) == installed / "acl.abi3.so"
    assert pathlib.Path(library) == installed / "understudy" / "lib64" / "libascendcl.so"
    assert soc.startswith("Ascend")


def test_pytest_finds_the_plugin(installed, tmp_path):
    source = (
        "from importlib.metadata import distribution\n"
        "print([(e.group, e.name, e.value) for e in distribution('understudy').entry_points])\n"
    )
    assert run(installed, source, tmp_path).strip() == (
        "[('pytest11', 'understudy', 'understudy.pytest_plugin')]"
    )


def test_the_installed_tree_uses_the_library_beside_it(tmp_path):
    make(tmp_path / "python", "--unpacked")
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libascendcl.so").write_bytes(LIBRARY.read_bytes())
    directory = tmp_path / "server"
    directory.mkdir(mode=0o700)
    _, library, _ = run(tmp_path / "python", USE, directory).splitlines()
    assert pathlib.Path(library) == tmp_path / "lib64" / "libascendcl.so"


def test_pytest_finds_the_plugin_in_the_installed_tree_and_pip_no_package_of_that_name(tmp_path):
    make(tmp_path, "--unpacked")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--markers"],
        stdout=subprocess.PIPE, universal_newlines=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert "@pytest.mark.npu" in done.stdout
    found = run(tmp_path, "from importlib.metadata import distributions as d\n"
                          "print('understudy' in [one.metadata['name'] for one in d()])", tmp_path)
    assert found.strip() == "False"
