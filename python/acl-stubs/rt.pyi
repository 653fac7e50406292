# SPDX-License-Identifier: Apache-2.0
"""The runtime: devices, contexts, streams, events, callbacks, memory and errors.

The status ret is the only or the last result: 0 is success, other outputs are zero or empty
after a failure, and acl.get_recent_err_msg tells the reason. Addresses, handles, flags and enums
are ints; there are no constants. Stream 0 is the default stream of the current context.
On a stream means that the call only queues the work, which then runs in the order of the stream.
"""
from typing import Any, Callable

from typing_extensions import NotRequired, TypedDict

# ---- Dictionaries: the members of C structures, under their C names

class _MemLocation(TypedDict):
    id: int
    type: int

class _PhysicalMemProp(TypedDict):
    handleType: int
    allocationType: int
    memAttr: int
    location: _MemLocation
    reserve: NotRequired[int]

class _MemPoolProps(TypedDict):
    allocType: int
    handleType: int
    location: _MemLocation
    maxSize: NotRequired[int]

class _MemAccessDesc(TypedDict):
    flags: int
    location: _MemLocation

# One of the members, the one that belongs to the attribute.
class _MallocAttrValue(TypedDict, total=False):
    moduleId: int
    deviceId: int
    rsv: int

class _MallocAttribute(TypedDict):
    attr: int
    value: _MallocAttrValue | int

# Empty, or both members.
class _MallocConfig(TypedDict, total=False):
    attrs: list[_MallocAttribute]
    numAttrs: int

class _PtrAttributes(TypedDict):
    location: _MemLocation
    pageSize: int
    rsv: list[int]

class _UtilizationInfo(TypedDict):
    cube_utilization: int
    vector_utilization: int
    aicpu_utilization: int
    memory_utilization: int
    utilization_extend: int

class _Uuid(TypedDict):
    bytes: str

# One of the members, the one that belongs to the attribute.
class _StreamAttrValue(TypedDict, total=False):
    failureMode: int
    overflowSwitch: int
    userCustomTag: int
    cacheOpInfoSwitch: int
    streamPriority: int
    reserve: int

# ---- Devices

def set_device(device_id: int, /) -> int:
    """Makes the default context of a device current for the thread, and counts the call.

    The first call creates that context.
    """

def reset_device(device_id: int, /) -> int:
    """Takes back one set_device; the last one waits for the tasks and releases the device.

    The default context, its streams and the memory from malloc go; virtual memory stays.
    """

def reset_device_force(device_id: int, /) -> int:
    """Releases a device at once, however often it was set."""

def get_device() -> tuple[int, int]:
    """Gives the device of the current context as (device_id, ret)."""

def get_device_count() -> tuple[int, int]:
    """Gives the number of devices this process may use as (count, ret); their ids run from 0."""

def get_run_mode() -> tuple[int, int]:
    """Tells where the program runs; gives (run_mode, ret): 0 on the device, 1 on the host."""

def synchronize_device() -> int:
    """Waits for all tasks of the current context."""

def synchronize_device_with_timeout(timeout_ms: int, /) -> int:
    """Waits for all tasks of the current context, at most timeout_ms milliseconds.

    -1 waits without limit, 0 is refused. When the time is over, ret is 507046.
    """

def device_get_bare_tgid() -> tuple[int, int]:
    """Gives (pid, ret): the number of this process for the pid lists of others.

    It is the process id as the host sees it, also inside a container.
    """

def device_enable_peer_access(peer_device_id: int, flags: int, /) -> int:
    """Lets the current device reach the memory of another one, not the other way round.

    flags is reserved, 0.
    """

def device_disable_peer_access(peer_device_id: int, /) -> int:
    """Takes back device_enable_peer_access."""

def device_can_access_peer(device_id: int, peer_device_id: int, /) -> tuple[int, int]:
    """Tells whether a device could reach another one; gives (can_access, ret): 1 yes, 0 no.

    Equal ids are refused.
    """

def device_peer_access_status(device_id: int, peer_device_id: int, /) -> tuple[int, int]:
    """Tells whether a device may reach another one now; gives (status, ret): 1 yes, 0 no."""

def get_device_utilization_rate(device_id: int, /) -> tuple[_UtilizationInfo, int]:
    """Gives the load of a device as (dict, ret), in percent; -1 stands for unknown."""

def query_device_status(device_id: int, /) -> tuple[int, int]:
    """Gives the health of a device as (status, ret): 0 normal, 1 abnormal."""

