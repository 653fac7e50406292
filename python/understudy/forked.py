# SPDX-License-Identifier: Apache-2.0
"""Runs one pytest item in a fork child, which sends the reports to its parent.

A child that dies is one failed test. Fixtures that the parent had set up before are seen by the
child and torn down by the parent; all others are the child's own.
"""
from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import re
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from typing import IO, Any, Callable, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Tuple

import pytest
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative
from _pytest.junitxml import xml_key

Reports = List[pytest.TestReport]

_PR_SET_PDEATHSIG = 1
_ENDS_SESSION = (pytest.exit.Exception, KeyboardInterrupt)
_HERE = re.escape(os.path.dirname(__file__))
# What every stack has below the test.
_INNER_FRAME = re.compile(
    rf'File "({_HERE}|.*/(_pytest|pluggy)/|.*/pytest/__main__\.py|.*/bin/py\.?test"|<frozen runpy>)'
)


class _Result(NamedTuple):
    """What a child sends."""

    reports: List[Dict[str, Any]]
    warnings: List[Tuple[Warning, str, int]]
    suite_properties: List[Tuple[str, str]]  # new ones
    stop: Optional[BaseException]  # one of _ENDS_SESSION
    should_stop: Any


def run_in_child(
    item: pytest.Item, nextitem: Optional[pytest.Item], run: Callable[[], Reports]
) -> Reports:
    """Calls run, which must tear down everything, in a child, and gives the reports to log."""
    _prepare_fork(item)
    # Files, not pipes: other processes may inherit them; the parent waits for its child only.
    with tempfile.TemporaryFile() as result_file, tempfile.TemporaryFile() as crash_file:
        child = _fork()
        if child == 0:
            _be_child(item, run, result_file, crash_file)
        end = _wait(child)
        result_file.seek(0)
        # Written at the very end, so one that is there is whole.
        if end == "exit code 0" and os.fstat(result_file.fileno()).st_size > 0:
            reports = _accept(item, pickle.load(result_file))
        else:
            crash_file.seek(0)
            reports = _crash_reports(item, end, crash_file.read().decode(errors="replace"))
    return reports + tear_down_here(item, nextitem)


def make_report(item: pytest.Item, when: Any, failure: str = "") -> pytest.TestReport:
    """A report of a phase that did not run: it passed, or failed with a text."""
    report = pytest.TestReport.from_item_and_call(item, make_call(when, failure))
    if failure:
        report.longrepr = failure_text(item, failure)
    return report


def make_call(when: Any, failure: str) -> pytest.CallInfo[None]:
    def end() -> None:
        if failure:
            pytest.fail(failure, pytrace=False)

    return pytest.CallInfo.from_call(end, when)


