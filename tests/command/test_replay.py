# SPDX-License-Identifier: Apache-2.0
"""understudy replay: recordings of real programs, whole and damaged, on the recorded devices and on
others."""

import json
import os
import pathlib
import re
import signal
import struct

import pytest

from conftest import BUILD
from programs import python, start, until

SOURCE = pathlib.Path(__file__).resolve().parents[2]
STORM = BUILD / "bin/command_replayed_storm"
EXAMPLES = ["demo", "overlap", "budget", "fragments", "snapshot", "weights", "host_kernel"]
GIB = 1 << 30
OUT_OF_MEMORY = 207001
LIBRARY = """
import ctypes, os, threading, time
lib = ctypes.CDLL("libascendcl.so")
def pointer():
    return ctypes.c_void_p()
def size(number):
    return ctypes.c_size_t(number)
def ok(code):
    assert code == 0, code
def allocate(bytes):
    made = pointer()
    return lib.aclrtMalloc(ctypes.byref(made), size(bytes), 0), made
"""


@pytest.fixture
def record(understudy, tmp_path):
    """record(program, *options): the file of a recording of a program that ended well."""
    def make(program, *options):
        file = tmp_path / "recording"
        ended = understudy("run", "--trace", file, "--trace-stacks", "on", *options, "--", *program)
        assert ended.returncode == 0, ended.stderr
        return file
    return make


@pytest.fixture
def replay(understudy):
    """replay(file, *options): what it answers, as JSON, and its status."""
    def make(file, *options):
        ended = understudy("replay", "--json", *options, file)
        assert ended.stdout, ended.stderr
        return json.loads(ended.stdout), ended.returncode
    return make


def check_same(answer, status):
    assert answer["differences"] == []
    assert answer["failure"] == ""
    assert answer["same"] and status == 0


def chunks_of(file):
    """How many parts of a recording were begun (src/observe/recording_format.h)."""
    with file.open("rb") as opened:
        header = opened.read(40)
    return struct.unpack_from("<Q", header, 32)[0] if len(header) == 40 else 0


def why_left_out(answer):
    return {entry["call"]: entry["why"] for entry in answer["left_out"]}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_code_of_an_example_is_the_same(record, replay, example):
    answer, status = replay(record([BUILD / "bin" / example]))
    check_same(answer, status)
    assert answer["calls"]["made"] + answer["calls"]["left_out"] == answer["calls"]["recorded"]
    assert set(why_left_out(answer)) <= {"aclUnderstudyGetBacking", "aclUnderstudyGetHostMemory"}
    assert answer["calls"]["made"] > 20
    for peak in answer["peaks"]:
        assert peak["recorded"] == peak["replay"] > 0


@pytest.mark.parametrize("threads", [1, 8])
def test_every_code_of_a_storm_is_the_same(record, replay, threads):
    answer, status = replay(record([STORM, 4000, 11 * threads, threads]))
    check_same(answer, status)
    assert answer["calls"]["made"] == answer["calls"]["recorded"] > 4000


def test_a_sentence_tells_people(record, understudy):
    ended = understudy("replay", record([BUILD / "bin/demo"]))
    assert ended.returncode == 0, ended.stderr
    assert re.match(r"\d+ calls made again on a2, 8 devices of 64 GiB: all answer as recorded\n",
                    ended.stdout)
    assert re.search(r"peak memory of device 0 +40 MiB +40 MiB\n", ended.stdout)


def test_the_first_call_that_would_not_fit_is_named(record, understudy, replay):
    file = record([BUILD / "bin/budget"])
    ended = understudy("replay", "--memory", "16G", file)
    assert ended.returncode == 1
    assert re.search(r"The first: aclrtMallocWithCfg\(size 1.89 GiB, .*\), called by allocate at "
                     r"budget.cc:\d+\n  answers 207001, and 0 when it was recorded\n"
                     r"  aclrtMallocWithCfg: .*\n  the device had 14.00 GiB of 16 GiB in use\n",
                     ended.stdout), ended.stdout
    answer, status = replay(file, "--memory", "16G")
    assert status == 1 and not answer["same"]
    first = answer["differences"][0]
    assert (first["recorded"], first["replay"]) == (0, OUT_OF_MEMORY)
    assert first["device_memory"] == 16 * GIB and first["device_free"] < 2 * GIB
    assert "budget.cc" in first["stack"]
    assert answer["calls"]["impossible"] > 0  # they use what was not allocated
    peak = answer["peaks"][-1]
    assert peak["device"] == 0 and peak["replay"] <= 16 * GIB < peak["recorded"]