def get_device_info(device_id: int, attr: int, /) -> tuple[int, int]:
    """Gives one figure of a device as (value, ret), e.g. attr 301 for the bytes of its memory."""

def get_device_capability(device_id: int, feature_type: int, /) -> tuple[int, int]:
    """Tells whether a device has a feature; gives (value, ret): 1 yes, 0 no."""

def device_get_stream_priority_range() -> tuple[int, int, int]:
    """Gives the lowest and the highest stream priority as (least, greatest, ret).

    They are 7 and 0: the smaller number comes first.
    """

def get_devices_topo(device_id: int, other_device_id: int, /) -> tuple[int, int]:
    """Gives the links between two devices as (value, ret), an OR of bits.

    1 HCCS, 2 one PCIe switch, 4 several PCIe switches, 8 host bridge, 16 across sockets,
    32 dies of one chip, 64 HCCS through a switch.
    """

def get_user_dev_id_by_logic_dev_id(logic_id: int, /) -> tuple[int, int]:
    """Turns the device id of the system into that of this process; gives (user_id, ret).

    They differ if ASCEND_RT_VISIBLE_DEVICES renumbers the devices.
    """

def get_logic_dev_id_by_user_dev_id(user_id: int, /) -> tuple[int, int]:
    """Turns the device id of this process into that of the system; gives (logic_id, ret)."""

def device_get_uuid(device_id: int, /) -> tuple[_Uuid, int]:
    """Gives the unique id of a device as (uuid, ret).

    uuid is a dict whose only entry, bytes, is a str of 16 characters, one for each byte.
    """

def set_device_sat_mode(mode: int, /) -> int:
    """Sets what a floating-point overflow yields on the current device.

    0 is the largest number, 1 is infinity or NaN.
    """

def get_device_sat_mode() -> tuple[int, int]:
    """Gives the overflow mode of the current device as (mode, ret), see set_device_sat_mode."""

def get_device_res_limit(device_id: int, type: int, /) -> tuple[int, int]:
    """Gives how many cores a device may use as (value, ret); type is 0 for cube, 1 for vector."""

def set_device_res_limit(device_id: int, type: int, value: int, /) -> int:
    """Limits the cores that a device may use. Remembered, without effect here."""

def reset_device_res_limit(device_id: int, /) -> int:
    """Takes the limits of a device back."""

def device_set_limit(limit: int, value: int, /) -> int:
    """Sets a size that kernels get, for all devices of the process: stacks, buffers of output."""

def device_get_limit(limit: int, /) -> tuple[int, int]:
    """Gives a size that kernels get as (value, ret)."""

def set_ts_device(ts_id: int, /) -> int:
    """Chooses a task scheduler, 0 or 1. Without effect here."""

def get_overflow_status(output_addr: int, output_size: int, stream: int, /) -> int:
    """Writes 64 bytes that tell of overflows to device memory, in the order of the stream.

    They are 0 here: nothing raises them. output_size is 64.
    """

def reset_overflow_status(stream: int, /) -> int:
    """Clears what get_overflow_status tells, in the order of the stream."""

def set_sys_param_opt(opt: int, value: int, /) -> int:
    """Sets an option of the process."""

def get_sys_param_opt(opt: int, /) -> tuple[int, int]:
    """Gives an option of the process as (value, ret); 0 if it was never set."""

# ---- Contexts

def create_context(device_id: int, /) -> tuple[int, int]:
    """Creates a context and makes it current for the thread; gives (context, ret).

    set_device is not needed before.
    """

def destroy_context(context: int, /) -> int:
    """Destroys a context from create_context and its streams. Device memory stays."""

def set_context(context: int, /) -> int:
    """Makes a context current for the thread, whichever thread created it."""

def get_context() -> tuple[int, int]:
    """Gives the current context of the thread as (context, ret)."""

def ctx_get_current_default_stream() -> tuple[int, int]:
    """Gives the handle of the stream that 0 stands for as (stream, ret)."""

def get_primary_ctx_state(device_id: int, /) -> tuple[int, int, int]:
    """Tells whether the default context of a device exists; gives (active, flags, ret).

    active is 1 or 0 and comes first, unlike in C. flags is reserved, 0.
    """

def ctx_set_sys_param_opt(opt: int, value: int, /) -> int:
    """Sets an option of the current context."""

def ctx_get_sys_param_opt(opt: int, /) -> tuple[int, int]:
    """Gives an option of the current context as (value, ret).

    An option that was never set gives 107021.
    """

