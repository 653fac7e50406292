# SPDX-License-Identifier: Apache-2.0
"""understudy trace --chrome, --torch, --csv, --folded, --flame: what other tools open, made of real
recordings, has the fields and figures that those tools need. recorded_memory.cc says what the
program did."""

import copy
import csv
import json
import pathlib
import pickle
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict

import pytest

from conftest import BUILD, COMMAND, clean_environment

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_torch_snapshot  # noqa: E402

MIB = 1 << 20
TOO_MUCH = 1 << 44
OPTIONS = {"--chrome": "trace.json", "--torch": "snapshot.pickle", "--csv": "rows.csv",
           "--folded": "peak.txt", "--flame": "peak.svg", "--leaks-folded": "leaks.txt",
           "--leaks-flame": "leaks.svg"}


def record(directory, *words):
    """Records the program and makes all exports in the directory."""
    environment = {**clean_environment(), "UNDERSTUDY_RUNTIME_DIR": str(directory / "server")}
    recording = directory / "recording"
    words = list(words) or [str(BUILD / "bin/command_recorded_memory")]
    subprocess.run([COMMAND, "run", "--trace", recording, "--trace-stacks", "on", "--", *words],
                   env=environment, check=True, timeout=60, capture_output=True)
    options = [word for option, name in OPTIONS.items() for word in (option, directory / name)]
    subprocess.run([COMMAND, "trace", recording, *options], check=True, timeout=60,
                   capture_output=True)
    return directory


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return record(tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="module")
def events(made):
    return json.loads((made / "trace.json").read_text(encoding="utf-8"))["traceEvents"]


@pytest.fixture(scope="module")
def snapshot(made):
    return check_torch_snapshot.load((made / "snapshot.pickle").read_bytes())


# --- --chrome ---

FIELDS = {
    "M": {"name": str, "args": dict},
    "X": {"name": str, "cat": str, "ts": (int, float), "dur": (int, float), "args": dict},
    "B": {"name": str, "cat": str, "ts": (int, float)},
    "i": {"name": str, "cat": str, "ts": (int, float), "s": str},
    "s": {"name": str, "cat": str, "ts": (int, float), "id": int},
    "f": {"name": str, "cat": str, "ts": (int, float), "id": int, "bp": str},
    "C": {"name": str, "ts": (int, float), "args": dict},
}


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def track_of(event):
    return event["pid"], event["tid"], event["name"] if event["ph"] == "C" else ""


def check_slices(slices):
    """They lie apart or within each other, and are in the order of their beginnings."""
    open_ends, begun = [], 0
    for each in slices:
        begin = nanoseconds(each["ts"])
        end = begin + nanoseconds(each["dur"])
        assert begin >= begun, each
        begun = begin
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], each
        open_ends.append(end)


def check_arrows(events):
    """Each end of an arrow is in a slice of its track; the beginnings come first and once."""
    slices = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[track_of(event)].append(event)
    begun, ended = {}, {}
    for event in events:
        if event["ph"] not in "sf":
            continue
        assert any(event["ts"] == each["ts"] for each in slices[track_of(event)]), event
        ends = begun if event["ph"] == "s" else ended
        key = event["cat"], event["name"], event["id"]
        assert key not in ends, event
        ends[key] = event["ts"]
    assert begun.keys() == ended.keys()
    assert all(begun[key] <= ended[key] for key in begun)


def check_trace(events):
    names = {"process_name": set(), "thread_name": set()}
    tracks = defaultdict(list)
    for event in events:
        for name, kind in {"ph": str, "pid": int, "tid": int, **FIELDS[event["ph"]]}.items():
            assert isinstance(event[name], kind), (name, event)
        assert event["pid"] > 0
        if event["ph"] == "M":
            names.get(event["name"], set()).add((event["pid"], event["tid"]))
        elif event["ph"] not in "sf":
            assert event["ts"] >= 0
            tracks[track_of(event)].append(event)
    processes = {process for process, _ in names["process_name"]}
    for (process, track, counter), found in tracks.items():
        assert process in processes
        assert counter or (process, track) in names["thread_name"]
        assert [each["ts"] for each in found] == sorted(each["ts"] for each in found)
        check_slices([each for each in found if each["ph"] == "X"])
    check_arrows(events)


