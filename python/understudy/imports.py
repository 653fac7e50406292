# SPDX-License-Identifier: Apache-2.0
"""Tells when a program imports acl, without importing it."""
from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence

from .library import is_here


class AclImports:
    """A finder of modules that finds none, but tells of acl: on_import(acl) at once or later.

    Modules of that name without the software NPU are left alone.
    """

    def __init__(self, on_import: Callable[[ModuleType], object]) -> None:
        self._on_import = on_import

    def install(self) -> None:
        sys.meta_path.insert(0, self)
        if "acl" in sys.modules:
            self._tell(sys.modules["acl"])

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != "acl":
            return None
        others = [finder for finder in sys.meta_path if not isinstance(finder, AclImports)]
        specs = (
            finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec")
        )
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._have_told(spec.loader)
        return spec

    def _have_told(self, loader: Any) -> None:
        execute = loader.exec_module

        def execute_and_tell(module: ModuleType) -> None:
            execute(module)
            self._tell(module)

        loader.exec_module = execute_and_tell

    def _tell(self, module: ModuleType) -> None:
        if is_here() and isinstance(module, ModuleType):
            self._on_import(module)