# ---- Streams

def create_stream() -> tuple[int, int]:
    """Creates a stream in the current context; gives (stream, ret)."""

def create_stream_with_config(priority: int, flag: int, /) -> tuple[int, int]:
    """Creates a stream with a priority and flags; gives (stream, ret).

    priority runs from 0, the highest, to 7; larger ones count as 7. flag is 0 for none.
    """

def destroy_stream(stream: int, /) -> int:
    """Waits for the tasks of a stream and destroys it. Stream 0 is refused."""

def destroy_stream_force(stream: int, /) -> int:
    """Drops the tasks of a stream that have not started, and destroys it. 0 is refused."""

def synchronize_stream(stream: int, /) -> int:
    """Waits for the tasks queued so far. If one of them failed, ret is its error."""

def synchronize_stream_with_timeout(stream: int, timeout_ms: int, /) -> int:
    """Waits for the tasks queued so far, at most timeout_ms milliseconds.

    -1 waits without limit, 0 is refused. When the time is over, ret is 507046 and the tasks
    go on.
    """

def stream_query(stream: int, /) -> tuple[int, int]:
    """Tells, without waiting, whether a stream is done; gives (status, ret).

    status is 0 if all tasks are done, 1 if not.
    """

def stream_abort(stream: int, /) -> int:
    """Stops the running task and drops the queued ones. The stream stays usable.

    Threads that wait for the stream meanwhile get 107023.
    """

def stream_get_id(stream: int, /) -> tuple[int, int]:
    """Gives (stream_id, ret): a number no other live stream of the device has."""

def get_stream_available_num() -> tuple[int, int]:
    """Tells how many streams can still be created; gives (count, ret)."""

def set_stream_attribute(stream: int, attr_type: int, value: _StreamAttrValue, /) -> int:
    """Sets an attribute of a stream to the member of value that belongs to attr_type.

    1 failureMode, 2 overflowSwitch, 3 userCustomTag, 4 cacheOpInfoSwitch, 5 streamPriority.
    """

def get_stream_attribute(stream: int, attr_type: int, /) -> tuple[_StreamAttrValue, int]:
    """Gives an attribute of a stream as (dict, ret).

    The dict has one entry, that of attr_type, see set_stream_attribute.
    """

def set_stream_failure_mode(stream: int, mode: int, /) -> int:
    """Chooses what a stream does after a failed task: 0 goes on, 1 stops.

    There is no way back from 1, which also holds for the other streams of the context.
    """

def set_stream_overflow_switch(stream: int, flag: int, /) -> int:
    """Switches the overflow check of a stream on (1) or off (0)."""

def get_stream_overflow_switch(stream: int, /) -> tuple[int, int]:
    """Tells whether the overflow check of a stream is on; gives (flag, ret): 1 on, 0 off."""

def get_stream_res_limit(stream: int, type: int, /) -> tuple[int, int]:
    """Gives how many cores a stream may use as (value, ret); type is 0 for cube, 1 for vector."""

def set_stream_res_limit(stream: int, type: int, value: int, /) -> int:
    """Limits the cores that a stream may use. Remembered, without effect here."""

def reset_stream_res_limit(stream: int, /) -> int:
    """Takes the limits of a stream back."""

def use_stream_res_in_current_thread(stream: int, /) -> int:
    """Makes the limits of a stream those of the calling thread."""

def unuse_stream_res_in_current_thread(stream: int, /) -> int:
    """Takes use_stream_res_in_current_thread back."""

def get_res_in_current_thread(type: int, /) -> tuple[int, int]:
    """Gives how many cores the calling thread may use as (value, ret).

    They are those of the stream it uses, else those of its device.
    """

# ---- Events

def create_event() -> tuple[int, int]:
    """Creates an event with the flags 1, 2 and 8 of create_event_with_flag; gives (event, ret)."""

def create_event_with_flag(flag: int, /) -> tuple[int, int]:
    """Creates an event with chosen abilities; gives (event, ret).

    flag is an OR of 1 for waits of streams, 2 for queries and 8 for times; 0 is refused.
    """

def create_event_ex_with_flag(flag: int, /) -> tuple[int, int]:
    """Creates an event to be recorded and waited for repeatedly; gives (event, ret).

    flag is as for create_event_with_flag. reset_event, query_event and query_event_wait_status
    refuse such an event; query_event_status takes it.
    """