def failure_text(item: pytest.Item, text: str) -> ReprExceptionInfo:
    """A text alone, the first line of which the summary shows as well."""
    path, line, _ = item.location
    place = ReprFileLocation(path, (line or 0) + 1, text.partition("\n")[0])
    return ReprExceptionInfo(ReprTracebackNative([text + "\n"]), place)


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the session as Ctrl-C does, unless the program has decided about it."""
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


# ---- The child


def _prepare_fork(item: pytest.Item) -> None:
    _flush(item.config)
    factory = getattr(item.config, "_tmp_path_factory", None)
    if factory and any(name.startswith("tmp") for name in getattr(item, "fixturenames", ())):
        factory.getbasetemp()  # once per session, not once per child


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns if there are threads; the child ends by os._exit and waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _flush(config: pytest.Config) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:  # as it is in a worker of a distributed session
        reporter.flush()


def _be_child(
    item: pytest.Item, run: Callable[[], Reports], result_file: IO[bytes], crash_file: IO[bytes]
) -> NoReturn:
    child = os.getpid()
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # no test outlives pytest
        if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # of interrupted_by_sigterm
        faulthandler.enable(file=crash_file)
        _leave_to_parent(item.session)
        result = _run(item, run)
        if os.getpid() == child:  # a test may fork and return twice
            pickle.dump(result, result_file)
            result_file.flush()
            code = 0
    except BaseException:
        crash_file.write(traceback.format_exc().encode())
        crash_file.flush()
    finally:
        # Whatever a test did to the streams: no child goes on as a second pytest.
        try:
            _flush(item.config)
        finally:
            os._exit(code)  # without the exit handlers, which are the parent's


def _leave_to_parent(session: Any) -> None:
    for finalizers, _ in session._setupstate.stack.values():
        finalizers.clear()
    for definitions in session._fixturemanager._arg2fixturedefs.values():
        for definition in definitions:
            definition._finalizers.clear()


def _run(item: pytest.Item, run: Callable[[], Reports]) -> _Result:
    reports: Reports = []
    stop: Optional[BaseException] = None
    suite_properties = len(_suite_properties(item.config))
    with warnings.catch_warnings(record=True) as caught:
        try:
            reports = run()
        except _ENDS_SESSION as error:
            stop = error
    hook = item.config.hook
    return _Result(
        [_sendable(hook.pytest_report_to_serializable(config=item.config, report=one))
         for one in reports],
        [(_portable(one), one.filename, one.lineno) for one in caught],
        _suite_properties(item.config)[suite_properties:],
        stop,
        item.session.shouldstop,
    )


def _sendable(report: Dict[str, Any]) -> Dict[str, Any]:
    try:
        pickle.dumps(report)
    except Exception:  # a test may record any object as a property
        report["user_properties"] = [(name, repr(it)) for name, it in report["user_properties"]]
    return report


def _suite_properties(config: pytest.Config) -> List[Tuple[str, str]]:
    """Where record_testsuite_property puts them."""
    return config.stash[xml_key].global_properties if xml_key in config.stash else []


def _portable(warning: warnings.WarningMessage) -> Warning:
    message = warning.message
    try:
        pickle.loads(pickle.dumps(message))
    except Exception:  # whatever the class of a warning does
        return UserWarning(f"{warning.category.__name__}: {message}")
    return message if isinstance(message, Warning) else warning.category(message)


# ---- The parent


def _wait(child: int) -> str:
    """Waits for the end of the child and says which it was."""
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:  # the program ignores SIGCHLD, so how it ended is lost
        return "exit code 0"
    except BaseException as error:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if isinstance(error, pytest.fail.Exception):  # the signal of a timeout raised it
            return str(error)
        raise
    if not os.WIFSIGNALED(status):
        return f"exit code {os.WEXITSTATUS(status)}"
    return _signal_name(os.WTERMSIG(status))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _crash_reports(item: pytest.Item, end: str, details: str) -> Reports:
    lines = [f"{end}: the test's process ended before the test"]
    lines += [line for line in details.splitlines() if not _INNER_FRAME.search(line)]
    report = make_report(item, "call", "\n".join(lines))
    capture = _capture_manager(item)
    unread = capture.read_global_capture() if capture else ()
    for stream, printed in zip(("stdout", "stderr"), unread):
        if printed:
            report.sections.append((f"Captured {stream} call", printed))
    return [report, make_report(item, "teardown")]


def _accept(item: pytest.Item, result: _Result) -> Reports:
    for warning, path, line in result.warnings:
        warnings.showwarning(warning, type(warning), path, line)  # filtered already
    _suite_properties(item.config).extend(result.suite_properties)
    if result.stop is not None:
        raise result.stop
    item.session.shouldstop = item.session.shouldstop or result.should_stop
    hook = item.config.hook
    return [
        hook.pytest_report_from_serializable(config=item.config, data=data)
        for data in result.reports
    ]


def tear_down_here(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Reports:
    """Ends what earlier tests set up here and the next one does not need, as any test would."""
    state: Any = item.session._setupstate

    def tear_down() -> None:
        state.teardown_exact(nextitem)

    capture = _capture_manager(item)
    with capture.item_capture("teardown", item) if capture else contextlib.nullcontext():
        call = pytest.CallInfo.from_call(tear_down, "teardown", reraise=_ENDS_SESSION)
    return [pytest.TestReport.from_item_and_call(item, call)] if call.excinfo else []


def _capture_manager(item: pytest.Item) -> Any:
    return item.config.pluginmanager.getplugin("capturemanager")
