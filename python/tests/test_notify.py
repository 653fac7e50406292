# SPDX-License-Identifier: Apache-2.0
"""Notifies, here and between processes."""
import pytest

import acl
from support import INVALID_PARAM, NO_PERMISSION, RT_PARAM_INVALID, made

INVALID_HANDLE = 107017
TASK_TIMEOUT = 107020
STREAM_TIMEOUT = 507046
KEY_LENGTH = 65
LISTED, ANY_PROCESS = 0, 2
PATIENCE = 60_000  # milliseconds, used up by a mistake only

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def stream():
    with made(acl.rt.create_stream, acl.rt.destroy_stream_force) as created:
        yield created


@pytest.fixture
def notify():
    with made(acl.rt.create_notify, acl.rt.destroy_notify, 0) as created:
        yield created


def finish(stream):
    return acl.rt.synchronize_stream_with_timeout(stream, PATIENCE)


def is_held(stream):
    return acl.rt.synchronize_stream_with_timeout(stream, 5) == STREAM_TIMEOUT


def key_of(notify, flags):
    key, ret = acl.rt.notify_get_export_key(notify, KEY_LENGTH, flags)
    assert ret == 0
    assert isinstance(key, str) and 0 < len(key) < KEY_LENGTH
    return key


def test_record_ends_a_wait(notify, stream):
    assert acl.rt.wait_and_reset_notify(notify, stream, 0) == 0
    assert is_held(stream)
    assert acl.rt.record_notify(notify, 0) == 0
    assert finish(stream) == 0
    assert acl.rt.wait_and_reset_notify(notify, stream, 1) == 0
    assert finish(stream) == TASK_TIMEOUT


def test_ids_differ(notify):
    with made(acl.rt.create_notify, acl.rt.destroy_notify, 1) as other:
        ids = [acl.rt.get_notify_id(each) for each in (notify, other)]
    assert [ret for _, ret in ids] == [0, 0]
    assert ids[0] != ids[1]
    assert acl.rt.get_notify_id(other) == (0, INVALID_HANDLE)


def test_reset_clears_every_notify_of_the_list(notify, stream):
    assert acl.rt.record_notify(notify, stream) == 0
    assert finish(stream) == 0
    assert acl.rt.notify_batch_reset([notify, notify]) == 0
    assert acl.rt.wait_and_reset_notify(notify, stream, 0) == 0
    assert is_held(stream)
    assert acl.rt.notify_batch_reset([]) == RT_PARAM_INVALID
    assert acl.rt.notify_batch_reset([notify, 0]) == INVALID_HANDLE
    for wrong in ((notify,), notify, None, "text"):
        with pytest.raises(TypeError):
            acl.rt.notify_batch_reset(wrong)


def test_wrong_calls_are_refused(notify):
    assert acl.rt.create_notify(2) == (0, RT_PARAM_INVALID)
    assert acl.rt.destroy_notify(0) == INVALID_PARAM
    assert acl.rt.record_notify(12345, 0) == INVALID_HANDLE
    assert acl.rt.notify_get_export_key(notify, 64, 0) == ("", RT_PARAM_INVALID)
    assert acl.rt.notify_get_export_key(notify, KEY_LENGTH, 1) == ("", RT_PARAM_INVALID)
    assert acl.rt.notify_set_import_pid(notify, [1]) == RT_PARAM_INVALID
    key = key_of(notify, LISTED)
    assert acl.rt.notify_set_import_pid(notify, []) == RT_PARAM_INVALID
    assert acl.rt.notify_import_by_key(key, 1) == (0, RT_PARAM_INVALID)
    assert acl.rt.notify_import_by_key("unknown", 0) == (0, INVALID_HANDLE)
    for call in (
        lambda: acl.rt.notify_import_by_key(b"key", 0),
        lambda: acl.rt.notify_set_import_pid(notify, 1),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("flags", [LISTED, ANY_PROCESS])
def test_processes_take_turns(other, notify, stream, flags):
    key = key_of(notify, flags)
    if flags == LISTED:
        assert other.notify_import_by_key(key, 0) == (0, NO_PERMISSION)
        assert acl.rt.notify_set_import_pid(notify, [other.pid()]) == 0
    theirs, ret = other.notify_import_by_key(key, 2)
    assert ret == 0 and theirs > 0
    assert acl.rt.wait_and_reset_notify(notify, stream, 0) == 0
    assert is_held(stream)
    assert other.record_notify(theirs, 0) == 0
    assert finish(stream) == 0
    their_stream, ret = other.create_stream()
    assert ret == 0
    assert other.wait_and_reset_notify(theirs, their_stream, 0) == 0
    assert acl.rt.record_notify(notify, stream) == 0
    assert other.synchronize_stream_with_timeout(their_stream, PATIENCE) == 0
    assert other.destroy_notify(theirs) == 0
    assert other.destroy_stream(their_stream) == 0