def destroy_event(event: int, /) -> int:
    """Destroys an event without waiting. Waits that are already queued still complete."""

def record_event(event: int, stream: int, /) -> int:
    """Makes an event stand for the tasks queued on a stream so far. It does not wait.

    Mind the order: event first.
    """

def reset_event(event: int, stream: int, /) -> int:
    """Takes an event back to its unrecorded state, on a stream. Mind the order: event first.

    The event must have flag 1 and not come from create_event_ex_with_flag.
    """

def query_event(event: int, /) -> tuple[int, int]:
    """Tells, without waiting, whether the recorded tasks are done; gives (status, ret).

    status is 0 if done, 1 if not: the opposite of query_event_status.
    Deprecated: use query_event_status.
    """

def query_event_status(event: int, /) -> tuple[int, int]:
    """Tells, without waiting, whether the recorded tasks are done; gives (status, ret).

    status is 1 if done, 0 if not: the opposite of the other two queries.
    """

def query_event_wait_status(event: int, /) -> tuple[int, int]:
    """Tells, without waiting, whether the waits of streams for an event are over.

    Gives (status, ret). status is 0 if over, 1 if not: the opposite of query_event_status.
    """

def synchronize_event(event: int, /) -> int:
    """Waits until the recorded tasks are done; returns at once if nothing was recorded."""

def synchronize_event_with_timeout(event: int, timeout_ms: int, /) -> int:
    """Waits until the recorded tasks are done, at most timeout_ms milliseconds.

    -1 waits without limit, 0 is refused. When the time is over, ret is 507047.
    """

def event_elapsed_time(start: int, end: int, /) -> tuple[float, int]:
    """Gives the time between two events as (ms, ret), a float of milliseconds.

    Both need flag 8 and must be reached: it does not wait.
    """

def stream_wait_event(stream: int, event: int, /) -> int:
    """Lets later tasks of a stream start only when the recorded tasks of an event are done.

    The caller does not wait. Mind the order: stream first.
    """

def event_get_timestamp(event: int, /) -> tuple[int, int]:
    """Gives the time at which an event was reached as (microseconds, ret). It needs flag 8."""

def get_event_id(event: int, /) -> tuple[int, int]:
    """Gives the number of an event as (event_id, ret)."""

def get_event_avail_num() -> tuple[int, int]:
    """Tells how many events can still be created; gives (count, ret)."""

def set_op_wait_timeout(seconds: int, /) -> int:
    """Limits how long streams wait for an event; 0 is without limit."""

# ---- Notifies

def create_notify(flag: int, /) -> tuple[int, int]:
    """Creates a notify on the current device; gives (notify, ret). flag is 0, or 1 for device use."""

def destroy_notify(notify: int, /) -> int:
    """Destroys a notify. Tasks that are queued still work."""

def record_notify(notify: int, stream: int, /) -> int:
    """Sets a notify, on a stream."""

def wait_and_reset_notify(notify: int, stream: int, timeout: int, /) -> int:
    """Holds later tasks of a stream until the notify is set, and clears it.

    The caller does not wait. timeout is in seconds, 0 for no limit.
    """

def get_notify_id(notify: int, /) -> tuple[int, int]:
    """Gives the number of a notify as (notify_id, ret)."""

def notify_batch_reset(notifies: list[int], /) -> int:
    """Clears every notify of the list."""

def notify_get_export_key(notify: int, len: int, flags: int, /) -> tuple[str, int]:
    """Makes a notify available to other processes; gives (key, ret), key being a str.

    len is 65. With flags 0 the processes listed with notify_set_import_pid may import it, with 2
    every process.
    """

def notify_set_import_pid(notify: int, pid: list[int], /) -> int:
    """Adds processes, by their device_get_bare_tgid, to those that may import."""

def notify_import_by_key(key: str, flags: int, /) -> tuple[int, int]:
    """Gives a notify of another process as (notify, ret); end it with destroy_notify.

    flags 2 also enables peer access between the devices, 0 does not.
    """

# ---- Callbacks

def subscribe_report(thread_id: int, stream: int, /) -> int:
    """Appoints the thread that runs the callbacks of a stream in process_report.

    thread_id comes from acl.util.start_thread or threading.Thread.ident. A stream has one such
    thread; a thread may serve several streams of one device.
    """

def launch_callback(
    callback: Callable[[list[Any]], object], user_data: list[Any], block_type: int, stream: int, /
) -> int:
    """Queues a call of callback(user_data) on a stream, for the thread subscribed to it.

    callback gets the list itself as its only argument. With block_type 1 later tasks of the
    stream wait until it returns, with 0 they do not. Both objects are kept until it has run.
    """

