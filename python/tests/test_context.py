# SPDX-License-Identifier: Apache-2.0
"""acl.rt: contexts, their default streams and their parameters."""
from concurrent.futures import ThreadPoolExecutor

import pytest

import acl
from support import (
    BAD_IDS, INVALID_DEVICE, INVALID_PARAM, NORMAL_ONLY, NO_CONTEXT, PARAMETER_NOT_SET, made,
)

INVENTED = [1, 0x1000, 2**63, 2**64 - 1]


@pytest.fixture
def bare_thread():
    """Calls in a thread that starts without a context, always the same one."""
    with ThreadPoolExecutor(1) as threads:
        yield lambda call, *arguments: threads.submit(call, *arguments).result()


@pytest.fixture
def context(device):
    """A context of device 0, current; afterwards the default context is current again."""
    default, ret = acl.rt.get_context()
    assert ret == 0
    with made(acl.rt.create_context, acl.rt.destroy_context, 0) as handle:
        yield handle
    assert acl.rt.set_context(default) == 0


# ---- Create and destroy ----


def test_a_new_context_is_current(device):
    default = acl.rt.get_context()[0]
    context, ret = acl.rt.create_context(1)
    assert ret == 0
    assert context not in (0, default)
    assert acl.rt.get_context() == (context, 0)
    assert acl.rt.get_device() == (1, 0)
    assert acl.rt.destroy_context(context) == 0


def test_creating_needs_no_device_set(bare_thread):
    context, ret = bare_thread(acl.rt.create_context, 2)
    assert ret == 0
    assert bare_thread(acl.rt.get_context) == (context, 0)
    assert bare_thread(acl.rt.get_device) == (2, 0)
    assert bare_thread(acl.rt.destroy_context, context) == 0
    assert bare_thread(acl.rt.get_context) == (0, NO_CONTEXT)


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_bad_devices_have_no_contexts(device, bad_id):
    before = acl.rt.get_context()
    assert acl.rt.create_context(bad_id) == (0, INVALID_DEVICE)
    assert acl.rt.get_context() == before


def test_the_default_context_cannot_be_destroyed(device):
    default = acl.rt.get_context()[0]
    assert acl.rt.destroy_context(default) == NO_CONTEXT
    assert acl.rt.get_context() == (default, 0)
    assert acl.rt.synchronize_device() == 0


def test_no_context_cannot_be_destroyed(context):
    assert acl.rt.destroy_context(0) == INVALID_PARAM
    assert acl.rt.get_context() == (context, 0)


@pytest.mark.parametrize("invented", INVENTED)
def test_invented_contexts_are_refused(context, invented):
    assert acl.rt.destroy_context(invented) != 0
    assert acl.rt.set_context(invented) != 0
    assert acl.rt.get_context() == (context, 0)


def test_a_context_is_destroyed_once(device):
    context, ret = acl.rt.create_context(0)
    assert ret == 0
    assert acl.rt.destroy_context(context) == 0
    assert acl.rt.destroy_context(context) != 0
    assert acl.rt.set_context(context) != 0


def test_a_context_with_streams_may_be_destroyed_and_the_device_reset():
    assert acl.rt.set_device(3) == 0
    context, ret = acl.rt.create_context(3)
    assert ret == 0
    stream, ret = acl.rt.create_stream()
    assert ret == 0
    assert acl.rt.destroy_context(context) == 0
    assert acl.rt.destroy_stream(stream) != 0
    assert acl.rt.reset_device(3) == 0


def test_destroying_a_context_keeps_device_memory(device):
    default = acl.rt.get_context()[0]
    context = acl.rt.create_context(0)[0]
    memory, ret = acl.rt.malloc(64, NORMAL_ONLY)
    assert ret == 0
    assert acl.rt.destroy_context(context) == 0
    assert acl.rt.set_context(default) == 0
    assert acl.rt.memset(memory, 64, 1, 64) == 0
    assert acl.rt.free(memory) == 0


# ---- Set and get ----


