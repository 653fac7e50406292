# SPDX-License-Identifier: Apache-2.0
"""pytest plugin: the fixture and the marker npu give a test a software NPU of its own.

A process has one server for its life, so such a test runs in a fork child of pytest. A test that
leaves objects on the devices fails, and so does one in which a check finds something (--npu-check).
A test that fails shows what the software NPU said of failed calls, and keeps its recording
(--npu-record). A test that uses acl without npu is told so.
"""
from __future__ import annotations

import contextlib
import os
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, TypeVar

import pytest
from _pytest.runner import runtestprotocol

from .calls import Calls
from .errors import ErrorRecord
from .forked import (
    Reports, failure_text, interrupted_by_sigterm, make_call, make_report, run_in_child,
    tear_down_here,
)
from .imports import AclImports
from .kept import KeptRecording
from .leaks import leaks_since
from .library import Finding, Objects, ServerError, objects, take_findings
from .limit import Limit
from .recording import Recording
from .server import Server

_Hook = TypeVar("_Hook", bound=Callable[..., object])

_SERVER = pytest.StashKey[Server]()
_SESSION_SERVER = pytest.StashKey[Server]()
_COUNTED_BEFORE = pytest.StashKey[Objects]()
_RECORDINGS = "npu-recordings"
_BY_INI = ("product", "devices", "memory")
_WITHOUT_NPU = (
    "this test uses acl without npu: it runs in the process of pytest, on the server of all"
    " programs of its user, and what it leaves there is not seen; give it the fixture npu or the"
    " marker npu, or set the ini option npu_missing to off"
)

# Of the process: what fails, and what is made where. A fork child has copies of its own, except
# that its parent sees what failed there.
_ERRORS = ErrorRecord()
_CALLS = Calls()


class NpuWarning(pytest.PytestWarning):
    """A test uses acl without npu."""


def _watch(acl: ModuleType) -> None:
    _CALLS.watch(acl)
    _ERRORS.listen()


# Now, because modules of tests bind functions of acl when they are imported.
_IMPORTS = AclImports(_watch)
_IMPORTS.install()


def _first(hook: _Hook) -> _Hook:
    pytest.hookimpl(tryfirst=True)(hook)
    return hook