def test_more_memory_lets_calls_succeed_and_holds_nothing_of_it(record, replay):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
code, first = allocate(3 << 30); ok(code)
for _ in range(3): assert allocate(3 << 30)[0] == 207001
ok(lib.aclrtFree(first)); ok(allocate(3 << 30)[0])
ok(lib.aclFinalize())
""")
    file = record(program, "--memory", "4G")
    check_same(*replay(file))
    answer, status = replay(file, "--memory", "8G")
    assert status == 1
    assert [(each["recorded"], each["replay"]) for each in answer["differences"]] == [
        (OUT_OF_MEMORY, 0)] * 3


def test_another_product_may_lack_what_the_program_uses(record, replay):
    answer, status = replay(record([BUILD / "bin/demo"]), "--product", "ipv350")
    assert status == 1
    assert answer["product"] == "ipv350" and answer["memory"] == 4 * GIB
    assert answer["differences"][0]["sentence"].startswith(
        "aclrtReserveMemAddress: product ipv350 (Ascend035) does not have this function")


def test_the_recorded_configuration_is_the_default(record, replay):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(1))
reserved = pointer(); ok(lib.aclrtReserveMemAddress(ctypes.byref(reserved), size(4097), size(0), None,
                                                    ctypes.c_uint64(0)))
block = pointer()
words = (ctypes.c_uint32 * 8)(0, 0, 1, 1, 1)
print(lib.aclrtMallocPhysical(ctypes.byref(block), size(4097), words, ctypes.c_uint64(0)))
ok(lib.aclFinalize())
""")
    file = record(program, "--product", "a3", "--devices", "2", "--memory", "5G",
                  "--size-alignment", "round_up")
    answer, status = replay(file)
    check_same(answer, status)
    assert (answer["product"], answer["devices"], answer["memory"]) == ("a3", 2, 5 * GIB)
    answer, status = replay(file, "--devices", "1")
    assert status == 1
    assert answer["differences"][0]["call"] == "aclrtSetDevice"


def test_only_memory_makes_no_copies(record, replay):
    file = record([BUILD / "bin/overlap"])
    whole, _ = replay(file)
    answer, status = replay(file, "--only", "memory")
    check_same(answer, status)
    functions = {function["call"] for function in answer["functions"]}
    assert {"aclrtMalloc", "aclrtFree", "aclrtMallocHost", "aclrtSetDevice"} <= functions
    assert not {"aclrtMemcpyAsync", "aclrtMemset", "aclrtRecordEvent"} & functions
    assert answer["peaks"] == whole["peaks"]


def test_the_original_pace_takes_as_long(record, replay):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); time.sleep(0.3); ok(lib.aclrtSetDevice(0))
""")
    file = record(program)
    answer, status = replay(file, "--pace", "original")
    check_same(answer, status)
    assert answer["nanoseconds"]["replay"] >= 0.3e9
    assert answer["nanoseconds"]["recorded"] >= 0.3e9


def test_a_stream_waits_for_a_function_as_long_as_it_did(record, replay):
    """The stream is held until the program had seen that it is."""
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
gate = threading.Event()
hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait())
stream = pointer(); ok(lib.aclrtCreateStream(ctypes.byref(stream)))
ok(lib.aclrtLaunchHostFunc(stream, hold, None))
assert lib.aclrtSynchronizeStreamWithTimeout(stream, 20) != 0
assert lib.aclrtSynchronizeStreamWithTimeout(stream, 20) != 0
gate.set()
ok(lib.aclrtSynchronizeStream(stream))
ok(lib.aclFinalize())
""")
    answer, status = replay(record(program))
    check_same(answer, status)
    assert answer["calls"]["made"] == answer["calls"]["recorded"]


def test_callbacks_are_taken_by_a_thread_in_place_of_the_recorded_one(record, replay):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
stream = pointer(); ok(lib.aclrtCreateStream(ctypes.byref(stream)))
def serve():
    ok(lib.aclrtSetDevice(0))
    subscribed.wait()
    for _ in range(3): ok(lib.aclrtProcessReport(-1))
    assert lib.aclrtProcessReport(10) == 507012
