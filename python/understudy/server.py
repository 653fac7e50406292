# SPDX-License-Identifier: Apache-2.0
"""A private server: devices that only the processes which are told of them see."""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import weakref
from types import TracebackType
from typing import Any, Dict, Mapping, Optional, Sequence, Type, Union

from .library import ServerError, runtime_directory

Setting = Union[str, int, None]

# The keys of docs/configuration.md. The directory is missing: every server has its own.
KEYS = (
    "product",
    "devices",
    "memory",
    "soc",
    "normal_memory",
    "idle_usage",
    "slice",
    "driver",
    "features",
    "size_alignment",
    "attr_set",
    "reserve_flag",
    "expect_ptr",
    "device_binding",
    "sync_d2d",
    "host_access",
    "host_lock",
    "backing",
    "commit",
    "host_budget",
    "host_p2p_memory",
    "backup_memory",
    "poison",
    "log",
    "log_file",
    "fail",
    "schedule",
    "call_sites",
    "check",
    "check_exit",
    "check_report",
    "check_suppressions",
    "trace",
    "trace_limit",
    "trace_ring",
    "trace_stacks",
)


class Server:
    """Devices of their own for this process (with Server(...):) or for programs (server.run).

    A setting that is None is left to the library. Inside the with block the environment of this
    process names the server; its first ACL call, and every child, then uses it.
    """

    def __init__(
        self,
        product: Optional[str] = None,
        devices: Optional[int] = None,
        memory: Setting = None,
        **settings: Setting,
    ) -> None:
        for name in settings:
            if name not in KEYS:
                raise TypeError(f"Server has no setting {name}; it has {', '.join(KEYS)}")
        chosen = dict(settings, product=product, devices=devices, memory=memory)
        self.settings = {key: str(chosen[key]) for key in KEYS if chosen.get(key) is not None}
        self.directory = _make_directory()
        self._remove = weakref.finalize(self, _remove_directory, self.directory, os.getpid())
        self._outside: Optional[Dict[str, str]] = None

    @property
    def environment(self) -> Dict[str, str]:
        """The environment of this process, changed so that a child uses this server."""
        if not self._remove.alive:
            raise ServerError("this server is closed")
        variables = {name: value for name, value in os.environ.items() if not _is_ours(name)}
        for key, value in self.settings.items():
            variables[f"UNDERSTUDY_{key.upper()}"] = value
        variables["UNDERSTUDY_RUNTIME_DIR"] = self.directory
        return variables

    def run(
        self, argv: Sequence[str], env: Optional[Mapping[str, str]] = None, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """subprocess.run on this server; env is added to its environment."""
        return subprocess.run(argv, env={**self.environment, **(env or {})}, **options)

    def close(self) -> None:
        """Restores the variables, if entered, and removes the directory."""
        if self._outside is not None:
            _replace_ours(self._outside)
            self._outside = None
        self._remove()

    def __enter__(self) -> Server:
        if self._outside is not None:
            raise ServerError("this server is entered already")
        inside = self.environment
        used = runtime_directory()
        if used not in (None, self.directory):
            raise ServerError(
                f"this process uses the server in {used} and keeps it for its life;"
                " enter another one before the first ACL call, or in a process of its own"
            )
        self._outside = _ours(os.environ)
        _replace_ours(_ours(inside))
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"<understudy.Server {settings} in {self.directory}>"


def _make_directory() -> str:
    # Its sockets' paths must stay under 108 bytes, which TMPDIR cannot promise.
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else "/tmp"
    # A name by which `understudy ps` and `understudy clean` know the servers of this user.
    return tempfile.mkdtemp(prefix=f"understudy-{os.geteuid()}.test-", dir=parent)


def _remove_directory(path: str, owner: int) -> None:
    # A fork child has the object as well, but not the server.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _is_ours(name: str) -> bool:
    return name.startswith("UNDERSTUDY_") or name == "ASCEND_RT_VISIBLE_DEVICES"


def _ours(variables: Mapping[str, str]) -> Dict[str, str]:
    return {name: value for name, value in variables.items() if _is_ours(name)}


def _replace_ours(variables: Mapping[str, str]) -> None:
    for name in _ours(os.environ):
        del os.environ[name]
    os.environ.update(variables)