def names_of(events, what):
    return {event["args"]["name"] for event in events if event["name"] == what}


def slices_named(events, name):
    return [event for event in events if event["ph"] == "X" and event["name"] == name]


def test_chrome_trace_is_what_viewers_read(events):
    check_trace(events)


def test_chrome_trace_shows_processes_threads_and_streams(events):
    processes = [event for event in events if event["name"] == "process_name"]
    assert sorted(event["args"]["name"].rpartition("/")[2] for event in processes) == [
        "command_recorded_memory", "command_recorded_memory", "memory"]
    streams = [name for name in names_of(events, "thread_name") if name.startswith("stream ")]
    assert len(streams) >= 2
    assert all(name.endswith(", device 0") for name in streams)


def test_chrome_trace_shows_arguments_codes_and_stacks(events):
    allocations = slices_named(events, "aclrtMalloc")
    small = [each for each in allocations if each["args"]["size"] == "1000"]
    assert len(small) == 1
    assert small[0]["args"]["code"] == 0
    assert small[0]["args"]["devPtr"].startswith("0x")
    assert small[0]["args"]["stack"].splitlines()[0].startswith("allocate at recorded_memory.cc:")
    blocks = slices_named(events, "aclrtMallocPhysical")
    assert {each["args"]["prop"].partition(",")[0] for each in blocks} == {"device 0", "device 1"}
    failures = Counter(each["name"] for each in events if each.get("cat") == "failure")
    assert failures["aclrtMalloc failed: 207001"] == 1
    assert failures["aclrtMallocPhysical failed: 207001"] == 1
    assert sum(failures.values()) == 3


def test_chrome_trace_leads_from_calls_to_tasks_to_those_that_waited(events):
    copies = slices_named(events, "copy")
    assert [each["args"]["bytes"] for each in copies] == [MIB]
    assert copies[0]["args"]["waited_us"] >= 0
    ends = {(each["cat"], each["id"]): each for each in events if each["ph"] == "s"}
    waits = slices_named(events, "event wait")
    records = slices_named(events, "event record")
    arrows = [each for each in events if each["ph"] == "f" and each["cat"] == "wait"]
    assert [each["ts"] for each in arrows] == [each["ts"] for each in waits]
    assert [ends["wait", each["id"]]["ts"] for each in arrows] == [each["ts"] for each in records]
    queued = [each for each in events if each["ph"] == "f" and each["cat"] == "queue"]
    assert len(queued) == 4  # a function, a record, a wait, a copy
    calls = {each["ts"] for each in events if each.get("cat") == "call"}
    assert all(ends["queue", each["id"]]["ts"] in calls for each in queued)


def counters(events):
    series = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            series[event["name"]].append(event["args"]["bytes"])
    return series


def test_chrome_counters_reach_the_peaks(events, made):
    series = counters(events)
    assert set(series) == {"device 0 memory", "device 1 memory", "host memory"}
    assert all(values[0] == 0 for values in series.values())
    assert max(series["device 0 memory"]) == folded_sum(made / "peak.txt")
    assert series["host memory"][-1] == 0
    assert sum(values[-1] for values in series.values()) == folded_sum(made / "leaks.txt")


def overlap_slices(events):
    """A call ends within the next one of its thread."""
    first, second = [e for e in events if e["ph"] == "X" and e["cat"] == "call" and e["dur"] > 0.1
                     and "use_streams" in e["args"]["stack"]][:2]
    first["dur"] = second["ts"] - first["ts"] + second["dur"] / 2