def process_report(timeout_ms: int, /) -> int:
    """Waits for a callback and runs it in the calling thread, which must be subscribed.

    -1 waits without limit, 0 is refused. If none came within timeout_ms, ret is 507012.
    """

def unsubscribe_report(thread_id: int, stream: int, /) -> int:
    """Takes back subscribe_report. The thread may have ended."""

# ---- Device memory

def malloc(size: int, policy: int, /) -> tuple[int, int]:
    """Allocates memory on the current device; gives (dev_ptr, ret).

    policy is 0 for huge pages first, 1 for huge pages only, 2 for normal pages only.
    The address is a multiple of 64, the contents are undefined. Give it back with free.
    """

def malloc_align32(size: int, policy: int, /) -> tuple[int, int]:
    """Allocates as malloc does, without the 32 bytes that malloc adds; gives (dev_ptr, ret)."""

def malloc_cached(size: int, policy: int, /) -> tuple[int, int]:
    """Allocates as malloc does, with the processor cache enabled; gives (dev_ptr, ret)."""

def malloc_with_cfg(size: int, policy: int, cfg: _MallocConfig, /) -> tuple[int, int]:
    """Allocates as malloc_align32 does, with attributes; gives (dev_ptr, ret).

    cfg is empty or has attrs, a list of dicts with attr and value, and their number numAttrs.
    """

def malloc_for_task_scheduler(size: int, policy: int, cfg: _MallocConfig, /) -> tuple[int, int]:
    """Allocates as malloc_with_cfg does, for the task scheduler; gives (dev_ptr, ret)."""

def free(dev_ptr: int, /) -> int:
    """Frees device memory at once. It does not wait for tasks that still use it.

    dev_ptr is the start of the block; 0 is refused.
    """

def mem_flush(dev_ptr: int, size: int, /) -> int:
    """Writes cached data back to device memory."""

def mem_invalidate(dev_ptr: int, size: int, /) -> int:
    """Drops cached data, so that the next access reads device memory."""

def get_mem_info(attr: int, /) -> tuple[int, int, int]:
    """Gives the free and all bytes of a kind of memory of the current device.

    The result is (free, total, ret). attr is 0 for DDR and 1 for HBM, each with all pages.
    Memory that the device does not have gives 0, 0 and success.
    """

# ---- Host memory

def malloc_host(size: int, /) -> tuple[int, int]:
    """Allocates page-locked host memory; gives (host_ptr, ret).

    The address is a multiple of 64, the contents are undefined. Give it back with free_host.
    """

def malloc_host_with_cfg(size: int, cfg: _MallocConfig, /) -> tuple[int, int]:
    """Allocates as malloc_host does, with attributes; gives (host_ptr, ret).

    cfg is as for malloc_with_cfg.
    """

def free_host(host_ptr: int, /) -> int:
    """Frees page-locked host memory at once. It does not wait for tasks that still use it.

    host_ptr is the start of the block; 0 is refused.
    """

def host_register(ptr: int, size: int, register_type: int, /) -> tuple[int, int]:
    """Makes host memory visible to the device; gives (dev_ptr, ret).

    ptr is a multiple of the page size, register_type is 0. dev_ptr is for kernels, not for
    copies.
    """

def host_register_v2(ptr: int, size: int, flag: int, /) -> int:
    """Makes host memory visible to the device (flag 2), page-locked (0x10000000), or both."""

def host_get_device_pointer(host_ptr: int, flag: int, /) -> tuple[int, int]:
    """Gives the device address of a range that was registered as visible, as (dev_ptr, ret).

    host_ptr is the start of the range, flag is reserved, 0.
    """

def host_unregister(ptr: int, /) -> int:
    """Takes back host_register or host_register_v2. The host memory itself stays."""

# ---- Copy and set

def memcpy(dst: int, dest_max: int, src: int, count: int, kind: int, /) -> int:
    """Copies count bytes; they are there on return. Streams are not waited for.

    dest_max is the room at dst. The addresses decide the direction; kind, 0 to 5, is a hint.
    """

def memcpy_async(dst: int, dest_max: int, src: int, count: int, kind: int, stream: int, /) -> int:
    """Copies count bytes on a stream.

    kind is 1 host to device, 2 device to host, 3 device to device, 4 as the addresses say; host
    to host gives 207000. Leave page-locked and device memory alone until the stream is
    synchronized; with a side in ordinary host memory the copy is done on return.
    """

