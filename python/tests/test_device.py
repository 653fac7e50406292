# SPDX-License-Identifier: Apache-2.0
"""acl.rt: devices, peer access, what a device tells about itself, settings."""
import os

import pytest

import acl
from support import (
    BAD_IDS, DEVICE_NOT_SET, FEATURE_UNSUPPORTED, GIB, INVALID_DEVICE, INVALID_PARAM, LONG,
    NORMAL_ONLY, NO_CONTEXT, RT_PARAM_INVALID, STREAM_SYNC_TIMEOUT, on_bare_thread,
)


@pytest.fixture
def second_device(device):
    """Device 1, set as well and current."""
    assert acl.rt.set_device(1) == 0
    yield 1
    assert acl.rt.reset_device(1) == 0


# ---- Set, reset, get, count ----


def test_the_device_set_is_the_device_got(device):
    assert acl.rt.get_device() == (0, 0)
    assert acl.rt.set_device(2) == 0
    assert acl.rt.get_device() == (2, 0)
    assert acl.rt.reset_device(2) == 0


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_bad_ids_are_refused_and_the_thread_keeps_its_device(device, bad_id):
    assert acl.rt.set_device(bad_id) == INVALID_DEVICE
    assert acl.rt.reset_device(bad_id) == INVALID_DEVICE
    assert acl.rt.reset_device_force(bad_id) == INVALID_DEVICE
    assert acl.rt.get_device() == (0, 0)


def test_without_a_context_there_is_no_device():
    assert on_bare_thread(acl.rt.get_device) == (0, NO_CONTEXT)


def test_every_set_is_counted():
    for _ in range(3):
        assert acl.rt.set_device(3) == 0
    for _ in range(2):
        assert acl.rt.reset_device(3) == 0
        assert acl.rt.get_device() == (3, 0)
    assert acl.rt.reset_device(3) == 0
    assert acl.rt.get_device() == (0, NO_CONTEXT)
    assert acl.rt.reset_device(3) == DEVICE_NOT_SET


def test_force_releases_whatever_the_count():
    for _ in range(3):
        assert acl.rt.set_device(3) == 0
    assert acl.rt.reset_device_force(3) == 0
    assert acl.rt.get_device() == (0, NO_CONTEXT)
    assert acl.rt.reset_device(3) == DEVICE_NOT_SET
    assert acl.rt.reset_device_force(3) == DEVICE_NOT_SET
    assert acl.rt.set_device(3) == 0
    assert acl.rt.reset_device(3) == 0


def test_the_last_reset_ends_streams():
    assert acl.rt.set_device(3) == 0
    stream, ret = acl.rt.create_stream()
    assert ret == 0
    assert acl.rt.reset_device(3) == 0
    assert acl.rt.set_device(3) == 0
    assert acl.rt.destroy_stream(stream) != 0
    assert acl.rt.reset_device(3) == 0


def test_counting_devices_needs_neither_init_nor_device(fresh):
    fresh(
        """
        import acl
        assert acl.rt.get_device_count() == (3, 0)
        assert acl.rt.query_device_status(2) == (0, 0)
        load, ret = acl.rt.get_device_utilization_rate(2)
        assert ret == 0 and len(load) == 5
        assert acl.rt.get_device() == (0, 107002)
        """,
        UNDERSTUDY_DEVICES="3",
    )


def test_a_wrong_setting_makes_the_count_fail(fresh):
    fresh(
        "import acl; assert acl.rt.get_device_count() == (0, 100000)", UNDERSTUDY_DEVICES="many"
    )


def test_programs_run_on_the_host(fresh):
    assert acl.rt.get_run_mode() == (1, 0)
    fresh("import acl; assert acl.rt.get_run_mode() == (0, 0)", UNDERSTUDY_PRODUCT="200i-rc")


# ---- Waiting ----


def test_synchronizing_waits_for_every_stream(device, stream):
    memory, ret = acl.rt.malloc(64, NORMAL_ONLY)
    assert ret == 0
    assert acl.rt.memset_async(memory, 64, 7, 64, stream) == 0
    assert acl.rt.synchronize_device() == 0
    assert acl.rt.stream_query(stream) == (0, 0)
    assert acl.rt.synchronize_device_with_timeout(LONG) == 0
    assert acl.rt.synchronize_device_with_timeout(-1) == 0
    assert acl.rt.free(memory) == 0


def test_synchronizing_needs_a_context():
    assert on_bare_thread(acl.rt.synchronize_device) == NO_CONTEXT
    assert on_bare_thread(acl.rt.synchronize_device_with_timeout, LONG) == NO_CONTEXT


@pytest.mark.parametrize("timeout", [0, -2, -(2**31)])
def test_bad_limits_are_refused(device, timeout):
    assert acl.rt.synchronize_device_with_timeout(timeout) == RT_PARAM_INVALID


def test_when_the_time_is_over_the_tasks_stay_queued(stream, gate):
    assert acl.rt.synchronize_device_with_timeout(1) == STREAM_SYNC_TIMEOUT
    assert acl.rt.stream_query(stream) == (1, 0)
    gate.open()
    assert acl.rt.synchronize_device_with_timeout(LONG) == 0


