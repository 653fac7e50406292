# SPDX-License-Identifier: Apache-2.0
"""The recordings of tests: one file for each, which stays if the test fails."""
from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
from typing import Dict, List

import pytest

# Characters that no shell and no file system mind.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.,=+-]")
_MOST_CHARACTERS = 180


class KeptRecording:
    """Of one run of a test, in a folder for those of all tests."""

    def __init__(self, folder: str, nodeid: str) -> None:
        self.path = os.path.join(folder, _file_name(nodeid))
        os.makedirs(folder, exist_ok=True)
        self._remove()  # of an earlier run

    @property
    def settings(self) -> Dict[str, str]:
        """For a server whose processes are all recorded; the end of a test is what matters."""
        return {"trace": self.path, "trace_stacks": "on", "trace_ring": "on"}

    def close(self, reports: List[pytest.TestReport]) -> None:
        """Tells of it in the report of the failure; without one, removes it."""
        failed = [report for report in reports if report.failed]
        if not failed:
            self._remove()
        elif os.path.exists(self.path):
            shown = os.path.relpath(self.path)
            path = self.path if shown.startswith(os.pardir) else shown
            text = f"{path}\n  understudy trace {shlex.quote(path)}"
            failed[0].sections.append(("software NPU: recording", text))

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)


def _file_name(nodeid: str) -> str:
    where, bracket, parameters = nodeid.partition("[")
    name = where.replace("::", "-").replace("/", "-") + (f"-{parameters[:-1]}" if bracket else "")
    safe = _UNSAFE.sub("_", name)[:_MOST_CHARACTERS].lstrip(".")
    if safe != name:  # or another test might have the same
        safe += "-" + hashlib.sha256(nodeid.encode(errors="replace")).hexdigest()[:8]
    return safe + ".rec"