subscribed = threading.Event()
server = threading.Thread(target=serve)
server.start()
ok(lib.aclrtSubscribeReport(ctypes.c_uint64(server.ident), stream))
subscribed.set()
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
for _ in range(3): ok(lib.aclrtLaunchCallback(call, None, 1, stream))
ok(lib.aclrtSynchronizeStream(stream))
server.join()
ok(lib.aclrtUnSubscribeReport(ctypes.c_uint64(server.ident), stream))
ok(lib.aclFinalize())
""")
    answer, status = replay(record(program))
    check_same(answer, status)
    assert answer["calls"]["made"] == answer["calls"]["recorded"]


def test_processes_share_by_key_handle_and_event(record, replay):
    program = python(LIBRARY + """
class Handle(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 64)]
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    ok(lib.aclrtSetDevice(0))
    own = ctypes.c_int(); ok(lib.aclrtDeviceGetBareTgid(ctypes.byref(own)))
    os.write(to_parent[1], str(own.value).encode().ljust(20))
    message = os.read(to_child[0], 4096)
    key, notify_key = message[:64].rstrip(b"\\0"), message[64:128].rstrip(b"\\0")
    handle = Handle(); ctypes.memmove(ctypes.byref(handle), message[128:192], 64)
    memory = pointer()
    ok(lib.aclrtIpcMemImportByKey(ctypes.byref(memory), key, ctypes.c_uint64(0)))
    bytes = ctypes.create_string_buffer(4096)
    ok(lib.aclrtMemcpy(bytes, size(4096), ctypes.c_void_p(memory.value + 1024), size(4096), 2))
    notify = pointer()
    ok(lib.aclrtNotifyImportByKey(ctypes.byref(notify), notify_key, ctypes.c_uint64(0)))
    event = pointer()
    lib.aclrtIpcOpenEventHandle.argtypes = [Handle, ctypes.POINTER(ctypes.c_void_p)]
    ok(lib.aclrtIpcOpenEventHandle(handle, ctypes.byref(event)))
    stream = pointer(); ok(lib.aclrtCreateStream(ctypes.byref(stream)))
    ok(lib.aclrtStreamWaitEvent(stream, event))
    ok(lib.aclrtRecordNotify(notify, stream)); ok(lib.aclrtSynchronizeStream(stream))
    ok(lib.aclrtIpcMemClose(key))
    assert lib.aclrtIpcMemClose(key) != 0
    assert lib.aclrtIpcMemClose(b"no key at all") != 0
    os._exit(0)
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
other = (ctypes.c_int32 * 1)(int(os.read(to_parent[0], 20)))
code, memory = allocate(4 << 20); ok(code)
key, notify_key = ctypes.create_string_buffer(65), ctypes.create_string_buffer(65)
ok(lib.aclrtIpcMemGetExportKey(memory, size(4 << 20), key, size(65), ctypes.c_uint64(0)))
ok(lib.aclrtIpcMemSetImportPid(key, other, size(1)))
notify = pointer(); ok(lib.aclrtCreateNotify(ctypes.byref(notify), ctypes.c_uint64(0)))
ok(lib.aclrtNotifyGetExportKey(notify, notify_key, size(65), ctypes.c_uint64(0)))
ok(lib.aclrtNotifySetImportPid(notify, other, size(1)))
event = pointer(); ok(lib.aclrtCreateEventExWithFlag(ctypes.byref(event), ctypes.c_uint32(0x40)))
handle = ctypes.create_string_buffer(64); ok(lib.aclrtIpcGetEventHandle(event, handle))
stream = pointer(); ok(lib.aclrtCreateStream(ctypes.byref(stream)))
ok(lib.aclrtRecordEvent(event, stream)); ok(lib.aclrtWaitAndResetNotify(notify, stream, 0))
os.write(to_child[1], key.value.ljust(64, b"\\0") + notify_key.value.ljust(64, b"\\0") + handle.raw)
ok(lib.aclrtSynchronizeStream(stream))
assert os.waitpid(child, 0)[1] == 0
ok(lib.aclrtFree(memory)); ok(lib.aclFinalize())
""")
    answer, status = replay(record(program))
    check_same(answer, status)
    assert answer["notes"] == []
    assert answer["calls"]["made"] == answer["calls"]["recorded"]


def test_batches_access_lists_and_shared_handles_are_made_anew(record, replay):
    program = python(LIBRARY + """
