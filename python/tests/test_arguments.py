# SPDX-License-Identifier: Apache-2.0
"""Arguments that are refused before the runtime is entered."""
import enum
import importlib
import re

import pytest

import acl
from signatures import FUNCTIONS, OPTIONAL
from support import BLOCK, INVALID_PARAM, RT_PARAM_INVALID, Index, prop_without

PROP = prop_without("reserve")
EVERY_KEY = {**PROP, "reserve": 0, "attrs": [], "numAttrs": 0, "failureMode": 0}
EVERY_KEY.update({"allocType": 0, "id": 0, "type": 1})
FITTING = {"q": 0, "i": 0, "u": 0, "e": 0, "s": "", "l": [], "d": EVERY_KEY, "b": b"", "t": (),
           "h": 0, "w": 0, "x": 0.0}
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


class OnlyInt:
    def __int__(self):
        return 0


# ---- The number of arguments ----


@pytest.mark.parametrize("module, name, signature", FUNCTIONS)
def test_a_wrong_number_of_arguments_is_a_type_error(module, name, signature):
    call, count = function(module, name), len(signature)
    for given in {0, count - 1, count + 1} - {-1, count}:
        text = f"{module}.{name}: {exactly(count, given)}"
        with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
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
        expected = "parameter must be callable$" if letter == "f" else f"{text}{given}$"
        expected = f"^{re.escape(module)}[.]{name}: {expected}"
        with pytest.raises(TypeError, match=expected):
            function(module, name)(*arguments(signature, position, value))


@pytest.mark.parametrize("value", [b"", 0, None, [], 1.5])
def test_the_path_of_a_configuration_is_text(value):
    with pytest.raises(TypeError, match="argument 1 must be str, not "):
        acl.init(value)


@pytest.mark.parametrize("value", [0, "", b"", [], 1.5])
def test_an_exception_callback_must_be_callable(value):
    text = r"^acl\.rt\.set_exception_info_callback: parameter must be callable$"
    with pytest.raises(TypeError, match=text):
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


@pytest.mark.parametrize("one", [True, Index(1), enum.IntEnum("Device", "FIRST").FIRST])
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
        (acl.rt.notify_import_by_key, ["key\0", 0]),
    ],
)
def test_a_text_has_no_nul(call, given):
    with pytest.raises(ValueError, match=r"^acl\.[a-z_.]+: embedded null character$"):
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


@pytest.mark.parametrize("call, code", zip(PID_LIST_CALLS, [INVALID_PARAM, RT_PARAM_INVALID]))
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


@pytest.mark.parametrize("key", [*PROP, "id", "type"])
def test_a_missing_key_is_a_key_error(device, key):
    block = {**PROP, "location": dict(PROP["location"])}
    block.pop(key, None)
    block.get("location", {}).pop(key, None)
    for name, call in (
        ("malloc_physical", lambda: acl.rt.malloc_physical(BLOCK, block, 0)),
        ("mem_get_allocation_granularity", lambda: acl.rt.mem_get_allocation_granularity(block, 0)),
    ):
        with pytest.raises(KeyError) as refusal:
            call()
        assert refusal.value.args == (f"acl.rt.{name}: a dict has no key '{key}'",)


def test_reserve_may_be_missing_and_unknown_keys_are_ignored(device):
    block = {**PROP, "unknown": object(), 7: "seven"}
    handle, ret = acl.rt.malloc_physical(BLOCK, block, 0)
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
        acl.rt.malloc_physical(BLOCK, {**PROP, key: value}, 0)


def test_the_member_of_a_stream_attribute_must_be_there(stream):
    with pytest.raises(KeyError) as refusal:
        acl.rt.set_stream_attribute(stream, 3, {"failureMode": 0})
    assert refusal.value.args == ("acl.rt.set_stream_attribute: a dict has no key 'userCustomTag'",)
    with pytest.raises(TypeError):
        acl.rt.set_stream_attribute(stream, 3, {"userCustomTag": "tag"})
    with pytest.raises(OverflowError):
        acl.rt.set_stream_attribute(stream, 3, {"userCustomTag": 2**32})
    assert acl.rt.get_stream_attribute(stream, 3) == ({"userCustomTag": 0}, 0)


@pytest.mark.parametrize("name", [[], 10**100, 1.5, None])
def test_a_type_whose_name_is_no_text_is_refused_as_well(name):
    class Meta(type):
        __name__ = name

    class Odd(metaclass=Meta):
        pass

    with pytest.raises(TypeError, match=r"^acl\.rt\.free: argument 1 must be int$"):
        acl.rt.free(Odd())


def test_an_exception_of_the_programs_own_keeps_its_text():
    class Odd:
        def __index__(self):
            acl.rt.get_device()  # another function of the module, and back
            raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        acl.rt.free(Odd())

    class Nested:
        def __index__(self):
            with pytest.raises(TypeError, match=r"^acl\.rt\.malloc: "):
                acl.rt.malloc()
            return 1

    with pytest.raises(TypeError, match=r"^acl\.rt\.malloc_align32: argument 2 must be int"):
        acl.rt.malloc_align32(Nested(), "policy")
