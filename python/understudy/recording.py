# SPDX-License-Identifier: Apache-2.0
"""Recordings that a program makes of a part of itself, for the command understudy trace."""
from __future__ import annotations

import os
import subprocess
from types import TracebackType
from typing import Optional, Type, Union

from .library import ServerError, installed_command, start_recording, stop_recording
from .limit import parse_size


class Recording:
    """What record() gives: a file, which is written inside of the with block and can be read."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        stacks: bool = True,
        limit: Union[int, str] = "1G",
        ring: bool = False,
    ) -> None:
        self.path = os.path.abspath(path)
        self._stacks = stacks
        self._limit = parse_size(limit)
        self._ring = ring

    def summary(self) -> str:
        """What understudy trace tells of it."""
        return self._shown()

    def page(self, path: Union[str, "os.PathLike[str]"]) -> str:
        """Makes a page for a browser; gives its path."""
        page = os.path.abspath(path)
        self._shown("--html", page)
        return page

    def _shown(self, *options: str) -> str:
        command = installed_command()
        if command is None:
            raise ServerError("the command understudy is neither beside the library nor in PATH")
        done = subprocess.run(
            [command, "trace", self.path, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode != 0:
            raise ServerError(done.stderr.strip() or f"{command} trace failed: {done.returncode}")
        return done.stdout

    def __enter__(self) -> Recording:
        start_recording(self.path, stacks=self._stacks, limit=self._limit, ring=self._ring)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        stop_recording()

    def __repr__(self) -> str:
        return f"<understudy.Recording {self.path}>"


def record(
    path: Union[str, "os.PathLike[str]"],
    *,
    stacks: bool = True,
    limit: Union[int, str] = "1G",
    ring: bool = False,
) -> Recording:
    """with record("run.rec") as recording: records what this process does in the block.

    Calls with their arguments, objects and tasks of all threads are in it, with the lines of Python
    that called if stacks. A recording that the file is already is replaced. When it is as long as
    the limit, what comes then is lost, or with ring the oldest part. Of objects from before the
    block only the end is known. A ServerError if the process is recorded already.
    """
    return Recording(path, stacks=stacks, limit=limit, ring=ring)
