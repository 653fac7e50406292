# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/python do what they say, free what they take, notice what is wrong."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
CHOICES = ("UNDERSTUDY_CONFIG", "UNDERSTUDY_PRODUCT", "UNDERSTUDY_DEVICES", "UNDERSTUDY_MEMORY")
SMALL = {"UNDERSTUDY_DEVICES": "2", "UNDERSTUDY_MEMORY": "1G"}

# Lines that must be there, in this order. All of a line has to match; MEMORY is a device's, in MiB.
OUTPUT = {
    "seven_steps": (
        r"1  reserve_mem_address +0 MiB +0 MiB",
        r"2  malloc_physical +20 MiB +20 MiB",
        r"3  map_mem +20 MiB +20 MiB",
        r"4  memcpy_async +0x[0-9a-f]+ -> 0x[0-9a-f]+",
        r" +20971520 bytes went by both devices: all arrived",
        r"5  unmap_mem +20 MiB +20 MiB",
        r"6  free_physical +0 MiB +0 MiB",
        r"7  release_mem_address +0 MiB +0 MiB",
    ),
    "page_locked": (
        r" +1 +1 +64 +\+0 +0  (\w+) -> \1  same",
        r" +2 +31 +64 +\+64 +0  (\w+) -> \1  same",
        r" +3 +32 +64 +\+128 +0  (\w+) -> \1  same",
        r" +4 +33 +96 +\+192 +0  (\w+) -> \1  same",
        r" +5 +1000 +1056 +\+320 +0  (\w+) -> \1  same",
        r" +6 +4096 +4128 +\+1408 +0  (\w+) -> \1  same",
        r" +7 +70000 +70048 +\+5568 +0  (\w+) -> \1  same",
        r" +8 +150528 +150560 +\+75648 +0  (\w+) -> \1  same",
        r"225721 bytes in 8 pieces take 226240 bytes of the block",
        r"the 822336 bytes behind them are untouched",
    ),
    "sleep_and_wake": (
        r"Ascend\w+, MEMORY MiB; 6 layers of 8 MiB",
        r"awake +48 MiB taken +\d+ bytes free",
        r"asleep +0 MiB taken +\d+ bytes free",
        r"with a guest +50 MiB taken +\d+ bytes free",
        r"awake again +48 MiB taken +\d+ bytes free",
        *(rf" +layer {layer} at 0x[0-9a-f]+: as it was" for layer in range(6)),
        r"closed +0 MiB taken +\d+ bytes free",
    ),
    "sharing": (
        r"exporter: 33554432 bytes with checksum [0-9a-f]{8} are share 0x[0-9a-f]+",
        r"importer: process \d+ is not on the list, status 207006",
        r"importer: is on the list, and reads bytes with checksum [0-9a-f]{8}",
        r"both have it mapped and see bytes taken from the device: 33554432, 33554432",
        r"exporter: finds 'read and understood'",
        r"both have let go: 0",
    ),
    "overlap": (
        r"6 blocks of 8388608 bytes through 2 places on the device",
        *(
            rf"{step} +{block} \|.*\| +\d+\.\d\d \.\. +\d+\.\d\d ms"
            for block in range(6)
            for step in ("upload", "work")
        ),
        r"all steps \d+\.\d\d ms, done in \d+\.\d\d ms",
        r"order held, bytes right",
    ),
    "kv_cache_pool": (
        r" +0 +8 +8 +0 +16 MiB",
        r" +300 +8 +54 +1 +110 MiB",
        r" +700 +1 +9 +46 +110 MiB",
        r"24 sequences, 24 of them intact to their end",
        r"159 pages mapped: 55 made, 104 recycled",
        r"fixed buffers would take 192 MiB from the start",
        r"closed: 0 bytes in use",
    ),
}

# Prints the bytes in use on every device.
USED = """
import acl
assert acl.init() == 0
count, ret = acl.rt.get_device_count()
assert ret == 0
used = []
for device in range(count):
    assert acl.rt.set_device(device) == 0
    free, total, ret = acl.rt.get_mem_info(1)
    assert ret == 0
    used.append(total - free)
print(used)
"""