# ---- The process as others see it ----


def test_the_bare_id_is_that_of_the_process(device):
    with open("/proc/self/status") as status:
        ids = [line.split()[1:] for line in status if line.startswith("NSpid:")]
    outermost = int(ids[0][0]) if ids else os.getpid()
    assert acl.rt.device_get_bare_tgid() == (outermost, 0)


def test_a_wrong_setting_gives_no_bare_id(fresh):
    fresh(
        """
        import acl
        pid, ret = acl.rt.device_get_bare_tgid()
        assert ret == 0 or pid == 0
        """,
        UNDERSTUDY_DEVICES="many",
    )


# ---- Peer access ----


def test_peer_access_is_switched_one_way(second_device):
    assert acl.rt.device_can_access_peer(1, 0) == (1, 0)
    assert acl.rt.device_peer_access_status(1, 0) == (0, 0)
    assert acl.rt.device_enable_peer_access(0, 0) == 0
    assert acl.rt.device_enable_peer_access(0, 0) == 0
    assert acl.rt.device_peer_access_status(1, 0) == (1, 0)
    assert acl.rt.device_peer_access_status(0, 1) == (0, 0)
    assert acl.rt.device_disable_peer_access(0) == 0
    assert acl.rt.device_peer_access_status(1, 0) == (0, 0)


def test_a_device_is_not_its_own_peer(device):
    assert acl.rt.device_can_access_peer(0, 0) == (0, INVALID_PARAM)
    assert acl.rt.device_enable_peer_access(0, 0) == INVALID_PARAM
    assert acl.rt.device_disable_peer_access(0) == INVALID_PARAM


def test_peer_flags_must_be_zero(device):
    assert acl.rt.device_enable_peer_access(1, 1) == FEATURE_UNSUPPORTED
    assert acl.rt.device_enable_peer_access(1, 2**32 - 1) == FEATURE_UNSUPPORTED
    assert acl.rt.device_peer_access_status(0, 1) == (0, 0)


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_unknown_peers_are_refused(device, bad_id):
    assert acl.rt.device_can_access_peer(0, bad_id) == (0, INVALID_DEVICE)
    assert acl.rt.device_can_access_peer(bad_id, 0) == (0, INVALID_DEVICE)
    assert acl.rt.device_enable_peer_access(bad_id, 0) == INVALID_DEVICE
    assert acl.rt.device_disable_peer_access(bad_id) == INVALID_DEVICE
    status, ret = acl.rt.device_peer_access_status(0, bad_id)
    assert status == 0 and ret != 0


def test_peer_switches_need_a_context():
    assert on_bare_thread(acl.rt.device_enable_peer_access, 1, 0) == NO_CONTEXT
    assert on_bare_thread(acl.rt.device_disable_peer_access, 1) == NO_CONTEXT


# ---- What a device tells ----


def test_utilization_is_a_dict_of_percentages():
    load, ret = acl.rt.get_device_utilization_rate(0)
    assert ret == 0
    assert load.pop("utilization_extend") == 0
    assert set(load) == {f"{part}_utilization" for part in ("cube", "vector", "aicpu", "memory")}
    assert all(type(value) is int and -1 <= value <= 100 for value in load.values())
    assert load["memory_utilization"] == -1


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_unknown_devices_tell_nothing(bad_id):
    load, ret = acl.rt.get_device_utilization_rate(bad_id)
    assert load == {} and ret != 0
    assert acl.rt.query_device_status(bad_id) == (0, INVALID_DEVICE)
    assert acl.rt.get_device_capability(bad_id, 1) == (0, INVALID_DEVICE)
    assert acl.rt.get_user_dev_id_by_logic_dev_id(bad_id) == (0, INVALID_DEVICE)
    assert acl.rt.get_logic_dev_id_by_user_dev_id(bad_id) == (0, INVALID_DEVICE)
    uuid, ret = acl.rt.device_get_uuid(bad_id)
    assert uuid == {} and ret != 0


def test_every_device_is_well():
    assert [acl.rt.query_device_status(number) for number in range(8)] == [(0, 0)] * 8


def test_device_figures_are_those_of_the_product():
    assert acl.rt.get_device_info(0, 301) == (64 * GIB, 0)
    assert acl.rt.get_device_info(0, 601) == (2201, 0)
    assert acl.rt.get_device_info(0, 501) == (0, 0)
    cores, ret = acl.rt.get_device_info(0, 101)
    assert ret == 0 and cores > 0


@pytest.mark.parametrize(
    "number, attribute", [(8, 301), (2**32 - 1, 301), (0, 0), (0, -1), (0, 999)]
)
def test_unknown_figures_are_refused(number, attribute):
    assert acl.rt.get_device_info(number, attribute) == (0, RT_PARAM_INVALID)


@pytest.mark.parametrize("feature", [1, 21])
def test_a_feature_is_there_or_not(feature):
    value, ret = acl.rt.get_device_capability(0, feature)
    assert ret == 0 and value in (0, 1)