def memcpy_async_with_condition(
    dst: int, dest_max: int, src: int, count: int, kind: int, stream: int, /
) -> int:
    """Copies as memcpy_async does. Deprecated: use memcpy_async."""

def memcpy2d(
    dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, /
) -> int:
    """Copies height rows of width bytes between host and device; they are there on return.

    dpitch and spitch are the bytes from one row to the next at dst and at src.
    """

def memcpy2d_async(
    dst: int,
    dpitch: int,
    src: int,
    spitch: int,
    width: int,
    height: int,
    kind: int,
    stream: int,
    /,
) -> int:
    """Copies rows as memcpy2d does, on a stream, also between device memory.

    When it is done and what may be touched meanwhile is as for memcpy_async.
    """

def memset(ptr: int, max_count: int, value: int, count: int, /) -> int:
    """Sets count bytes to the low 8 bits of value; done on return.

    max_count is the room at ptr. ptr is device memory, or host memory from malloc_host.
    """

def memset_async(ptr: int, max_count: int, value: int, count: int, stream: int, /) -> int:
    """Sets bytes as memset does: device memory on a stream, host memory at once."""

def reduce_async(
    dst: int, src: int, count: int, kind: int, type: int, stream: int, reserve: int, /
) -> int:
    """Combines count bytes of elements at src with those at dst, which get the results.

    kind is 10 for the sum, 11 for the larger, 12 for the smaller one; type is an ACL data type;
    reserve is 0. Both are memory of the stream's device.
    """

def get_memcpy_desc_size(kind: int, /) -> tuple[int, int]:
    """Gives the bytes that the description of a copy takes as (desc_size, ret). kind is 6."""

def set_memcpy_desc(
    desc: int, kind: int, src_addr: int, dst_addr: int, count: int, config: int, /
) -> tuple[int, int]:
    """Writes the description of a copy to device memory; gives (desc, ret).

    kind is 6, within one device; config is 0.
    """

def memcpy_async_with_desc(desc: int, kind: int, stream: int, /) -> int:
    """Makes the copy that device memory describes when the stream gets there."""

def cmo_async(src: int, size: int, cmo_type: int, stream: int, /) -> int:
    """Queues a cache operation, 0 to 3, which changes nothing."""

# ---- Pools and managed memory: beyond the published module

def mem_pool_create(props: _MemPoolProps, /) -> tuple[int, int]:
    """Makes a pool whose memory is given and taken in the order of streams; gives (pool, ret).

    props has allocType 0, handleType 0, a device as location, and maxSize.
    """

def mem_pool_destroy(pool: int, /) -> int:
    """Ends a pool, and what is allocated from it."""

def mem_pool_set_attr(pool: int, attr: int, value: int, /) -> int:
    """Sets an attribute: 1 to 3 are switches for reuse, 4 is the bytes that stay free."""

def mem_pool_get_attr(pool: int, attr: int, /) -> tuple[int, int]:
    """Gives an attribute as (value, ret); 5 and 6 are reserved bytes, 7 and 8 those in use."""

def mem_pool_malloc_async(size: int, pool: int, stream: int, /) -> tuple[int, int]:
    """Gives memory for tasks that are queued on the stream later, as (ptr, ret)."""

def mem_pool_free_async(ptr: int, stream: int, /) -> int:
    """Takes memory back when the stream gets there."""

def mem_pool_trim_to(pool: int, min_bytes: int, /) -> int:
    """Gives free memory back to the device, down to so many bytes."""

def mem_alloc_managed(size: int, flag: int, /) -> tuple[int, int]:
    """Allocates memory that the CPU and every device use by one address; gives (ptr, ret).

    flag is 1. Give it back with free.
    """

def mem_managed_advise(ptr: int, size: int, advise: int, location: _MemLocation, /) -> int:
    """Says how managed memory will be used."""

def mem_managed_get_attr(attribute: int, ptr: int, size: int, /) -> tuple[int, int]:
    """Gives an attribute of managed memory as (value, ret); of several devices the first one."""

def mem_managed_prefetch_async(
    ptr: int, size: int, location: _MemLocation, flags: int, stream: int, /
) -> int:
    """Says, in the order of the stream, where managed memory will be used next. flags is 0."""

# ---- Virtual memory

