# SPDX-License-Identifier: Apache-2.0
"""The shape of the module, and arguments that are refused before the runtime is entered."""
import enum
import importlib
import re
import sys
import types

import pytest

import acl

INVALID_PARAM = 100000
PARAM_INVALID = 107000

# A letter per parameter: q 64 bits, i and u 32 bits with and without sign, e an enumeration,
# s str, l list, d dict, b bytes, t tuple, f a function, o an array.
SIGNATURES = {
    "acl": """
        finalize: finalize_reference: get_soc_name: get_recent_err_msg: get_version: app_log:es
        get_version_str:s data_type_size:e create_data_buffer:qq destroy_data_buffer:q
        get_data_buffer_addr:q get_data_buffer_size:q get_data_buffer_size_v2:q
        update_data_buffer:qqq""",
    "acl.rt": """
        set_device:i reset_device:i reset_device_force:i get_device: get_device_count: get_run_mode:
        synchronize_device: synchronize_device_with_timeout:i device_get_bare_tgid:
        device_enable_peer_access:iu device_disable_peer_access:i device_can_access_peer:ii
        device_peer_access_status:ii get_device_utilization_rate:i query_device_status:i
        get_device_info:ue get_device_capability:ie device_get_stream_priority_range:
        get_devices_topo:uu get_user_dev_id_by_logic_dev_id:i get_logic_dev_id_by_user_dev_id:i
        device_get_uuid:i set_device_sat_mode:e get_device_sat_mode: set_sys_param_opt:eq
        get_sys_param_opt:e create_context:i destroy_context:q set_context:q get_context:
        ctx_get_current_default_stream: get_primary_ctx_state:i ctx_set_sys_param_opt:eq
        ctx_get_sys_param_opt:e create_stream: create_stream_with_config:uu destroy_stream:q
        destroy_stream_force:q synchronize_stream:q synchronize_stream_with_timeout:qi
        stream_query:q stream_abort:q stream_get_id:q get_stream_available_num:
        set_stream_attribute:qed get_stream_attribute:qe set_stream_failure_mode:qq
        set_stream_overflow_switch:qu get_stream_overflow_switch:q create_event:
        create_event_with_flag:u create_event_ex_with_flag:u destroy_event:q record_event:qq
        reset_event:qq query_event:q query_event_status:q query_event_wait_status:q
        synchronize_event:q synchronize_event_with_timeout:qi event_elapsed_time:qq
        stream_wait_event:qq event_get_timestamp:q get_event_id:q get_event_avail_num:
        set_op_wait_timeout:u subscribe_report:qq launch_callback:fleq process_report:i
        unsubscribe_report:qq malloc:qe malloc_align32:qe malloc_cached:qe malloc_with_cfg:qed
        malloc_for_task_scheduler:qed free:q mem_flush:qq mem_invalidate:qq get_mem_info:e
        malloc_host:q malloc_host_with_cfg:qd free_host:q host_register:qqe host_register_v2:qqu
        host_get_device_pointer:qu host_unregister:q memcpy:qqqqe memcpy_async:qqqqeq
        memcpy_async_with_condition:qqqqeq memcpy2d:qqqqqqe memcpy2d_async:qqqqqqeq memset:qqiq
        memset_async:qqiqq reserve_mem_address:qqqq release_mem_address:q malloc_physical:qdq
        free_physical:q map_mem:qqqqq unmap_mem:q mem_get_allocation_granularity:de
        mem_export_to_shareable_handle:qeq mem_set_pid_to_shareable_handle:ql
        mem_import_from_shareable_handle:qi ipc_mem_get_export_key:qqqq ipc_mem_set_import_pid:sl
        ipc_mem_import_by_key:sq ipc_mem_close:s pointer_get_attributes:q value_write:qquq
        value_wait:qquq peek_at_last_error:e get_last_error:e get_task_id_from_exception_info:q
        get_stream_id_from_exception_info:q get_thread_id_from_exception_info:q
        get_device_id_from_exception_info:q get_error_code_from_exception_info:q
        device_task_abort:iu set_op_execute_time_out:u set_op_execute_timeout_v2:q
        get_op_execute_timeout: get_op_timeout_interval: get_thread_last_task_id:""",
    "acl.util": """
        bytes_to_ptr:b ptr_to_bytes:qq numpy_to_ptr:o numpy_contiguous_to_ptr:o ptr_to_numpy:qti
        start_thread:fl stop_thread:q""",
    "acl.media": "dvpp_malloc:q dvpp_free:q",
}
OPTIONAL = [("acl", "init"), ("acl.rt", "set_exception_info_callback")]

FUNCTIONS = [
    (module, *entry.split(":")) for module, table in SIGNATURES.items() for entry in table.split()
]
BLOCK = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": {"id": 0, "type": 1}}
EVERY_KEY = {**BLOCK, "reserve": 0, "attrs": [], "numAttrs": 0, "failureMode": 0}
FITTING = {"q": 0, "i": 0, "u": 0, "e": 0, "s": "", "l": [], "d": EVERY_KEY, "b": b"", "t": ()}
TYPE_NAMES = {"s": "str", "l": "list", "d": "dict", "b": "bytes", "t": "tuple"}
TYPE_NAMES.update(dict.fromkeys("qiue", "int"))
OUT_OF_RANGE = {
    "i": [2**31, -(2**31) - 1, 2**64],
    "u": [2**32, -1, 2**64],
    "e": [2**32, -(2**31) - 1, 2**64],
}


