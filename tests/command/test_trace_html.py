# SPDX-License-Identifier: Apache-2.0
"""understudy trace --html: the page that shows a recording, made from real ones."""

import base64
import json
import os
import re
import signal
import struct
import subprocess
import zlib

import pytest

from conftest import BUILD, clean_environment
from programs import until

STORM = BUILD / "bin/command_recorded_storm"
FORMATS = {"f64": "d", "u64": "Q", "u32": "I", "i32": "i", "u8": "B"}
ELEMENT = re.compile(r'<script id="recording" type="application/octet-stream">([^<]*)</script>')


class Document:
    """What a page holds: its header, and its columns by their names."""

    def __init__(self, page):
        (text,) = ELEMENT.findall(page.read_text(encoding="utf-8"))
        data = zlib.decompress(base64.b64decode(text, validate=True))
        assert data[:8] == b"USPAGE1\n"
        (size,) = struct.unpack_from("<I", data, 8)
        self.header = json.loads(data[12:12 + size])
        self.columns = {}
        at = (12 + size + 7) // 8 * 8
        for column in self.header["columns"]:
            layout = f"<{column['count']}{FORMATS[column['type']]}"
            self.columns[column["name"]] = struct.unpack_from(layout, data, at)
            at += (struct.calcsize(layout) + 7) // 8 * 8
        assert at == len(data)

    def calls_of(self, function):
        """How many calls of a function there are."""
        return self.columns["call_function"].count(self.header["functions"].index(function))


@pytest.fixture(name="page_of")
def fixture_page_of(understudy, tmp_path):
    """page_of(*program): the document of the page of a program's recording."""
    def make(*program, **settings):
        recording, page = tmp_path / "recording", tmp_path / "page.html"
        run = understudy("run", "--trace", recording, "--trace-stacks", "on", "--", *program,
                         env=settings)
        assert run.returncode == 0, run.stderr
        made = understudy("trace", recording, "--html", page)
        assert made.returncode == 0, made.stderr
        return Document(page)
    return make


def test_the_page_is_the_built_one_with_a_recording_in_it(page_of, tmp_path):
    page_of(STORM, 300, 1)
    template = BUILD.parent.parent / "page/dist/timeline.html"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    empty = '<script id="recording" type="application/octet-stream"></script>'
    assert ELEMENT.sub(empty, page) == template.read_text(encoding="utf-8")


def test_figures_are_those_of_the_columns(page_of):
    document = page_of(STORM, 4000, 3)
    columns, summary = document.columns, document.header["summary"]
    assert 3900 < summary["calls"] == len(columns["call_begin"]) <= 4000
    assert summary["failed_calls"] == sum(code != 0 for code in columns["call_code"]) > 0
    assert summary["tasks"] == len(columns["task_begin"]) > 500
    alive = [taken for taken, end in zip(columns["object_taken"], columns["object_end"])
             if end == float("inf")]
    assert summary["leaks"] == {"objects": len(alive), "bytes": sum(alive)}
    assert {peak["device"] for peak in summary["peaks"]} == {-1, 0, 1}
    for peak in summary["peaks"]:
        changes = []
        for device, taken, begin, end in zip(*(columns[f"object_{name}"] for name in (
                "device", "taken", "begin", "end"))):
            if device == peak["device"]:
                changes += [(begin, 1, taken), (end, 0, -taken)]
        total, largest = 0, (0, 0)
        for moment, _, change in sorted(changes):
            total += change
            largest = max(largest, (total, -moment))
        assert (peak["bytes"], -peak["at_ns"]) == largest


def test_mappings_know_their_blocks(page_of):
    document = page_of(STORM, 2000, 5)
    columns, kinds = document.columns, document.header["object_kinds"]
    mapping, block = kinds.index("mapping"), kinds.index("physical block")
    mappings = [i for i, kind in enumerate(columns["object_kind"]) if kind == mapping]
    assert len(mappings) == document.calls_of("aclrtMapMem") > 100
    for i in mappings:
        whole = columns["object_whole"][i]
        assert columns["object_kind"][whole] == block
        assert columns["object_number"][whole] == columns["object_part_of"][i]


def test_calls_have_their_arguments_stacks_and_threads(page_of):
    document = page_of(STORM, 2000, 5)
    header, columns = document.header, document.columns
    malloc = header["functions"].index("aclrtMalloc")
    assert header["parameters"][malloc] == ["devPtr", "size", "policy"]
    assert header["parameter_types"][malloc] == ["out p", "u", "i"]
    sizes, addresses = set(), set()
    for i, function in enumerate(columns["call_function"]):
        first = columns["call_argument_first"][i]
        if function == malloc:
            address, size, _ = columns["argument_words"][first:first + 3]
            addresses.add(address)
            sizes.add(size)
            assert "recorded_storm.cc:" in header["stacks"][columns["call_stack"][i]]
    assert sizes == {4096, 100000, 1 << 20, 2 << 20, 6 << 20, 20 << 20}
    assert addresses <= set(columns["object_number"])
    assert len(set(columns["call_thread"])) == 5  # those of streams make no calls
    assert [process["pid"] for process in header["processes"]] == [header["threads"][0]["number"]]
    assert header["title"] == "command_recorded_storm 2000 5"


def test_all_processes_are_in_one_page(page_of):
    document = page_of(BUILD / "bin/weights")
    assert len(document.header["processes"]) == 3
    assert {document.header["threads"][thread]["process"]
            for thread in document.columns["call_thread"]} == {0, 1, 2}


def test_a_killed_program_is_shown(understudy, tmp_path):
    recording, page = tmp_path / "recording", tmp_path / "page.html"
    environment = {**clean_environment(), "UNDERSTUDY_TRACE": str(recording),
                   "UNDERSTUDY_RUNTIME_DIR": str(tmp_path / "server"),
                   "LD_LIBRARY_PATH": str(BUILD / "lib64")}
    with subprocess.Popen([STORM, "100000000", "1"], env=environment) as storm:
        try:
            until(lambda: recording.exists() and recording.stat().st_size > 2 << 20)
        finally:
            os.kill(storm.pid, signal.SIGKILL)
    made = understudy("trace", recording, "--html", page)
    assert made.returncode == 0, made.stderr
    document = Document(page)
    assert document.header["summary"]["calls"] > 1000
    assert document.header["summary"]["leaks"]["objects"] > 10


def test_what_cannot_be_read_or_written_is_said(understudy, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"nothing of this kind" * 5000)
    page = tmp_path / "page.html"
    run = understudy("trace", wrong, "--html", page)
    assert run.returncode == 1 and "is no recording" in run.stderr
    assert not page.exists()
    recording = tmp_path / "recording"
    assert understudy("run", "--trace", recording, "--", STORM, 300, 1).returncode == 0
    run = understudy("trace", recording, "--html", tmp_path / "nowhere/page.html")
    assert run.returncode == 1 and "cannot write" in run.stderr
