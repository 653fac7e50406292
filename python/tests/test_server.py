# SPDX-License-Identifier: Apache-2.0
"""understudy.Server, objects() and runtime_directory(): each in an interpreter of its own."""
import os
import pathlib
import re
import stat
import sys

import pytest

import understudy
from understudy.server import KEYS

CONFIGURATION = pathlib.Path(__file__).parents[2] / "docs" / "configuration.md"
COUNT_DEVICES = "import acl; print(acl.rt.get_device_count()[0])"


@pytest.fixture
def server():
    made = understudy.Server(product="a3", devices=3, memory="1G")
    yield made
    made.close()


def test_a_program_run_by_a_server_sees_its_devices(server):
    done = server.run([sys.executable, "-c", COUNT_DEVICES], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n")


def test_run_adds_variables_and_passes_options(server):
    done = server.run(
        [sys.executable, "-c", "import os; print(os.environ['MORE'], os.environ['PATH'])"],
        env={"MORE": "yes"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"yes {os.environ['PATH']}\n"


def test_the_environment_names_the_chosen_settings_only(server, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_POISON", "on")
    monkeypatch.setenv("UNDERSTUDY_CONFIG", "/nowhere.toml")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1")
    ours = {k: v for k, v in server.environment.items() if re.match("UNDERSTUDY_|ASCEND_RT", k)}
    assert ours == {
        "UNDERSTUDY_RUNTIME_DIR": server.directory,
        "UNDERSTUDY_PRODUCT": "a3",
        "UNDERSTUDY_DEVICES": "3",
        "UNDERSTUDY_MEMORY": "1G",
    }
    assert os.environ["UNDERSTUDY_POISON"] == "on"


def test_the_directory_is_private_short_and_removed(server):
    assert stat.S_IMODE(os.stat(server.directory).st_mode) == 0o700
    assert len(server.directory) < 60
    server.close()
    assert not os.path.exists(server.directory)
    server.close()


def test_a_closed_server_serves_nobody(server):
    server.close()
    with pytest.raises(understudy.ServerError, match="^this server is closed$"):
        server.run(["true"])
    with pytest.raises(understudy.ServerError, match="^this server is closed$"):
        server.__enter__()


def test_a_forgotten_server_leaves_no_directory():
    made = understudy.Server()
    directory = made.directory
    del made
    assert not os.path.exists(directory)


def test_an_interpreter_that_ends_leaves_no_directory(fresh):
    directory = fresh("import understudy; s = understudy.Server(); print(s.directory)").strip()
    assert directory.startswith("/") and not os.path.exists(directory)


def test_a_fork_child_does_not_remove_its_parents_directory(server):
    child = os.fork()
    if child == 0:
        server.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.path.isdir(server.directory)


def test_an_unknown_setting_is_a_type_error_that_names_the_known_ones():
    with pytest.raises(TypeError) as caught:
        understudy.Server(colour="red")
    assert str(caught.value) == f"Server has no setting colour; it has {', '.join(KEYS)}"


def test_the_directory_cannot_be_chosen():
    with pytest.raises(TypeError):
        understudy.Server(runtime_dir="/tmp/x")


def test_every_key_of_the_configuration_is_a_setting():
    rows = re.findall(r"^\| (\w+) \|", CONFIGURATION.read_text(), re.MULTILINE)
    assert sorted(set(rows) - {"Key", "runtime_dir"}) == sorted(KEYS)


def test_settings_become_variables_and_none_is_left_out():
    made = understudy.Server(memory=1 << 30, poison="on", soc=None)
    assert made.settings == {"memory": "1073741824", "poison": "on"}
    assert made.environment["UNDERSTUDY_MEMORY"] == "1073741824"
    assert made.environment["UNDERSTUDY_POISON"] == "on"
    assert "UNDERSTUDY_SOC" not in made.environment


def test_a_wrong_value_is_told_by_the_first_call():
    made = understudy.Server(devices=99)
    done = made.run(
        [sys.executable, "-c", "import acl; print(acl.init(), acl.get_recent_err_msg())"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("100000 ") and "99" in done.stdout


def test_inside_the_block_this_process_uses_the_server(fresh):
    printed = fresh(
        """
        import understudy
        with understudy.Server(product="a3", devices=3, memory="1G") as server:
            import acl
            print(understudy.runtime_directory())
            print(acl.rt.get_device_count(), acl.get_soc_name())
            print(understudy.runtime_directory() == server.directory)
            print(acl.rt.set_device(0), acl.rt.get_mem_info(1)[1])
        """
    )
    assert printed == f"None\n(3, 0) Ascend910_9392\nTrue\n0 {1 << 30}\n"


def test_a_child_started_inside_the_block_is_on_the_same_server(fresh):
    printed = fresh(
        """
        import subprocess, sys, understudy
        with understudy.Server(devices=3):
            subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
        """,
        COUNT_DEVICES,
    )
    assert printed == "3\n"


def test_leaving_restores_the_variables_exactly(fresh):
    fresh(
        """
        import os, understudy
        before = dict(os.environ)
        with understudy.Server(devices=3):
            assert "UNDERSTUDY_POISON" not in os.environ
            assert "ASCEND_RT_VISIBLE_DEVICES" not in os.environ
            os.environ["UNDERSTUDY_SOC"] = "set inside"
        assert dict(os.environ) == before
        """,
        UNDERSTUDY_POISON="on",
        UNDERSTUDY_DEVICES="5",
        ASCEND_RT_VISIBLE_DEVICES="0,1",
    )


def test_an_exception_leaves_the_block_and_the_server(fresh):
    fresh(
        """
        import os, understudy
        try:
            with understudy.Server() as server:
                raise KeyError("mine")
        except KeyError:
            pass
        assert not os.path.exists(server.directory)
        """
    )


def test_a_process_keeps_its_first_server(fresh):
    printed = fresh(
        """
        import acl, understudy
        with understudy.Server() as first:
            assert acl.init() == 0
        second = understudy.Server()
        try:
            second.__enter__()
        except understudy.ServerError as error:
            print(str(error).replace(first.directory, "FIRST"))
        print(second.run(["true"]).returncode)
        """
    )
    assert printed == (
        "this process uses the server in FIRST and keeps it for its life; enter another one before"
        " the first ACL call, or in a process of its own\n0\n"
    )


def test_a_server_is_entered_once_at_a_time():
    code = "import understudy as u; s = u.Server().__enter__(); s.__enter__()"
    done = understudy.Server().run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("ServerError: this server is entered already\n")


def test_nothing_is_started_or_loaded_by_asking(fresh):
    printed = fresh(
        """
        import sys, understudy
        print(understudy.objects(), understudy.runtime_directory(), "acl" in sys.modules)
        import acl
        print(understudy.objects(), understudy.runtime_directory())
        """
    )
    nothing = understudy.Objects()
    assert sum(nothing) == 0
    assert printed == f"{nothing} None False\n{nothing} None\n"


def test_objects_counts_each_kind(fresh):
    printed = fresh(
        """
        import acl, understudy
        acl.init()
        acl.rt.set_device(0)
        PROP = {"handleType": 0, "allocationType": 0, "memAttr": 4,
                "location": {"id": 0, "type": 1}, "reserve": 0}
        size = 2 << 20
        pointer, _ = acl.rt.malloc(size, 1)
        malloced = understudy.objects()
        host, _ = acl.rt.malloc_host(4096)
        handle, _ = acl.rt.malloc_physical(size, PROP, 0)
        address, _ = acl.rt.reserve_mem_address(2 * size, 0, 0, 0)
        assert acl.rt.map_mem(address, size, 0, handle, 0) == 0
        mapped = understudy.objects()
        assert acl.rt.unmap_mem(address) == 0
        assert acl.rt.free_physical(handle) == 0
        assert acl.rt.release_mem_address(address) == 0
        assert acl.rt.free_host(host) == 0
        assert understudy.objects() == malloced
        assert acl.rt.free(pointer) == 0
        print(malloced[1:6], mapped[1:6], mapped.device_bytes - malloced.device_bytes)
        print(malloced.device_bytes >= size, understudy.objects())
        """
    )
    assert printed == (
        f"(1, 0, 0, 0, 0) (1, 1, 1, 1, 1) {2 << 20}\nTrue {understudy.Objects()}\n"
    )


def test_objects_counts_streams_events_notifies_and_pools(fresh):
    printed = fresh(
        """
        import acl, understudy
        acl.init()
        acl.rt.set_device(0)
        PROPS = {"allocType": 0, "handleType": 0, "location": {"id": 0, "type": 1}}
        made = [(acl.rt.create_stream, acl.rt.destroy_stream),
                (acl.rt.create_event, acl.rt.destroy_event),
                (lambda: acl.rt.create_notify(0), acl.rt.destroy_notify),
                (lambda: acl.rt.mem_pool_create(PROPS), acl.rt.mem_pool_destroy)]
        handles = [create() for create, _ in made]
        print(understudy.objects()[6:])
        assert [ret for _, ret in handles] == [0, 0, 0, 0]
        assert [end(handle) for (handle, _), (_, end) in zip(handles, made)] == [0, 0, 0, 0]
        print(understudy.objects()[6:])
        """
    )
    assert printed == "(1, 1, 1, 1)\n(0, 0, 0, 0)\n"


def test_a_fork_child_has_nothing_alive(fresh):
    fresh(
        """
        import acl, os, understudy
        acl.init()
        acl.rt.set_device(0)
        acl.rt.malloc(4096, 2)
        assert understudy.objects().allocations == 1
        child = os.fork()
        if child == 0:
            os._exit(sum(understudy.objects()) != 0 or understudy.runtime_directory() is not None)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
