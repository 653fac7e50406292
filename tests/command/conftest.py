# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: the real binary, run as a user runs it."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["UNDERSTUDY_TEST_BUILD"])
COMMAND = BUILD / "bin/understudy"


def clean_environment():
    """The environment of this process without anything that configures the library."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("UNDERSTUDY_", "ASCEND_"))}


@pytest.fixture
def understudy(tmp_path):
    """understudy(*arguments, **options of subprocess.run): runs the command to its end."""
    def run(*arguments, env=None, **options):
        environment = {**clean_environment(), "UNDERSTUDY_RUNTIME_DIR": str(tmp_path / "server")}
        environment.update(env or {})
        options.setdefault("timeout", 60)
        return subprocess.run([COMMAND, *map(str, arguments)], env=environment, text=True,
                              capture_output=True, check=False, **options)
    return run
