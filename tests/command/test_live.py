# SPDX-License-Identifier: Apache-2.0
"""understudy live: a real server, asked as browsers and others ask."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import zlib

import pytest

from conftest import BUILD, COMMAND, clean_environment
from processes import holders
from programs import until

STORM = BUILD / "bin/command_recorded_storm"
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)\n")


class Live:
    """`understudy live` with these words, and what it answers."""

    def __init__(self, words, folder, **options):
        self.environment = {**clean_environment(), "UNDERSTUDY_RUNTIME_DIR": str(folder / "server"),
                            "TMPDIR": str(folder)}
        self.process = subprocess.Popen([COMMAND, "live", *map(str, words)], text=True,
                                        env=self.environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)

    def read_address(self, stream):
        """Reads where the page is."""
        line = stream.readline()
        found = ADDRESS.fullmatch(line)
        assert found, line
        self.port, self.folder = int(found[1]), found[2]
        return self

    def get(self, path, method="GET", host=None, **headers):
        """The answer to a request and its content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True)
            if host != "":
                connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer, answer.read()

    def status(self, path, **options):
        """The status of the answer to a request."""
        return self.get(path, **options)[0].status

    def document(self):
        """The header of the document as it is now."""
        answer, content = self.get(self.folder + "recording")
        assert answer.status == 200
        data = zlib.decompress(content)
        (size,) = struct.unpack_from("<I", data, 8)
        return json.loads(data[12:12 + size])

    def end(self, number=signal.SIGINT):
        """Ends it, and gives its exit status and what it wrote since."""
        self.process.send_signal(number)
        output = self.process.communicate(timeout=60)
        return self.process.returncode, output


@pytest.fixture(name="live")
def fixture_live(tmp_path):
    """live(*words): started, with its address known."""
    with contextlib.ExitStack() as started:
        def start(*words, **options):
            process = Live(words, tmp_path, **options)

            def kill():
                process.process.kill()
                process.process.communicate()
            started.callback(kill)
            told = process.process.stderr if "--" in words else process.process.stdout
            return process.read_address(told)
        yield start


@pytest.fixture(name="recording")
def fixture_recording(understudy, tmp_path):
    """A recording of a program that has ended."""
    path = tmp_path / "recording"
    assert understudy("run", "--trace", path, "--", STORM, 300, 1).returncode == 0
    return path


def test_the_page_and_its_recording_are_at_the_address(live, recording):
    server = live(recording)
    answer, content = server.get(server.folder)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b' data-live="recording"></script>' in content
    assert "Access-Control-Allow-Origin" not in answer.headers
    document = server.document()
    assert document["title"] == "command_recorded_storm 300 1"
    assert document["notes"] == ["live: all recorded programs have ended"]
    assert server.status(server.folder, host=f"localhost:{server.port}") == 200


def test_without_the_token_there_is_nothing(live, recording):
    server = live(recording)
    wrong = "/" + "0" * 32 + "/"
    for path in ("/", "/recording", wrong, wrong + "recording", server.folder[:-1],
                 server.folder + "x", server.folder + "../", server.folder[:-2] + "/",
                 server.folder + "recording?x=1", "/" + "a" * 4000):
        assert server.status(path) == 404, path


def test_other_names_of_the_host_are_refused(live, recording):
    server = live(recording)
    for host in ("example.com", f"example.com:{server.port}", "127.0.0.1", "localhost", "",
                 f"127.0.0.1:{server.port + 1}", f"127.0.0.1:{server.port}.example.com"):
        assert server.status(server.folder, host=host) == 403, host


def test_only_reading_is_known(live, recording):
    server = live(recording)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "X"):
        assert server.status(server.folder, method=method) == 405
    answer, content = server.get(server.folder, method="HEAD")
    assert answer.status == 200 and content == b""
    assert int(answer.headers["Content-Length"]) > 50000


@pytest.mark.parametrize("request_text", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\n\n\r\n\r\n", b"GET / HTTP/9\r\n\r\n",
    b"GET x HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
    b"\x00\xff\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\x00b\r\n\r\n"])
def test_garbage_is_refused(live, recording, request_text):
    server = live(recording)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(request_text)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert server.status(server.folder) == 200


def test_requests_without_an_end_are_cut_off(live, recording):
    server = live(recording)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(1000):
                connection.sendall(b"GET /" + b"a" * 4096)
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert server.status(server.folder) == 200


