# SPDX-License-Identifier: Apache-2.0
"""acl: start and end, names and versions, error texts, the log, data buffers."""
import json
import threading

import pytest

import acl
from support import INVALID_DEVICE, INVALID_FILE, INVALID_PARAM


def write_configuration(directory, **content):
    path = directory / "acl.json"
    path.write_text(json.dumps(content))
    return str(path)


# ---- Start and end. Counts belong to the process, so each test has a process of its own. ----


@pytest.mark.parametrize("call", ["acl.init()", 'acl.init("")'])
def test_init_without_configuration(fresh, call):
    fresh(
        f"""
        import acl
        assert {call} == 0
        assert acl.rt.get_device_count() == (8, 0)
        assert acl.finalize() == 0
        """
    )


def test_repeated_init_is_told_and_counted(fresh):
    fresh(
        """
        import acl
        assert acl.init() == 0
        assert acl.init() == 100002
        assert acl.init("") == 100002
        assert acl.finalize_reference() == (2, 0)
        assert acl.finalize_reference() == (1, 0)
        assert acl.finalize_reference() == (0, 0)
        assert acl.finalize_reference() == (0, 100037)
        assert acl.init() == 0
        """
    )


def test_finalize_takes_every_init_back(fresh):
    fresh(
        """
        import acl
        assert acl.finalize() == 100037
        for expected in (0, 100002, 100002):
            assert acl.init() == expected
        assert acl.rt.set_device(0) == 0
        assert acl.finalize() == 0
        assert acl.rt.get_primary_ctx_state(0) == (0, 0, 0)
        assert acl.finalize() == 100037
        assert acl.finalize_reference() == (0, 100037)
        assert acl.init() == 0
        assert acl.finalize() == 0
        """
    )


def test_finalize_reference_releases_only_with_the_last_one(fresh):
    fresh(
        """
        import acl
        assert acl.init() == 0
        assert acl.init() == 100002
        assert acl.rt.set_device(0) == 0
        assert acl.finalize_reference() == (1, 0)
        assert acl.rt.get_device() == (0, 0)
        assert acl.finalize_reference() == (0, 0)
        assert acl.rt.get_primary_ctx_state(0) == (0, 0, 0)
        """
    )


def test_init_with_a_missing_file_starts_nothing(fresh, tmp_path):
    fresh(
        """
        import sys
        import acl
        assert acl.init(sys.argv[1]) == 100003
        assert "aclInit" in acl.get_recent_err_msg()
        assert acl.finalize() == 100037
        assert acl.init() == 0
        """,
        str(tmp_path / "absent.json"),
    )


def test_init_with_a_damaged_file_starts_nothing(fresh, tmp_path):
    path = tmp_path / "acl.json"
    path.write_text('{"dump": ')
    fresh(
        """
        import sys
        import acl
        assert acl.init(sys.argv[1]) != 0
        assert acl.finalize() == 100037
        """,
        str(path),
    )


def test_init_with_another_configuration_is_refused(fresh, tmp_path):
    path = write_configuration(tmp_path, err_msg_mode="1")
    fresh(
        """
        import sys
        import acl
        assert acl.init() == 0
        assert acl.finalize() == 0
        assert acl.init(sys.argv[1]) == 100000
        assert acl.init() == 0
        """,
        path,
    )


def test_a_path_need_not_be_ascii(fresh, tmp_path):
    path = tmp_path / "größe-設定.json"
    path.write_text("{}")
    fresh(
        """
        import acl, sys
        assert acl.init(sys.argv[1]) == 0
        """,
        str(path),
        PYTHONUTF8="1",
    )


def test_the_default_device_of_the_configuration_serves_bare_threads(fresh, tmp_path):
    path = write_configuration(tmp_path, defaultDevice={"default_device": "1"})
    fresh(
        """
        import sys
        import acl
        assert acl.init(sys.argv[1]) == 0
        assert acl.rt.get_device() == (1, 0)
        """,
        path,
    )


# ---- Error texts ----


def test_error_texts_come_newest_first_and_once(device):
    acl.get_recent_err_msg()
    assert acl.rt.set_device(-1) == INVALID_DEVICE
    assert acl.rt.free(0) == INVALID_PARAM
    text = acl.get_recent_err_msg()
    assert isinstance(text, str)
    assert 0 <= text.index("aclrtFree") < text.index("aclrtSetDevice")
    assert acl.get_recent_err_msg() is None