def reserve_mem_address(
    size: int, alignment: int, expect_ptr: int, flags: int, /
) -> tuple[int, int]:
    """Reserves addresses without memory behind them; gives (vir_ptr, ret).

    alignment is reserved, 0. expect_ptr is 0, or the address wished for. flags is 0, or 1 for
    huge pages. Give them back with release_mem_address.
    """

def release_mem_address(vir_ptr: int, /) -> int:
    """Releases a reservation by its start. It must have no mapping left."""

def malloc_physical(size: int, prop: _PhysicalMemProp, flags: int, /) -> tuple[int, int]:
    """Allocates physical memory, which has no address until it is mapped; gives (handle, ret).

    size is a multiple of mem_get_allocation_granularity, flags is reserved, 0.
    prop has handleType 0, allocationType 0, memAttr, location with id and type, and reserve 0.
    """

def free_physical(handle: int, /) -> int:
    """Gives up a handle. The memory goes back when no mapping and no process uses it any more."""

def map_mem(vir_ptr: int, size: int, offset: int, handle: int, flags: int, /) -> int:
    """Maps physical memory at an address inside a reservation.

    size is that of the physical memory. offset and flags are reserved, 0.
    """

def unmap_mem(vir_ptr: int, /) -> int:
    """Removes a mapping by its start. The handle keeps the memory and its contents."""

def mem_get_allocation_granularity(prop: _PhysicalMemProp, option: int, /) -> tuple[int, int]:
    """Gives the unit of sizes and addresses for such physical memory as (granularity, ret).

    It is in bytes. option is 0 for the minimum, 1 for the recommended unit.
    """

def reserve_mem_address_no_uc_memory(
    size: int, alignment: int, expect_ptr: int, flags: int, /
) -> tuple[int, int]:
    """Reserves addresses that take blocks of any device side by side; gives (vir_ptr, ret).

    expect_ptr is needed, a multiple of 1 GiB. Beyond the published module.
    """

def mem_map_no_access(
    vir_ptr: int, size: int, offset: int, handle: int, flags: int, /
) -> int:
    """As map_mem, but without access until mem_set_access grants it.

    Beyond the published module.
    """

def mem_set_access(vir_ptr: int, size: int, desc: list[_MemAccessDesc], /) -> int:
    """Grants devices or the host access to a mapping.

    flags of an entry is 1 for reading and writing. Beyond the published module.
    """

def mem_get_access(vir_ptr: int, location: _MemLocation, /) -> tuple[int, int]:
    """Gives the access that a location has to a mapping as (flag, ret).

    Beyond the published module.
    """

def mem_retain_allocation_handle(vir_ptr: int, /) -> tuple[int, int]:
    """Gives the handle of the memory mapped at an address as (handle, ret).

    It has to be freed as often as it was given. Beyond the published module.
    """

def mem_get_allocation_properties_from_handle(handle: int, /) -> tuple[_PhysicalMemProp, int]:
    """Gives the properties of physical memory as (dict, ret). Beyond the published module."""

def mem_get_address_range(ptr: int, /) -> tuple[int, int, int]:
    """Gives start and size of the allocation or mapping around an address as (base, size, ret).

    Beyond the published module.
    """

# ---- Sharing between processes

def mem_export_to_shareable_handle(
    handle: int, handle_type: int, flags: int, /
) -> tuple[int, int]:
    """Makes physical memory available to other processes, once; gives (shareable_handle, ret).

    handle_type is reserved, 0. With flags 0 the processes listed with
    mem_set_pid_to_shareable_handle may import it, with 1 every process.
    """

def mem_set_pid_to_shareable_handle(shareable_handle: int, pids: list[int], /) -> int:
    """Adds processes, by their device_get_bare_tgid, to those that may import."""

def mem_import_from_shareable_handle(shareable_handle: int, device_id: int, /) -> tuple[int, int]:
    """Opens physical memory of another process for a device; gives (handle, ret).

    Map it with map_mem and give it up with free_physical.
    """

def mem_export_to_shareable_handle_v2(
    handle: int, flags: int, share_type: int, /
) -> tuple[int | bytes, int]:
    """As mem_export_to_shareable_handle, for either kind of handle; gives (shareable_handle, ret).

    share_type is 1 for a number and 2 for 128 bytes. Beyond the published module.
    """

def mem_set_pid_to_shareable_handle_v2(
    shareable_handle: int | bytes, share_type: int, pids: list[int], /
) -> int:
    """As mem_set_pid_to_shareable_handle, for either kind. Beyond the published module."""