class Location(ctypes.Structure): _fields_ = [("id", ctypes.c_uint32), ("type", ctypes.c_int)]
class Attribute(ctypes.Structure):
    _fields_ = [("to", Location), ("at", Location), ("rsv", ctypes.c_uint8 * 16)]
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
HOST, DEVICE = 0, 1
def copy(count, host, device, device_id):
    to = (ctypes.c_void_p * count)(*[device + 4096 * i for i in range(count)])
    at = (ctypes.c_void_p * count)(*[host + 4096 * i for i in range(count)])
    sizes = (ctypes.c_size_t * count)(*[4096] * count)
    attribute = Attribute(to=Location(device_id, DEVICE), at=Location(0, HOST))
    first, failed = (ctypes.c_size_t * 1)(0), ctypes.c_size_t()
    return lib.aclrtMemcpyBatch(to, sizes, at, sizes, size(count), ctypes.byref(attribute), first,
                                size(1), ctypes.byref(failed))
code, memory = allocate(4 << 20); ok(code)
source = ctypes.create_string_buffer(4 << 20)
host = ctypes.addressof(source)
ok(copy(1, host, memory.value, 0)); ok(copy(1000, host, memory.value, 0))
assert copy(4, host, memory.value, 1) != 0
assert copy(4, host, memory.value + (4 << 20) - 4096, 0) != 0
properties = (ctypes.c_uint32 * 8)(0, 0, 1, 0, 1)
pool = pointer()
pool_properties = (ctypes.c_uint32 * 16)(0, 0, 0, 1)
ok(lib.aclrtMemPoolCreate(ctypes.byref(pool), pool_properties))
value = ctypes.c_uint64(123456)
ok(lib.aclrtMemPoolSetAttr(pool, 4, ctypes.byref(value)))
assert lib.aclrtMemPoolCreate(ctypes.byref(pool), (ctypes.c_uint32 * 16)(7)) != 0
ok(lib.aclFinalize())
""")
    answer, status = replay(record(program))
    check_same(answer, status)
    assert answer["left_out"] == []


def test_memory_of_a_process_that_had_ended_is_free(record, replay):
    """A recording does not say when a process has ended; what others could have then does."""
    program = python(LIBRARY + """
for _ in range(3):
    child = os.fork()
    if child == 0:
        ok(lib.aclrtSetDevice(0))
        ok(allocate(3 << 30)[0])
        assert allocate(3 << 30)[0] == 207001
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""")
    answer, status = replay(record(program, "--memory", "4G"))
    check_same(answer, status)


def test_a_program_that_was_killed_is_played_to_its_end(replay, tmp_path):
    file = tmp_path / "recording"
    program = start("run", "--trace", file, "--", STORM, 100_000_000, 5, 4,
                    env={"UNDERSTUDY_RUNTIME_DIR": str(tmp_path / "server")})
    until(lambda: file.exists() and chunks_of(file) > 16)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    answer, status = replay(file)
    check_same(answer, status)
    assert answer["calls"]["made"] == answer["calls"]["recorded"] > 1000


def test_a_ring_is_played_as_far_as_it_tells(record, replay):
    file = record([STORM, 20000, 3, 4], "--trace-ring", "on", "--trace-limit", "1M")
    answer, _ = replay(file)
    assert answer["failure"] == ""
    assert "the recording is a ring: its beginning may be missing" in answer["notes"]
    assert why_left_out(answer)["aclrtSynchronizeStream"] == (
        "what it uses was made by a call that is not in the recording")
    assert answer["calls"]["made"] > 1000
    assert answer["calls"]["different"] < answer["calls"]["made"] / 20


def test_a_part_of_a_run_is_played_as_far_as_it_tells(replay, understudy, tmp_path):
    file = tmp_path / "recording"
    program = python(LIBRARY + f"""
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(3))
code, before = allocate(4096); ok(code)
stream = pointer(); ok(lib.aclrtCreateStream(ctypes.byref(stream)))
ok(lib.aclUnderstudyStartRecording({os.fsencode(file)!r}, 0))
ok(lib.aclrtFree(before))
ok(allocate(8192)[0])
ok(lib.aclrtSynchronizeStream(stream))
ok(allocate(8192)[0])
ok(lib.aclUnderstudyStopRecording())
""")
    ended = understudy("run", "--", *program)
    assert ended.returncode == 0, ended.stderr
    answer, status = replay(file)
    check_same(answer, status)
    assert answer["calls"]["made"] == 2
    assert {"aclrtFree", "aclrtSynchronizeStream"} <= set(why_left_out(answer))
    assert [peak["device"] for peak in answer["peaks"]] == [3]
    assert any("a part of its run" in note for note in answer["notes"])


def test_a_file_that_was_cut_short_is_played_as_far_as_it_goes(record, replay, tmp_path):
    whole = record([STORM, 8000, 3, 4]).read_bytes()
    cut = tmp_path / "cut"
    for size in (len(whole) // 2, len(whole) * 2 // 3 + 12345, 200_000):
        cut.write_bytes(whole[:size])
        answer, _ = replay(cut)
        assert answer["failure"] == ""
        assert any("cut short" in note for note in answer["notes"])
        assert answer["calls"]["different"] <= answer["calls"]["made"] / 20


def test_failures_on_purpose_are_not_expected_again(record, replay):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
for i in range(4): assert (allocate(4096)[0] == 0) == (i != 1)
""")
    answer, status = replay(record(program, "--fail", "aclrtMalloc:nth=2"))
    assert status == 1
    assert [(each["recorded"] != 0, each["replay"]) for each in answer["differences"]] == [(True, 0)]
    notes = "\n".join(answer["notes"])
    assert "the program ran with --fail=aclrtMalloc:nth=2, the replay does not" in notes
    assert "maybe on purpose: 1 of 1" in notes