def parameters(letters):
    """Every parameter of the module whose letter is among these."""
    return [
        (module, name, signature, position)
        for module, name, signature in FUNCTIONS
        for position, letter in enumerate(signature)
        if letter in letters
    ]


def function(module, name):
    return getattr(importlib.import_module(module), name)


def arguments(signature, position=None, value=None):
    """Arguments of the right types, except the one at the position."""
    given = [FITTING.get(letter, print) for letter in signature]
    if position is not None:
        given[position] = value
    return given


def exactly(count, given):
    return f"function takes exactly {count} argument{'s' * (count != 1)} ({given} given)"


class Number:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class OnlyInt:
    def __int__(self):
        return 0


# ---- The shape of the module ----


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


# ---- The number of arguments ----


@pytest.mark.parametrize("module, name, signature", FUNCTIONS)
def test_a_wrong_number_of_arguments_is_a_type_error(module, name, signature):
    call, count = function(module, name), len(signature)
    if count == 0:
        with pytest.raises(TypeError, match=r"takes (exactly 0|no) arguments \(1 given\)"):
            call(0)
        return
    for given in {0, count - 1, count + 1}:
        with pytest.raises(TypeError, match=re.escape(exactly(count, given))):
            call(*[0] * given)


@pytest.mark.parametrize("module, name", OPTIONAL)
def test_an_optional_argument_is_at_most_one(module, name):
    text = re.escape("function takes at most 1 argument (2 given)")
    with pytest.raises(TypeError, match=text):
        function(module, name)("", "")


@pytest.mark.parametrize("module, name, signature", FUNCTIONS)
def test_there_are_no_keyword_arguments(module, name, signature):
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        function(module, name)(*arguments(signature)[1:], value=0)


@pytest.mark.parametrize("module, name", OPTIONAL)
def test_optional_arguments_have_no_keyword_either(module, name):
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        function(module, name)(config_path="")


# ---- Types ----


@pytest.mark.parametrize("module, name, signature, position", parameters("qiuesldbtf"))
def test_a_wrong_type_is_a_type_error_that_names_the_argument(module, name, signature, position):
    letter = signature[position]
    wrong = [b"", "", 0.0, [], {}, (), OnlyInt(), None]
    for value in wrong:
        if type(value).__name__ == TYPE_NAMES.get(letter):
            continue
        text = f"argument {position + 1} must be {TYPE_NAMES.get(letter)}, not "
        given = "(None|NoneType)" if value is None else type(value).__name__
        expected = "^parameter must be callable$" if letter == "f" else f"^{text}{given}$"
        with pytest.raises(TypeError, match=expected):
            function(module, name)(*arguments(signature, position, value))


@pytest.mark.parametrize("value", [b"", 0, None, [], 1.5])
def test_the_path_of_a_configuration_is_text(value):
    with pytest.raises(TypeError, match="argument 1 must be str, not "):
        acl.init(value)


@pytest.mark.parametrize("value", [0, "", b"", [], 1.5])
def test_an_exception_callback_must_be_callable(value):
    with pytest.raises(TypeError, match="^parameter must be callable$"):
        acl.rt.set_exception_info_callback(value)


def test_the_runtime_is_not_entered(device):
    acl.get_recent_err_msg()
    acl.rt.get_last_error(0)
    for wrong in ((), ("0",), (2**31,), (0, 0)):
        with pytest.raises((TypeError, OverflowError)):
            acl.rt.set_device(*wrong)
    assert acl.get_recent_err_msg() is None
    assert acl.rt.get_last_error(0) == 0


# ---- Numbers ----


@pytest.mark.parametrize("module, name, signature, position", parameters("iue"))
def test_numbers_beyond_32_bits_overflow(module, name, signature, position):
    for value in OUT_OF_RANGE[signature[position]]:
        with pytest.raises(OverflowError):
            function(module, name)(*arguments(signature, position, value))


@pytest.mark.parametrize("one", [True, Number(1), enum.IntEnum("Device", "FIRST").FIRST])
def test_whatever_has_an_index_is_a_number(device, one):
    assert acl.rt.set_device(one) == 0
    assert acl.rt.get_device() == (1, 0)
    assert acl.rt.reset_device(one) == 0


def test_an_error_of_an_index_is_passed_on():
    class Broken:
        def __index__(self):
            raise ZeroDivisionError

    for call in (acl.rt.set_device, acl.rt.free):
        with pytest.raises(ZeroDivisionError):
            call(Broken())


@pytest.mark.parametrize("turns", [1, -1, 2**70, -(2**70)])
def test_64_bits_wrap_around(stream, turns):
    assert acl.rt.synchronize_stream(stream + turns * 2**64) == 0
    assert acl.rt.stream_get_id(stream + turns * 2**64) == acl.rt.stream_get_id(stream)
    assert acl.rt.free(turns * 2**64) == INVALID_PARAM
    assert acl.rt.malloc(turns * 2**64, 0) == (0, INVALID_PARAM)