# Runs a program and prints in its last line how often calls that take or free something succeeded.
COUNTED = """
import acl, json, runpy, sys
pairs = json.loads(sys.argv[2])
counts = {name: 0 for pair in pairs for name in pair}
def counted(name, function):
    def call(*arguments):
        answer = function(*arguments)
        counts[name] += (answer[-1] if isinstance(answer, tuple) else answer) == 0
        return answer
    return call
for name in counts:
    home = acl if hasattr(acl, name) else acl.rt
    setattr(home, name, counted(name, getattr(home, name)))
try:
    runpy.run_path(sys.argv[1], run_name="__main__")
except SystemExit as end:
    assert end.code == 0
print(json.dumps(counts))
"""
PAIRS = (
    ("init", "finalize"),
    ("set_device", "reset_device"),
    ("create_stream", "destroy_stream"),
    ("create_event", "destroy_event"),
    ("subscribe_report", "unsubscribe_report"),
    ("malloc", "free"),
    ("malloc_host", "free_host"),
    ("malloc_physical", "free_physical"),
    ("reserve_mem_address", "release_mem_address"),
    ("map_mem", "unmap_mem"),
)

# Runs a program whose reads of host memory find one bit turned over.
ONE_WRONG_BIT = """
import acl, runpy, sys
right = acl.util.ptr_to_bytes
def wrong(address, size):
    data = right(address, size)
    return data[:-1] + bytes([data[-1] ^ 1])
acl.util.ptr_to_bytes = wrong
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.fixture
def run():
    """Runs interpreters, all on one server of this test; gives the finished process."""
    with tempfile.TemporaryDirectory(prefix="understudy-python-tests-") as server:

        def start(*arguments, settings=None, directory=None, path=(), locked=None):
            environment = {key: os.environ[key] for key in os.environ if key not in CHOICES}
            environment.update(settings or {}, UNDERSTUDY_RUNTIME_DIR=server)
            if path:
                paths = [str(path), environment.get("PYTHONPATH", "")]
                environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            command = [sys.executable, *map(str, arguments)]
            if locked is not None:  # a limit that is lower already may stay
                script = f'ulimit -l {locked} 2>/dev/null; exec "$@"'
                command = ["sh", "-c", script, "sh", *command]
            return subprocess.run(
                command,
                env=environment,
                cwd=directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                universal_newlines=True,
                timeout=100,
            )

        yield start


def program(name):
    return EXAMPLES / f"{name}.py"


def expect_success(done):
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stderr == ""


def expect_output(done, name, memory):
    """The lines of OUTPUT, in order; others may stand between them."""
    lines = iter(done.stdout.splitlines())
    for pattern in OUTPUT[name]:
        pattern = pattern.replace("MEMORY", memory)
        assert any(re.fullmatch(pattern, line) for line in lines), f"{pattern}\n{done.stdout}"


def test_every_example_is_tested():
    assert sorted(OUTPUT) == sorted(file.stem for file in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", OUTPUT)
def test_example_on_the_default_devices(run, name):
    done = run(program(name))
    expect_success(done)
    expect_output(done, name, memory="65536")
    assert run("-c", USED).stdout == "[0, 0, 0, 0, 0, 0, 0, 0]\n"


@pytest.mark.parametrize("name", OUTPUT)
def test_example_on_small_devices_without_numpy_or_the_right_to_lock_memory(run, name, tmp_path):
    no_numpy = tmp_path / "path"
    no_numpy.mkdir()
    (no_numpy / "numpy.py").write_text("raise ImportError('examples do without')\n")
    directory = tmp_path / "directory"
    directory.mkdir()
    done = run(program(name), settings=SMALL, directory=directory, path=no_numpy, locked=64)
    expect_success(done)
    expect_output(done, name, memory="1024")
    assert list(directory.iterdir()) == []
    assert run("-c", USED, settings=SMALL).stdout == "[0, 0]\n"


@pytest.mark.parametrize("name", OUTPUT)
def test_example_frees_each_thing_it_takes(run, name):
    done = run("-c", COUNTED, program(name), json.dumps(PAIRS), settings=SMALL)
    expect_success(done)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["init"] == 1
    assert counts["set_device"] >= 1
    assert counts["malloc_host"] >= 1
    for take, free in PAIRS:
        assert counts[take] == counts[free], (take, free, counts)


@pytest.mark.parametrize("name", OUTPUT)
def test_example_notices_one_wrong_bit(run, name):
    done = run("-c", ONE_WRONG_BIT, program(name), settings=SMALL)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("name", sorted(set(OUTPUT) - {"page_locked"}))
def test_example_ends_with_the_status_of_a_call_that_failed(run, name):
    done = run(program(name), settings={**SMALL, "UNDERSTUDY_MEMORY": "12M"})
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"RuntimeError: status 207001: aclrtMalloc\w*: ", done.stderr), done.stderr


def test_seven_steps_needs_a_second_device(run):
    done = run(program("seven_steps"), settings={**SMALL, "UNDERSTUDY_DEVICES": "1"})
    assert done.returncode == 1
    assert "RuntimeError: status 107001: " in done.stderr