def test_calls_that_cannot_be_made_are_listed_with_the_reason(record, replay):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
lib.aclrtAllocatorCreateDesc.restype = ctypes.c_void_p
lib.aclrtAllocatorDestroyDesc.argtypes = [ctypes.c_void_p]
for _ in range(2): ok(lib.aclrtAllocatorDestroyDesc(lib.aclrtAllocatorCreateDesc()))
""")
    answer, status = replay(record(program))
    assert status == 0
    assert {entry["call"]: entry["calls"] for entry in answer["left_out"]} == {
        "aclrtAllocatorCreateDesc": 2, "aclrtAllocatorDestroyDesc": 2}


def test_a_standstill_is_told_and_ended(record, understudy):
    program = python(LIBRARY + """
ok(lib.aclInit(None)); ok(lib.aclrtSetDevice(0))
stream, other = pointer(), pointer()
ok(lib.aclrtCreateStream(ctypes.byref(stream))); ok(lib.aclrtCreateStream(ctypes.byref(other)))
notify = pointer(); ok(lib.aclrtCreateNotify(ctypes.byref(notify), ctypes.c_uint64(0)))
ok(lib.aclrtWaitAndResetNotify(notify, stream, 0))
ok(lib.aclrtDestroyStreamForce(stream))
""")
    file = record(program)
    words = file.read_bytes()
    # The recording of another program: the last call synchronises instead.
    changed = words.replace(b"aclrtDestroyStreamForce(", b"aclrtSynchronizeStream( ")
    assert changed != words
    file.write_bytes(changed)
    ended = understudy("replay", "--standstill", "1", file)
    assert ended.returncode == 1
    assert "It ended early: no call has ended for 1 s" in ended.stdout


@pytest.mark.parametrize("arguments, status, sentence", [
    (["/nonexistent"], 1, "understudy replay: "),
    (["--memory", "lots", "/nonexistent"], 2, "memory"),
    (["--pace", "slow", "/nonexistent"], 2, "pace"),
    ([], 2, "FILE"),
])
def test_wrong_arguments_are_told(understudy, arguments, status, sentence):
    ended = understudy("replay", *arguments)
    assert ended.returncode == status
    assert sentence in ended.stderr
    assert ended.stdout == ""


def test_what_is_no_recording_is_told(understudy, tmp_path):
    file = tmp_path / "file"
    file.write_text("no recording")
    assert understudy("replay", file).returncode == 1


def test_each_function_of_the_library_has_a_way_to_be_called_again():
    table = (SOURCE / "tools/replay/call_table.cc").read_text()
    known = set(re.findall(r"US_(?:AGAIN|NEVER)\((acl\w+)", table))
    recorded = set()
    for file in (SOURCE / "src/capi").glob("*.cc"):
        recorded |= set(re.findall(r"^[\w ]*?\**\s*(acl\w+)\([^;{}]*\)\s*\{[^}]*?US_CALL",
                                   file.read_text(), re.MULTILINE))
    assert len(recorded) > 250
    assert recorded == known
