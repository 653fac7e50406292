# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing Ascend programs on the software NPU.

Server gives a program, or this process, devices of its own; objects() tells what this process has
alive on them. The pytest plugin is understudy.pytest_plugin. Nothing here imports acl.
"""
from __future__ import annotations

from .library import Objects, ServerError, objects, runtime_directory
from .server import Server

__all__ = ["Objects", "Server", "ServerError", "objects", "runtime_directory"]