@pytest.mark.parametrize("damage", [
    lambda events: next(e for e in events if e["ph"] == "X").pop("dur"),
    overlap_slices,
    lambda events: events.remove(next(e for e in events if e["ph"] == "f")),
    lambda events: next(e for e in events if e["ph"] == "C").update(ts=1e12),
    lambda events: next(e for e in events if e["ph"] == "s").update(ts=1),
    lambda events: events.remove(next(e for e in events if e["name"] == "thread_name")),
])
def test_the_check_of_chrome_traces_can_fail(events, damage):
    broken = copy.deepcopy(events)
    damage(broken)
    with pytest.raises((AssertionError, KeyError)):
        check_trace(broken)


# --- --torch ---

def test_torch_snapshot_is_what_viewers_read(snapshot, made):
    check_torch_snapshot.check_snapshot(snapshot)
    with open(made / "snapshot.pickle", "rb") as file:
        assert pickle.load(file) == snapshot


def peak_of(entries):
    total = peak = 0
    for entry in entries:
        total += {"segment_alloc": 1, "segment_free": -1}.get(entry["action"], 0) * entry["size"]
        peak = max(peak, total)
    return peak


def test_torch_snapshot_has_the_figures_of_the_recording(snapshot, events):
    series = counters(events)
    for device in (0, 1):
        values = series[f"device {device} memory"]
        segments = [each for each in snapshot["segments"] if each["device"] == device]
        assert sum(each["total_size"] for each in segments) == values[-1]
        assert peak_of(snapshot["device_traces"][device]) == max(values)


def test_torch_snapshot_tells_memory_in_use_from_the_rest(snapshot):
    blocks = {(each["total_size"], each["blocks"][0]["state"]) for each in snapshot["segments"]
              if each["is_expandable"]}
    assert blocks == {(2 * MIB, "active_allocated"), (4 * MIB, "active_allocated"),
                      (6 * MIB, "inactive")}
    # Mapped three times, in two places at once: in use once.
    actions = Counter((each["action"], each["size"]) for each in snapshot["device_traces"][0])
    assert actions["alloc", 2 * MIB] == 1
    assert actions["alloc", 4 * MIB] == 2
    assert actions["free_completed", 4 * MIB] == 1
    small = [each for each in snapshot["segments"] if each["blocks"][0]["requested_size"] == 1000]
    assert len(small) == 1
    assert small[0]["segment_type"] == "small"
    assert small[0]["requested_size"] == 1000
    frame = small[0]["frames"][0]
    assert (frame["filename"], frame["name"]) == ("recorded_memory.cc", "allocate")
    assert frame["line"] > 0


def test_torch_snapshot_tells_what_did_not_fit(snapshot):
    for trace in snapshot["device_traces"][:2]:
        refused = [each for each in trace if each["action"] == "oom"]
        assert [each["size"] for each in refused] == [TOO_MUCH]
        assert 0 < refused[0]["device_free"] < 64 << 30
        assert refused[0]["frames"][0]["name"] == "ask_for_too_much"


def first_entry(snapshot, action):
    return next(each for each in snapshot["device_traces"][0] if each["action"] == action)


def swap_first_entries(snapshot):
    trace = snapshot["device_traces"][0]
    place = next(i for i, each in enumerate(trace) if each["action"] == "free_requested")
    trace[place], trace[place + 1] = trace[place + 1], trace[place]