def test_many_connections_at_a_time_are_served(live, recording):
    server = live(recording)
    request = f"GET {server.folder}recording HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    with contextlib.ExitStack() as opened:
        connections = [opened.enter_context(
            socket.create_connection(("127.0.0.1", server.port), timeout=60)) for _ in range(20)]
        for connection in connections:  # in two parts, all of them open
            connection.sendall(request[:30].encode())
        for connection in connections:
            connection.sendall(request[30:].encode())
        for connection in connections:
            answer = b""
            while part := connection.recv(65536):
                answer += part
            head, _, content = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            assert zlib.decompress(content).startswith(b"USPAGE1\n")


def test_what_is_known_is_not_sent_again(live, recording):
    server = live(recording)
    answer, _ = server.get(server.folder + "recording")
    etag = answer.headers["ETag"]
    answer, content = server.get(server.folder + "recording", If_None_Match=etag)
    assert (answer.status, content) == (304, b"")
    assert server.status(server.folder + "recording", If_None_Match='"other"') == 200


def test_a_recording_is_waited_for_and_followed(live, tmp_path):
    path = tmp_path / "later"
    server = live(path)
    assert server.document()["notes"] == [f"live: waiting for a recording in {path}"]
    environment = {**server.environment, "UNDERSTUDY_TRACE": str(path)}
    with holders(environment, "h 20") as (first,):
        document = server.document()
        assert document["notes"] == ["live: this page follows the program that is recorded"]
        assert [process["pid"] for process in document["processes"]] == [first.pid]
        assert document["summary"]["leaks"]["bytes"] == 20 << 20
        with holders(environment, "h 40") as (second,):
            document = server.document()
            pids = [process["pid"] for process in document["processes"]]
            assert pids == [first.pid, second.pid]
            assert document["summary"]["leaks"]["bytes"] == 60 << 20
        assert "follows" in server.document()["notes"][0]
    document = server.document()
    assert document["notes"] == ["live: all recorded programs have ended"]
    assert len(document["processes"]) == 2


def test_a_file_that_is_no_recording_is_refused(understudy, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("nothing of this kind" * 10)
    run = understudy("live", wrong)
    assert run.returncode == 1 and "is no recording" in run.stderr
    run = understudy("live")
    assert run.returncode == 2 and "a recording is missing" in run.stderr


def test_the_port_can_be_chosen(live, recording, understudy):
    first = live(recording)
    run = understudy("live", "--port", first.port, recording)
    assert run.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {first.port}: Address already in use" in run.stderr
    port = first.port
    first.end()
    assert live("--port", port, recording).port == port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(live, recording, number):
    server = live(recording)
    assert server.end(number)[0] == -number
    with pytest.raises(ConnectionRefusedError):
        server.get(server.folder)


def test_only_this_machine_is_listened_to(live, recording):
    server = live(recording)
    lines = (line.split() for line in open("/proc/net/tcp", encoding="ascii"))
    listening = [words[1] for words in lines if words[1].endswith(f":{server.port:04X}")
                 and words[3] == "0A"]
    assert listening == [f"0100007F:{server.port:04X}"]


def test_a_program_is_run_and_shown(live, tmp_path):
    program = [STORM, "2000", "1"]
    server = live("--", "--product", "a3", *program)
    ended = server.process.stderr.readline()
    assert "the program has ended with status 0" in ended
    document = server.document()
    assert document["title"] == "command_recorded_storm 2000 1"
    assert document["processes"][0]["product"] == "a3"
    assert document["stacks_recorded"]
    code, _ = server.end()
    assert code == -signal.SIGINT
    # What it was recorded into is gone.
    assert [each.name for each in tmp_path.iterdir() if "understudy-live" in each.name] == []


def test_a_program_can_be_recorded_into_a_file_that_stays(live, tmp_path):
    path = tmp_path / "kept"
    server = live(path, "--", STORM, "300", "1")
    assert "status 0" in server.process.stderr.readline()
    server.end()
    assert path.stat().st_size > 0


def test_the_program_ends_with_it(live, tmp_path):
    server = live("--", "sh", "-c", 'echo "$$"; exec sleep 1000')
    program = int(server.process.stdout.readline())
    assert os.path.exists(f"/proc/{program}")
    code, _ = server.end(signal.SIGTERM)
    assert code == -signal.SIGTERM
    until(lambda: not os.path.exists(f"/proc/{program}"))
    assert [each.name for each in tmp_path.iterdir() if "understudy-live" in each.name] == []


def test_a_program_that_cannot_be_run_is_told(understudy):
    run = understudy("live", "--", "/nowhere/program")
    assert run.returncode == 127 and "/nowhere/program" in run.stderr
    run = understudy("live", "--", "--product", "nothing", "true")
    assert run.returncode == 2 and "--product" in run.stderr