def mem_import_from_shareable_handle_v2(
    shareable_handle: int | bytes, share_type: int, flags: int, /
) -> tuple[int, int]:
    """Opens memory of another process for the current device; gives (handle, ret).

    flags is reserved, 0. Beyond the published module.
    """

def ipc_mem_get_export_key(dev_ptr: int, size: int, key_len: int, flags: int, /) -> tuple[str, int]:
    """Makes device memory available to other processes; gives (key, ret), key being a str.

    dev_ptr is the start of a block, key_len is 65. With flags 0 the processes listed with
    ipc_mem_set_import_pid may import it, with 1 every process.
    """

def ipc_mem_set_import_pid(key: str, pids: list[int], /) -> int:
    """Adds processes, by their device_get_bare_tgid, to those that may import."""

def ipc_mem_import_by_key(key: str, flags: int, /) -> tuple[int, int]:
    """Gives an address for device memory of another process as (dev_ptr, ret).

    flags 1 also enables peer access between the devices, 0 does not.
    End with ipc_mem_close, not with free.
    """

def ipc_mem_close(key: str, /) -> int:
    """Ends the oldest import of a key in this process or, in its exporter, the export."""

# ---- Pointers and values in memory

def pointer_get_attributes(ptr: int, /) -> tuple[_PtrAttributes, int]:
    """Tells where an address lies; gives (dict, ret) with location, pageSize and rsv.

    The type of the location is 0 host, 1 device, 2 unknown here, 3 managed, 4 NUMA node.
    """

def value_write(dev_addr: int, value: int, flag: int, stream: int, /) -> int:
    """Writes 64 bits to device memory, on a stream.

    dev_addr is a multiple of 8, flag is reserved, 0.
    """

def value_wait(dev_addr: int, value: int, flag: int, stream: int, /) -> int:
    """Holds a stream, not the caller, until the 64 bits a in device memory fit value.

    flag is 0 for a - value >= 0 as signed numbers, 1 for a == value, 2 for (a & value) != 0,
    3 for ~(a | value) != 0.
    """

# ---- Errors: codes and failed tasks

def peek_at_last_error(level: int, /) -> int:
    """Gives the latest 107xxx, 207xxx or 507xxx code of the thread and keeps it; 0 if none.

    level is 0.
    """

def get_last_error(level: int, /) -> int:
    """Gives the latest 107xxx, 207xxx or 507xxx code of the thread and forgets it; 0 if none.

    level is 0.
    """

def set_exception_info_callback(callback: Callable[[int], object] | None = ..., /) -> int:
    """Has callback(info) called when a task fails. Without an argument, or with None, no longer.

    info is for the functions below and only valid during the call.
    """

def get_task_id_from_exception_info(info: int, /) -> int:
    """Gives the task that failed; 0xFFFFFFFF if info is 0. There is no ret."""

def get_stream_id_from_exception_info(info: int, /) -> int:
    """Gives the id of the stream of the failed task; 0xFFFFFFFF if info is 0. There is no ret."""

def get_thread_id_from_exception_info(info: int, /) -> int:
    """Gives the thread of the failed task; 0xFFFFFFFF if info is 0. There is no ret."""

def get_device_id_from_exception_info(info: int, /) -> int:
    """Gives the device of the failed task; 0xFFFFFFFF if info is 0. There is no ret."""

def get_error_code_from_exception_info(info: int, /) -> int:
    """Gives the error code of the failed task; 0xFFFFFFFF if info is 0. There is no ret."""

# ---- Errors: aborting and time limits

def device_task_abort(device_id: int, timeout_ms: int, /) -> int:
    """Stops and drops all tasks of a device, within timeout_ms milliseconds.

    0 is without limit. Threads that wait for the tasks meanwhile get 107022.
    """

def set_op_execute_time_out(seconds: int, /) -> int:
    """Sets the time limit of operators in seconds."""

def set_op_execute_timeout_v2(microseconds: int, /) -> tuple[int, int]:
    """Sets the time limit of operators; gives (actual, ret), the limit in force.

    Both are in microseconds.
    """

def get_op_execute_timeout() -> tuple[int, int]:
    """Gives the time limit of operators as (ms, ret), in milliseconds."""

def get_op_timeout_interval() -> tuple[int, int]:
    """Gives the step between possible time limits as (microseconds, ret)."""

def get_thread_last_task_id() -> tuple[int, int]:
    """Gives the id of the task that the thread queued last as (task_id, ret)."""