def _last(hook: _Hook) -> _Hook:
    pytest.hookimpl(trylast=True)(hook)
    return hook


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("npu_product", "product of the npu fixture's server", default="a2")
    parser.addini("npu_devices", "number of devices of the npu fixture's server", default="2")
    parser.addini("npu_memory", "memory of each of these devices", default="4G")
    parser.addini("npu_check", "checks of tests that use npu: on, off, or a list", default="off")
    parser.addini("npu_check_suppressions", "file of findings that are known", default="")
    parser.addini(
        "npu_record", "folder of recordings of failed tests that use npu, or off", default="off"
    )
    parser.addini("npu_missing", "tests that use acl without npu: warn, error, off", default="warn")
    group = parser.getgroup("understudy")
    group.addoption(
        "--npu-check",
        nargs="?",
        const="on",
        metavar="LIST",
        help="let tests that use npu fail where checks find mistakes: all, or --npu-check=LIST",
    )
    group.addoption(
        "--npu-record",
        nargs="?",
        const=_RECORDINGS,
        metavar="DIR",
        help="record tests that use npu, and keep the recordings of those that fail: in"
        f" {_RECORDINGS}, or --npu-record=DIR",
    )
    group.addoption(
        "--npu-in-process",
        action="store_true",
        help="run tests that use npu without a process of their own, all on the first one's server",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "npu(product, devices, memory, leaks, ...): run the test in a process and on a software"
        ' NPU of its own, with these settings of understudy.Server; leaks="allow" lets it leave'
        " objects behind",
    )
    config.addinivalue_line(
        "markers",
        "limit_leaks(bytes, objects): what a test that uses npu may leave behind: so much device"
        ' memory ("1MB"), so many objects',
    )
    missing = config.getini("npu_missing")
    if missing not in ("warn", "error", "off"):
        raise pytest.UsageError(f'npu_missing is "warn", "error" or "off", not {missing!r}')
    checks = config.getoption("npu_check")
    if checks and os.path.exists(checks):
        raise pytest.UsageError(
            f"--npu-check takes {checks} for a list of checks; write --npu-check=on {checks}"
        )
    folder = config.getoption("npu_record")
    if folder not in (None, _RECORDINGS) and "--npu-record" in config.invocation_params.args:
        raise pytest.UsageError(
            f"--npu-record takes {folder} for its folder; write --npu-record={folder}, or"
            f" --npu-record={_RECORDINGS} {folder}"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    _IMPORTS.remove()
    _ERRORS.stop_listening()
    server = config.stash.get(_SESSION_SERVER, None)
    if server is not None:
        server.close()


@pytest.fixture
def npu(request: pytest.FixtureRequest) -> Server:
    """The understudy.Server of this test, which its process uses from the first ACL call on."""
    server = request.node.stash.get(_SERVER, None)
    if not isinstance(server, Server):
        pytest.fail("npu must be an argument, a usefixtures or a marker of the test", pytrace=False)
    return server


@_first
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    _ERRORS.clear()
    _ERRORS.listen()
    _CALLS.begin()
    if not _has_npu(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _run(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _has_npu(item: pytest.Item) -> bool:
    return "npu" in getattr(item, "fixturenames", ()) or bool(item.get_closest_marker("npu"))


def _run(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Reports:
    in_process = item.config.getoption("npu_in_process")
    recorded = contextlib.ExitStack()  # where there is no server of its own that records the test
    with contextlib.nullcontext() if in_process else interrupted_by_sigterm():
        try:
            _limit(item)  # a wrong marker is told before the test
            recording = _recording(item)
            server = _session_server(item) if in_process else _make_server(item, recording)
            if in_process and recording is not None:
                recorded.enter_context(Recording(recording.path, ring=True))
        except (ServerError, TypeError, ValueError, OSError) as error:
            failed = make_report(item, "setup", f"no server for this test: {error}")
            return [failed, make_report(item, "teardown"), *tear_down_here(item, nextitem)]
        if in_process:
            with recorded:
                reports = _run_counted(item, server, nextitem)
        else:
            with contextlib.closing(server), _ERRORS.left_to_child():
                reports = run_in_child(item, nextitem, lambda: _run_on(item, server))
        if recording is not None:
            recording.close(reports)
        return reports


def _run_on(item: pytest.Item, server: Server) -> Reports:
    server.__enter__()
    _ERRORS.take_over()
    item.stash[_COUNTED_BEFORE] = objects()
    return _run_counted(item, server, None)


# ---- Servers


def _marked(item: pytest.Item) -> Dict[str, Any]:
    """The keywords of the test's markers; the nearest one counts."""
    keywords: Dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("npu"))):
        if marker.args:
            raise TypeError("the marker npu takes keywords only")
        keywords.update(marker.kwargs)
    if keywords.get("leaks", "fail") not in ("fail", "allow"):
        raise ValueError(f'leaks is "fail" or "allow", not {keywords["leaks"]!r}')
    return keywords


def _make_server(item: pytest.Item, recording: Optional[KeptRecording] = None) -> Server:
    settings = {key: item.config.getini(f"npu_{key}") for key in _BY_INI}
    settings.update(_check_settings(item.config))
    settings.update(recording.settings if recording is not None else {})
    settings.update(_marked(item))
    settings.pop("leaks", None)
    return Server(**settings)


def _check_settings(config: pytest.Config) -> Dict[str, Any]:
    chosen = config.getoption("npu_check") or config.getini("npu_check")
    if chosen == "off":
        return {}
    known = config.getini("npu_check_suppressions")
    if not known:
        return {"check": chosen}
    return {"check": chosen, "check_suppressions": os.path.join(str(config.rootpath), known)}


def _recording(item: pytest.Item) -> Optional[KeptRecording]:
    config = item.config
    chosen = config.getoption("npu_record")
    base = str(config.invocation_params.dir if chosen else config.rootpath)
    folder = chosen or config.getini("npu_record")
    if folder == "off" or "trace" in _marked(item):  # such a test has one of its own
        return None
    return KeptRecording(os.path.abspath(os.path.join(base, folder)), item.nodeid)


def _session_server(item: pytest.Item) -> Server:
    server = item.config.stash.get(_SESSION_SERVER, None)
    if server is None:
        server = _make_server(item).__enter__()
        item.config.stash[_SESSION_SERVER] = server
    for key, value in _marked(item).items():
        if key != "leaks" and server.settings.get(key) != str(value):
            reason = f"--npu-in-process: the test asks for {key}={value}, the session has {server}"
            item.add_marker(pytest.mark.skip(reason=reason))
    return server


# ---- Leaks and findings


def _limit(item: pytest.Item) -> Limit:
    marker = item.get_closest_marker("limit_leaks")
    return Limit.of(*marker.args, **marker.kwargs) if marker else Limit()


def _run_counted(item: pytest.Item, server: Server, nextitem: Optional[pytest.Item]) -> Reports:
    item.stash[_SERVER] = server
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    found = take_findings()
    reports = _judged(item, reports, _findings_text(item, found))
    _leave_out(reports, found)
    return reports


def _judged(item: pytest.Item, reports: Reports, findings: str) -> Reports:
    if not all(map(_is_clean, reports)):
        if findings:
            failed = next(one for one in reports if not _is_clean(one))
            failed.sections.append(("software NPU: findings of checks", findings))
        return reports
    failure = "\n".join(filter(None, (findings, _leaks_text(item))))
    if not failure:
        return reports
    return [_failed_report(item, one, failure) if one.when == "call" else one for one in reports]


def _leaks_text(item: pytest.Item) -> str:
    before = item.stash.get(_COUNTED_BEFORE, None)
    if before is None or _marked(item).get("leaks") == "allow":
        return ""
    return leaks_since(before, _CALLS, str(item.config.invocation_params.dir), _limit(item))


def _leave_out(reports: Reports, findings: List[Finding]) -> None:
    """They were printed as they came; the failure has them, too."""
    for report in reports:
        for at, (name, printed) in enumerate(report.sections):
            if name.startswith("Captured stderr"):
                for one in findings:
                    printed = printed.replace(one.text, "")
                report.sections[at] = name, printed
        report.sections = [section for section in report.sections if section[1]]


def _findings_text(item: pytest.Item, findings: List[Finding]) -> str:
    """The sentences and the places of the program, or nothing."""
    may_leak = _marked(item).get("leaks") == "allow"
    texts = []
    for one in findings:
        if may_leak and one.check == "leaks":
            continue
        first, _, places = one.text.rstrip().partition("\n")
        times = f" ({one.times} times)" if one.times > 1 else ""
        texts.append("\n".join(filter(None, (first + times, places))))
    return "\n".join(texts)


def _is_clean(report: pytest.TestReport) -> bool:
    # A strict xfail that passed so far was perhaps expected to leak.
    return report.passed or report.longreprtext.startswith("[XPASS(strict)]")


def _failed_report(item: pytest.Item, passed: pytest.TestReport, text: str) -> pytest.TestReport:
    # By the hook, so that xfail applies.
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(
        item=item, call=make_call("call", text)
    )
    report.duration = passed.duration
    report.longrepr = failure_text(item, text)
    return report


@_first
def pytest_fixture_setup(fixturedef: Any, request: Any) -> None:
    # In process, what fixtures of a wider scope allocate outlives the test. They come first.
    if fixturedef.scope == "function":
        _count_before(request.node)


@_last
def pytest_runtest_setup(item: pytest.Item) -> None:
    _count_before(item)


def _count_before(item: pytest.Item) -> None:
    if _SERVER in item.stash and _COUNTED_BEFORE not in item.stash:
        _CALLS.begin()
        item.stash[_COUNTED_BEFORE] = objects()


# ---- What failed


@_first
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    lines = _ERRORS.lines() if report.failed else []
    if lines:
        report.sections.append(("software NPU: errors", "\n".join(lines)))
        _ERRORS.clear()  # the next report of the test has what comes now


# ---- Tests that use acl without npu


@_last
def pytest_runtest_call(item: pytest.Item) -> None:
    if _is_missing(item, "error"):
        pytest.fail(_WITHOUT_NPU, pytrace=False)


@_last
def pytest_runtest_teardown(item: pytest.Item) -> None:
    # Behind the end of the fixtures, because a filter may turn the warning into an exception.
    if _is_missing(item, "warn"):
        item.warn(NpuWarning(_WITHOUT_NPU))


def _is_missing(item: pytest.Item, setting: str) -> bool:
    return _CALLS.used and not _has_npu(item) and item.config.getini("npu_missing") == setting
