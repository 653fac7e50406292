# SPDX-License-Identifier: Apache-2.0
"""The shape of the module: its parts, its names, what it does without."""
import importlib
import sys
import types

import pytest

import acl
from signatures import FUNCTIONS, OPTIONAL, SIGNATURES


@pytest.mark.parametrize("name", ["rt", "util", "media"])
def test_parts_are_ordinary_modules(name):
    part = getattr(acl, name)
    assert type(part) is types.ModuleType
    assert part.__name__ == f"acl.{name}"
    assert sys.modules[f"acl.{name}"] is part
    assert importlib.import_module(f"acl.{name}") is part


@pytest.mark.parametrize(
    "statement",
    [
        "import acl.rt; malloc = acl.rt.malloc",
        "from acl import rt; malloc = rt.malloc",
        "from acl.rt import malloc",
        "import acl.util; import acl; malloc = acl.rt.malloc",
    ],
)
def test_parts_can_be_imported_first(fresh, statement):
    fresh(f"{statement}\nassert callable(malloc)")


@pytest.mark.parametrize("module", SIGNATURES)
def test_dir_and_hasattr_are_truthful(module):
    part = importlib.import_module(module)
    names = {name for owner, name, _ in FUNCTIONS if owner == module}
    names |= {name for owner, name in OPTIONAL if owner == module}
    assert names <= set(dir(part))
    assert all(callable(getattr(part, name)) for name in names)
    assert all(hasattr(part, name) for name in dir(part))


@pytest.mark.parametrize("module", SIGNATURES)
def test_there_are_no_constants(module):
    part = importlib.import_module(module)
    public = {name: getattr(part, name) for name in dir(part) if not name.startswith("_")}
    others = [name for name, value in public.items() if not callable(value)]
    assert all(type(public[name]) is types.ModuleType for name in others)
    assert [name for name in public if name != name.lower()] == []


def test_names_that_never_existed_are_absent():
    for part, name in (
        (acl.rt, "MEMCPY_HOST_TO_DEVICE"),
        (acl, "ACL_SUCCESS"),
        (acl.util, "vector_to_ptr"),
        (acl.rt, "free_dvpp"),
    ):
        with pytest.raises(AttributeError):
            getattr(part, name)


def test_the_module_does_without_numpy(fresh):
    fresh(
        """
        import sys
        sys.modules["numpy"] = None
        import acl
        assert acl.rt.get_device_count() == (8, 0)
        assert acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(b"plain"), 5) == b"plain"
        """
    )


def test_it_can_be_imported_anew(fresh):
    fresh(
        """
        import pickle, sys
        import acl
        for name in [name for name in sys.modules if name.startswith("acl")]:
            del sys.modules[name]
        import acl.rt
        assert acl.rt is sys.modules["acl.rt"]
        assert pickle.loads(pickle.dumps(acl.rt.malloc)) is acl.rt.malloc
        assert acl.rt.get_device_count() == (8, 0)
        """
    )


def test_another_interpreter_of_the_process_is_refused(fresh):
    pytest.importorskip("_xxsubinterpreters", reason="this Python cannot make interpreters")
    printed = fresh(
        """
        import _xxsubinterpreters as interpreters
        source = "try:\\n    import acl\\nexcept ImportError as e:\\n    print(e, flush=True)"
        interpreters.run_string(interpreters.create(), source)
        import acl
        print(acl.rt.get_device_count())
        """
    )
    assert printed.splitlines() == [
        "acl works in the main interpreter of a process only",
        "(8, 0)",
    ]