def test_without_an_error_there_is_no_text(device):
    acl.get_recent_err_msg()
    assert acl.rt.get_device() == (0, 0)
    assert acl.get_recent_err_msg() is None


def test_error_texts_belong_to_their_thread(device):
    acl.get_recent_err_msg()
    assert acl.rt.set_device(-1) == INVALID_DEVICE
    seen = []
    thread = threading.Thread(target=lambda: seen.append(acl.get_recent_err_msg()))
    thread.start()
    thread.join()
    assert seen == [None]
    assert "aclrtSetDevice" in acl.get_recent_err_msg()


@pytest.mark.parametrize("mode, others_see_it", [("0", False), ("1", True)])
def test_err_msg_mode_decides_who_sees_a_text(fresh, tmp_path, mode, others_see_it):
    path = write_configuration(tmp_path, err_msg_mode=mode)
    seen = fresh(
        """
        import sys
        import threading
        import acl
        assert acl.init(sys.argv[1]) == 0
        thread = threading.Thread(target=acl.rt.set_device, args=(-1,))
        thread.start()
        thread.join()
        print("aclrtSetDevice" in (acl.get_recent_err_msg() or ""))
        """,
        path,
    )
    assert seen.split() == [str(others_see_it)]


# ---- Names and versions ----


def test_the_soc_name_is_a_real_one():
    name = acl.get_soc_name()
    assert isinstance(name, str)
    assert name.startswith("Ascend")
    assert acl.get_soc_name() == name


def test_the_soc_name_follows_the_product(fresh):
    program = "import acl; print(acl.get_soc_name())"
    assert fresh(program).split() == ["Ascend910B3"]
    assert fresh(program, UNDERSTUDY_SOC="Ascend910B1").split() == ["Ascend910B1"]


def test_without_a_valid_product_there_is_no_soc_name(fresh):
    fresh(
        """
        import acl
        assert acl.get_soc_name() is None
        assert acl.init() == 100000
        assert "toaster" in acl.get_recent_err_msg()
        """,
        UNDERSTUDY_PRODUCT="toaster",
    )


def test_the_version_is_that_of_the_interface():
    assert acl.get_version() == (1, 17, 0, 0)


def test_an_installed_package_has_a_version_text():
    text, ret = acl.get_version_str("runtime")
    assert ret == 0
    assert text[0].isdigit() and "." in text
    assert len(text) < 128


@pytest.mark.parametrize("package", ["no-such-package", "", "../runtime", "x" * 100000, "größe"])
def test_a_package_that_is_absent_has_no_version_text(package):
    assert acl.get_version_str(package) == ("", INVALID_FILE)


# ---- The log ----


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_app_log_answers_nothing(level):
    assert acl.app_log(level, "a line of the program") is None


@pytest.mark.parametrize(
    "message", ["", "100 %", "%s %n %d %p", "größe 設定", "x" * 100000, "a\nb"]
)
def test_app_log_takes_any_text_as_it_is(message):
    assert acl.app_log(3, message) is None


# ---- Data types and buffers ----


@pytest.mark.parametrize(
    "data_type, size",
    [(0, 4), (1, 2), (2, 1), (3, 4), (4, 1), (6, 2), (7, 2), (8, 4), (9, 8), (10, 8), (11, 8)]
    + [(12, 1), (16, 8), (17, 16), (27, 2)],
)
def test_data_types_have_sizes(data_type, size):
    assert acl.data_type_size(data_type) == size


@pytest.mark.parametrize("data_type", [-1, 5, 9999, -(2**31), 2**31 - 1])
def test_unknown_data_types_have_no_size(data_type):
    assert acl.data_type_size(data_type) == 0


@pytest.fixture
def data_buffer():
    handle = acl.create_data_buffer(0x1000, 64)
    assert handle > 0
    yield handle
    assert acl.destroy_data_buffer(handle) == 0


def test_a_data_buffer_remembers_address_and_size(data_buffer):
    assert acl.get_data_buffer_addr(data_buffer) == 0x1000
    assert acl.get_data_buffer_size(data_buffer) == 64
    assert acl.get_data_buffer_size_v2(data_buffer) == 64


