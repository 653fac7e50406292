# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing Ascend programs on the software NPU.

Server gives a program, or this process, devices of its own; objects() tells what this process has
alive on them. limit_leaks and ratchet fail where a piece of a program leaves objects, or leaves more
in every cycle. record() records a piece of a program for the command understudy trace. The pytest
plugin is understudy.pytest_plugin. Nothing here imports acl, but for the block of record().
"""
from __future__ import annotations

from .growth import LeakError, limit_leaks, ratchet
from .library import Objects, ServerError, objects, runtime_directory
from .recording import Recording, record
from .server import Server

__all__ = [
    "LeakError", "Objects", "Recording", "Server", "ServerError", "limit_leaks", "objects", "ratchet",
    "record", "runtime_directory",
]