@pytest.mark.parametrize("damage, sentence", [
    (lambda s: s.pop("segments"), "no field segments"),
    (lambda s: s["segments"][0].pop("active_size"), "no field active_size"),
    (lambda s: s["segments"][0].update(segment_type="huge"), "segment_type is unknown"),
    (lambda s: s["segments"][0].update(is_expandable=0), "is 0 and no flag"),
    (lambda s: s["segments"][0].update(address=2 ** 63), "no number"),
    (lambda s: s["segments"][0].update(allocated_size=1), "not the sum"),
    (lambda s: s["segments"][0].update(category="unknown"), "field category"),
    (lambda s: s["segments"][0]["blocks"][0].update(address=0), "does not begin where"),
    (lambda s: s["segments"][0].update(total_size=s["segments"][0]["total_size"] + 1),
     "do not fill it"),
    (lambda s: s["segments"][0]["blocks"].clear(), "do not fill it"),
    (lambda s: s["segments"][0]["blocks"][0].update(requested_size=1 << 50), "too large"),
    (lambda s: s["segments"][0]["blocks"][0].update(state="busy"), "state is unknown"),
    (lambda s: s["segments"].pop(), "in other segments"),
    (lambda s: s["segments"][-1].update(device=9), "without trace"),
    (lambda s: first_entry(s, "alloc").pop("frames"), "no field frames"),
    (lambda s: first_entry(s, "alloc").update(action="use"), "action is unknown"),
    (lambda s: first_entry(s, "alloc").update(addr=1), "is in no segment"),
    (lambda s: first_entry(s, "alloc").update(time_us=2 ** 62), "earlier"),
    (lambda s: first_entry(s, "oom").pop("device_free"), "no device_free"),
    (lambda s: first_entry(s, "free_requested").update(addr=1), "was not allocated"),
    (lambda s: first_entry(s, "segment_free").update(size=1), "what is not there"),
    (lambda s: s["device_traces"][0].remove(first_entry(s, "free_completed")), "memory in use"),
    (lambda s: s["device_traces"][0].append(first_entry(s, "segment_alloc")), "earlier"),
    (lambda s: first_entry(s, "alloc")["frames"][0].update(line=None), "no number"),
    (swap_first_entries, "not requested"),
])
def test_the_check_of_snapshots_can_fail(snapshot, damage, sentence):
    broken = pickle.loads(pickle.dumps(snapshot))
    damage(broken)
    with pytest.raises(check_torch_snapshot.Broken, match=sentence):
        check_torch_snapshot.check_snapshot(broken)


@pytest.mark.parametrize("data, sentence", [
    (pickle.dumps({}, protocol=5), "protocol 5"),
    (pickle.dumps({}, protocol=1), ""),
    (pickle.dumps(Counter(), protocol=4), "operation"),
    (pickle.dumps({"segments": [1.5, b"bytes"]}, protocol=4), "operation"),
    (b"\x80\x04](" + b"K\x01" * 1001 + b"e.", "too many operands"),
    (pickle.dumps([1] * 3000, protocol=4)[:-9], "no pickle"),
    (b"", "no pickle"),
])
def test_the_check_of_pickles_can_fail(data, sentence):
    with pytest.raises(check_torch_snapshot.Broken, match=sentence):
        check_torch_snapshot.check_snapshot(check_torch_snapshot.load(data))


def test_the_check_is_a_command(made, tmp_path):
    script = pathlib.Path(check_torch_snapshot.__file__)
    good = subprocess.run([sys.executable, script, made / "snapshot.pickle"], text=True,
                          capture_output=True, check=False)
    assert (good.returncode, good.stdout) == (0, f"{made / 'snapshot.pickle'}: good\n")
    empty = tmp_path / "empty"
    empty.touch()
    broken = subprocess.run([sys.executable, script, empty], text=True, capture_output=True,
                            check=False)
    assert broken.returncode == 1
    assert "no pickle" in broken.stderr


# --- --csv ---