def test_stream_priorities_run_from_seven_to_zero(device):
    assert acl.rt.device_get_stream_priority_range() == (7, 0, 0)


def test_two_devices_are_linked_both_ways_alike():
    links, ret = acl.rt.get_devices_topo(0, 1)
    assert ret == 0
    assert links != 0 and links & ~0x7F == 0
    assert acl.rt.get_devices_topo(1, 0) == (links, 0)


def test_links_of_unknown_devices_are_refused():
    for pair in ((0, 8), (2**32 - 1, 0)):
        links, ret = acl.rt.get_devices_topo(*pair)
        assert links == 0 and ret != 0


def test_ids_are_the_same_without_a_visible_list():
    for number in range(8):
        assert acl.rt.get_user_dev_id_by_logic_dev_id(number) == (number, 0)
        assert acl.rt.get_logic_dev_id_by_user_dev_id(number) == (number, 0)


def test_a_visible_list_renumbers_the_devices(fresh):
    fresh(
        """
        import acl
        assert acl.rt.get_device_count() == (2, 0)
        assert acl.rt.get_logic_dev_id_by_user_dev_id(1) == (5, 0)
        assert acl.rt.get_user_dev_id_by_logic_dev_id(5) == (1, 0)
        assert acl.rt.get_user_dev_id_by_logic_dev_id(3) == (0, 107001)
        """,
        ASCEND_RT_VISIBLE_DEVICES="2,5",
    )


def test_unique_ids_differ_and_stay():
    answers = [acl.rt.device_get_uuid(number) for number in range(8)]
    assert all(ret == 0 for _, ret in answers)
    assert all(list(uuid) == ["bytes"] for uuid, _ in answers)
    texts = [uuid["bytes"] for uuid, _ in answers]
    assert all(isinstance(text, str) and len(text) == 16 for text in texts)
    assert all(ord(character) < 256 for character in "".join(texts))
    assert len(set(texts)) == 8
    assert acl.rt.device_get_uuid(3) == answers[3]


# ---- Settings ----


def test_the_saturation_mode_is_remembered(device):
    for mode in (0, 1, 0):
        assert acl.rt.set_device_sat_mode(mode) == 0
        assert acl.rt.get_device_sat_mode() == (mode, 0)


def test_the_saturation_mode_needs_a_context(device):
    assert acl.rt.set_device_sat_mode(1) == 0
    assert on_bare_thread(acl.rt.set_device_sat_mode, 0) == NO_CONTEXT
    assert on_bare_thread(acl.rt.get_device_sat_mode) == (0, NO_CONTEXT)
    assert acl.rt.get_device_sat_mode() == (1, 0)
    assert acl.rt.set_device_sat_mode(0) == 0


def test_system_parameters_of_the_process_start_at_zero_and_stay(fresh):
    fresh(
        """
        import acl
        assert acl.rt.set_device(0) == 0
        assert acl.rt.get_sys_param_opt(0) == (0, 0)
        assert acl.rt.set_sys_param_opt(0, 1) == 0
        assert acl.rt.get_sys_param_opt(0) == (1, 0)
        assert acl.rt.get_sys_param_opt(1) == (0, 0)
        """
    )


@pytest.mark.parametrize("option", [-1, 4, 99])
def test_unknown_system_parameters_are_refused(device, option):
    value, ret = acl.rt.get_sys_param_opt(option)
    assert value == 0 and ret != 0
    assert acl.rt.set_sys_param_opt(option, 1) != 0


# ---- Limits of cores ----


def test_limit_of_a_device_is_remembered_and_taken_back(device):
    most, ret = acl.rt.get_device_res_limit(0, 0)
    assert ret == 0 and most > 1
    assert acl.rt.set_device_res_limit(0, 0, most - 1) == 0
    assert acl.rt.get_device_res_limit(0, 0) == (most - 1, 0)
    assert acl.rt.get_res_in_current_thread(0) == (most - 1, 0)
    assert acl.rt.reset_device_res_limit(0) == 0
    assert acl.rt.get_device_res_limit(0, 0) == (most, 0)


def test_limit_of_a_stream_becomes_that_of_the_thread(device):
    stream, ret = acl.rt.create_stream()
    assert ret == 0
    most, _ = acl.rt.get_stream_res_limit(stream, 1)
    assert acl.rt.set_stream_res_limit(stream, 1, 1) == 0
    assert acl.rt.get_res_in_current_thread(1) == (most, 0)
    assert acl.rt.use_stream_res_in_current_thread(stream) == 0
    assert acl.rt.get_res_in_current_thread(1) == (1, 0)
    assert acl.rt.unuse_stream_res_in_current_thread(stream) == 0
    assert acl.rt.get_res_in_current_thread(1) == (most, 0)
    assert acl.rt.reset_stream_res_limit(stream) == 0
    assert acl.rt.get_stream_res_limit(stream, 1) == (most, 0)
    assert acl.rt.destroy_stream(stream) == 0