def test_odd_sizes_come_back_as_a_status(device):
    assert acl.rt.malloc(-1, 0) == (0, INVALID_PARAM)
    assert acl.rt.malloc(2**64 - 1, 0) == (0, INVALID_PARAM)
    assert acl.rt.malloc_host(0) == (0, INVALID_PARAM)


@pytest.mark.parametrize("value", [-1, -(2**63), 2**63 - 1])
def test_signed_64_bits_keep_their_sign(device, value):
    assert acl.rt.ctx_set_sys_param_opt(0, value) == 0
    assert acl.rt.ctx_get_sys_param_opt(0) == (value, 0)
    assert acl.rt.ctx_set_sys_param_opt(0, value + 2**64) == 0
    assert acl.rt.ctx_get_sys_param_opt(0) == (value, 0)


# ---- Texts ----


@pytest.mark.parametrize(
    "call, given",
    [
        (acl.init, ["acl\0.json"]),
        (acl.get_version_str, ["run\0time"]),
        (acl.app_log, [1, "\0"]),
        (acl.rt.ipc_mem_set_import_pid, ["key\0", [1]]),
        (acl.rt.ipc_mem_import_by_key, ["\0key", 0]),
        (acl.rt.ipc_mem_close, ["key\0"]),
    ],
)
def test_a_text_has_no_nul(call, given):
    with pytest.raises(ValueError, match="^embedded null character$"):
        call(*given)


def test_a_text_is_encodable():
    with pytest.raises(UnicodeEncodeError):
        acl.get_version_str("\ud800")


# ---- Lists of process ids ----

PID_LIST_CALLS = [
    lambda pids: acl.rt.mem_set_pid_to_shareable_handle(1, pids),
    lambda pids: acl.rt.ipc_mem_set_import_pid("no such key", pids),
]


@pytest.mark.parametrize("call", PID_LIST_CALLS)
def test_pids_are_numbers_of_32_bits(call):
    for pids in (["1"], [1, None], [1.0], [[1]], [b"1"]):
        with pytest.raises(TypeError):
            call(pids)
    for pids in ([2**31], [1, -(2**31) - 1], [2**64 + 1]):
        with pytest.raises(OverflowError):
            call(pids)


@pytest.mark.parametrize("call, code", zip(PID_LIST_CALLS, [INVALID_PARAM, PARAM_INVALID]))
def test_no_pids_are_refused_by_the_runtime(device, call, code):
    assert call([]) == code


@pytest.mark.parametrize("call", PID_LIST_CALLS)
def test_a_list_that_changes_while_it_is_read_is_no_crash(device, call):
    pids = [1] * 1000

    class Shrinking:
        def __index__(self):
            pids.clear()
            return 1

    pids[0] = Shrinking()
    try:
        assert call(pids) != 0
    except (TypeError, IndexError, ValueError, RuntimeError):
        pass


# ---- Dicts ----


@pytest.mark.parametrize("key", [*BLOCK, "id", "type"])
def test_a_missing_key_is_a_key_error(device, key):
    block = {**BLOCK, "location": dict(BLOCK["location"])}
    block.pop(key, None)
    block.get("location", {}).pop(key, None)
    for call in (
        lambda: acl.rt.malloc_physical(2**21, block, 0),
        lambda: acl.rt.mem_get_allocation_granularity(block, 0),
    ):
        with pytest.raises(KeyError) as refusal:
            call()
        assert refusal.value.args == (key,)


def test_reserve_may_be_missing_and_unknown_keys_are_ignored(device):
    block = {**BLOCK, "unknown": object(), 7: "seven"}
    handle, ret = acl.rt.malloc_physical(2**21, block, 0)
    assert ret == 0 and handle > 0
    assert acl.rt.free_physical(handle) == 0


@pytest.mark.parametrize(
    "key, value, error",
    [
        ("memAttr", "4", TypeError),
        ("handleType", None, TypeError),
        ("location", [0, 1], TypeError),
        ("location", {"id": "0", "type": 1}, TypeError),
        ("memAttr", 2**40, OverflowError),
        ("location", {"id": 2**40, "type": 1}, OverflowError),
    ],
)
def test_wrong_values_in_a_dict_are_refused(device, key, value, error):
    with pytest.raises(error):
        acl.rt.malloc_physical(2**21, {**BLOCK, key: value}, 0)


def test_the_member_of_a_stream_attribute_must_be_there(stream):
    with pytest.raises(KeyError) as refusal:
        acl.rt.set_stream_attribute(stream, 3, {"failureMode": 0})
    assert refusal.value.args == ("userCustomTag",)
    with pytest.raises(TypeError):
        acl.rt.set_stream_attribute(stream, 3, {"userCustomTag": "tag"})
    with pytest.raises(OverflowError):
        acl.rt.set_stream_attribute(stream, 3, {"userCustomTag": 2**32})
    assert acl.rt.get_stream_attribute(stream, 3) == ({"userCustomTag": 0}, 0)