def test_csv_can_be_replayed(made, events):
    with open(made / "rows.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]
    alive, total, peak = {}, 0, 0
    failures = []
    for row in rows:
        pointer, size = int(row["Pointer"], 16), int(row["Size"])
        int(row["Thread"]), int(row["Stream"], 16)
        if row["Action"] == "allocate":
            assert pointer not in alive
            alive[pointer] = size
            total += size
            peak = max(peak, total)
        elif row["Action"] == "free":
            assert alive.pop(pointer) == size
            total -= size
        else:
            assert row["Action"] == "allocate failure"
            failures.append(size)
    series = counters(events)
    # Nothing of device 1 is given back, and it is there before the peak of device 0.
    assert peak == max(series["device 0 memory"]) + max(series["device 1 memory"])
    assert total == series["device 0 memory"][-1] + series["device 1 memory"][-1]
    assert failures == [TOO_MUCH, TOO_MUCH]


# --- --folded, --flame ---

def folded_sum(path):
    return sum(int(line.rpartition(" ")[2]) for line in path.read_text().splitlines())


def test_folded_stacks_have_the_bytes_of_the_peak(made, events):
    lines = (made / "peak.txt").read_text().splitlines()
    assert len(lines) == len({line.rpartition(" ")[0] for line in lines})
    assert folded_sum(made / "peak.txt") == max(counters(events)["device 0 memory"])
    # The function that allocates is the innermost, and those that call it stand before it.
    assert any("use_streams" in line and ";allocate (recorded_memory.cc:" in line for line in lines)
    assert not any("use_streams" in line for line in (made / "leaks.txt").read_text().splitlines())


def test_leaks_say_on_which_device_they_are(made):
    lines = (made / "leaks.txt").read_text().splitlines()
    assert {line.partition(";")[0] for line in lines} == {"device 0", "device 1"}


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["peak", "leaks"])
def test_flame_graph_has_the_sums_of_the_folded_stacks(made, name):
    root = ElementTree.parse(made / f"{name}.svg").getroot()
    frames = [group for group in root.iter(f"{SVG}g") if "data-bytes" in group.attrib]
    total = folded_sum(made / f"{name}.txt")
    assert frames[0].get("data-name") == "all"
    assert int(frames[0].get("data-bytes")) == total
    by_depth = defaultdict(int)
    paths = defaultdict(int)
    open_names = []
    for frame in frames:
        depth, size = int(frame.get("data-depth")), int(frame.get("data-bytes"))
        by_depth[depth] += size
        open_names[depth:] = [frame.get("data-name")]
        paths[";".join(open_names[1:])] = size
        assert f"({size} bytes)" in frame.find(f"{SVG}title").text
        width = float(frame.find(f"{SVG}rect").get("width"))
        assert width == pytest.approx(1180 * size / total, abs=0.01)
    assert by_depth[1] == total
    for line in (made / f"{name}.txt").read_text().splitlines():
        stack, _, size = line.rpartition(" ")
        assert paths[stack] == int(size)


# --- all of them ---

def test_exports_of_a_program_without_memory(tmp_path):
    made = record(tmp_path, sys.executable, "-c",
                  "import ctypes; ctypes.CDLL('libascendcl.so').aclInit(None)")
    check_trace(json.loads((made / "trace.json").read_text())["traceEvents"])
    check_torch_snapshot.check_snapshot(
        check_torch_snapshot.load((made / "snapshot.pickle").read_bytes()))
    assert (made / "rows.csv").read_text().splitlines() == ["Thread,Time,Action,Pointer,Size,Stream"]
    assert (made / "peak.txt").read_text() == ""
    ElementTree.parse(made / "peak.svg")


def test_many_calls_keep_the_peak_and_stay_whole(tmp_path):
    made = record(tmp_path, BUILD / "bin/command_recorded_memory", "3000")
    events = json.loads((made / "trace.json").read_text())["traceEvents"]
    check_trace(events)
    snapshot = check_torch_snapshot.load((made / "snapshot.pickle").read_bytes())
    check_torch_snapshot.check_snapshot(snapshot)
    peak = max(counters(events)["device 0 memory"])
    assert peak_of(snapshot["device_traces"][0]) == peak == folded_sum(made / "peak.txt")


def test_a_file_that_cannot_be_written_is_told(understudy, made):
    result = understudy("trace", made / "recording", "--csv", "/nowhere/rows.csv")
    assert result.returncode == 1
    assert "/nowhere/rows.csv" in result.stderr