def test_a_data_buffer_may_be_empty():
    handle = acl.create_data_buffer(0, 0)
    assert handle > 0
    assert acl.get_data_buffer_addr(handle) == 0
    assert acl.get_data_buffer_size(handle) == 0
    assert acl.get_data_buffer_size_v2(handle) == 0
    assert acl.destroy_data_buffer(handle) == 0


def test_a_data_buffer_may_be_larger_than_32_bits():
    address, size = 2**64 - 4096, 5 * 2**32 + 7
    handle = acl.create_data_buffer(address, size)
    assert acl.get_data_buffer_addr(handle) == address
    assert acl.get_data_buffer_size_v2(handle) == size
    assert acl.destroy_data_buffer(handle) == 0


def test_a_data_buffer_can_be_given_other_data(data_buffer):
    assert acl.update_data_buffer(data_buffer, 0x2000, 128) == 0
    assert acl.get_data_buffer_addr(data_buffer) == 0x2000
    assert acl.get_data_buffer_size_v2(data_buffer) == 128


def test_destroying_a_data_buffer_keeps_the_data(device):
    memory, ret = acl.rt.malloc(64, 2)
    assert ret == 0
    handle = acl.create_data_buffer(memory, 64)
    assert acl.destroy_data_buffer(handle) == 0
    assert acl.rt.memset(memory, 64, 1, 64) == 0
    assert acl.rt.free(memory) == 0


def test_no_data_buffer_is_no_crash():
    assert acl.destroy_data_buffer(0) == INVALID_PARAM
    assert acl.update_data_buffer(0, 0x1000, 64) == INVALID_PARAM
    assert acl.get_data_buffer_addr(0) == 0
    assert acl.get_data_buffer_size(0) == 0
    assert acl.get_data_buffer_size_v2(0) == 0


def test_a_log_line_may_be_read_by_a_thread_of_the_program(fresh):
    # More than a pipe holds: the reader needs the GIL while the line is written.
    printed = fresh(
        """
        import os, threading
        import acl
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        seen = []

        def read():
            while sum(seen) < 300000:
                seen.append(len(os.read(reading, 65536)))

        thread = threading.Thread(target=read)
        thread.start()
        acl.app_log(3, "x" * 300000)
        thread.join()
        print(sum(seen) > 300000)
        """
    )
    assert printed.split() == ["True"]


# ---- Capabilities ----


def test_features_are_listed_and_told():
    features, count, ret = acl.get_cann_attribute_list()
    assert ret == 0 and count == len(features) == 3
    assert sorted(features) == [0, 1, 2]
    for feature in features:
        value, ret = acl.get_cann_attribute(feature)
        assert ret == 0 and value in (0, 1)
    assert acl.get_cann_attribute(77) == (0, INVALID_PARAM)


def test_figures_of_a_device():
    cores, ret = acl.get_device_capability(0, 0)
    assert ret == 0 and cores > 0
    assert acl.get_device_capability(99, 0) == (0, INVALID_PARAM)


def test_version_of_a_package_in_parts():
    version, ret = acl.get_cann_version(1)
    assert ret == 0
    assert version["version"].startswith(version["majorVersion"] + ".")
    assert set(version) == {
        "version", "majorVersion", "minorVersion", "releaseVersion", "patchVersion", "reserved"
    }
    assert acl.get_cann_version(77) == ({}, INVALID_PARAM)


# ---- Half precision ----


@pytest.mark.parametrize(
    "bits, value", [(0, 0.0), (0x3C00, 1.0), (0xC000, -2.0), (1, 2.0**-24), (0x7BFF, 65504.0)]
)
def test_half_precision_there_and_back(bits, value):
    assert acl.float16_to_float(bits) == value
    assert acl.float_to_float16(value) == bits


def test_half_precision_has_no_infinity():
    assert acl.float16_to_float(0x7C00) == 65536.0
    assert acl.float_to_float16(float("inf")) == 0x7BFF
    assert acl.float_to_float16(float("nan")) == 0x7BFF
    assert acl.float_to_float16(7) == 0x4700
    with pytest.raises(OverflowError):
        acl.float16_to_float(0x10000)
    with pytest.raises(TypeError):
        acl.float_to_float16("1")