def test_a_context_may_be_used_in_another_thread(context, bare_thread):
    assert bare_thread(acl.rt.get_context) == (0, NO_CONTEXT)
    assert bare_thread(acl.rt.set_context, context) == 0
    assert bare_thread(acl.rt.get_context) == (context, 0)
    assert bare_thread(acl.rt.get_device) == (0, 0)
    assert acl.rt.get_context() == (context, 0)


def test_setting_a_context_switches_the_device(context):
    other, ret = acl.rt.create_context(1)
    assert ret == 0
    assert acl.rt.set_context(context) == 0
    assert acl.rt.get_device() == (0, 0)
    assert acl.rt.set_context(other) == 0
    assert acl.rt.get_device() == (1, 0)
    assert acl.rt.destroy_context(other) == 0


def test_no_context_cannot_be_set(context):
    assert acl.rt.set_context(0) == INVALID_PARAM
    assert acl.rt.get_context() == (context, 0)


def test_threads_of_a_device_share_its_default_context(device, bare_thread):
    assert bare_thread(acl.rt.set_device, 0) == 0
    assert bare_thread(acl.rt.get_context) == acl.rt.get_context()
    assert bare_thread(acl.rt.reset_device, 0) == 0


# ---- Default streams ----


def test_every_context_has_a_default_stream(context):
    own, ret = acl.rt.ctx_get_current_default_stream()
    assert ret == 0 and own != 0
    assert acl.rt.stream_get_id(0) == acl.rt.stream_get_id(own)
    assert acl.rt.synchronize_stream(own) == 0
    other = acl.rt.create_context(0)[0]
    others, ret = acl.rt.ctx_get_current_default_stream()
    assert ret == 0 and others not in (0, own)
    assert acl.rt.destroy_context(other) == 0


def test_without_a_context_there_is_no_default_stream(bare_thread):
    assert bare_thread(acl.rt.ctx_get_current_default_stream) == (0, NO_CONTEXT)


# ---- The state of the default context: active comes first ----


def test_the_default_context_is_active_while_it_exists():
    assert acl.rt.get_primary_ctx_state(5) == (0, 0, 0)
    assert acl.rt.set_device(5) == 0
    assert acl.rt.get_primary_ctx_state(5) == (1, 0, 0)
    assert acl.rt.reset_device(5) == 0
    assert acl.rt.get_primary_ctx_state(5) == (0, 0, 0)


@pytest.mark.parametrize("bad_id", BAD_IDS)
def test_bad_devices_have_no_state(bad_id):
    assert acl.rt.get_primary_ctx_state(bad_id) == (0, 0, INVALID_DEVICE)


# ---- System parameters ----


def test_parameters_are_remembered_per_context(context):
    assert acl.rt.ctx_get_sys_param_opt(0) == (0, PARAMETER_NOT_SET)
    assert acl.rt.ctx_set_sys_param_opt(0, 1) == 0
    assert acl.rt.ctx_get_sys_param_opt(0) == (1, 0)
    assert acl.rt.ctx_get_sys_param_opt(1) == (0, PARAMETER_NOT_SET)
    other = acl.rt.create_context(0)[0]
    assert acl.rt.ctx_get_sys_param_opt(0) == (0, PARAMETER_NOT_SET)
    assert acl.rt.destroy_context(other) == 0
    assert acl.rt.set_context(context) == 0
    assert acl.rt.ctx_get_sys_param_opt(0) == (1, 0)


@pytest.mark.parametrize("option", [-1, 4, 99])
def test_unknown_parameters_are_refused(context, option):
    value, ret = acl.rt.ctx_get_sys_param_opt(option)
    assert value == 0 and ret != 0
    assert acl.rt.ctx_set_sys_param_opt(option, 1) != 0


def test_parameters_need_a_context(bare_thread):
    assert bare_thread(acl.rt.ctx_set_sys_param_opt, 0, 1) == NO_CONTEXT
    assert bare_thread(acl.rt.ctx_get_sys_param_opt, 0) == (0, NO_CONTEXT)
