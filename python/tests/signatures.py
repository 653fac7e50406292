# SPDX-License-Identifier: Apache-2.0
"""The functions of the module and their parameters, for the tests that go through all of them."""

# A letter per parameter: q 64 bits, i and u 32 bits with and without sign, e an enumeration,
# s str, l list, d dict, b bytes, t tuple, f a function, o an array, h 64 bits or bytes,
# w 16 bits, x a float.
SIGNATURES = {
    "acl": """
        finalize: finalize_reference: get_soc_name: get_recent_err_msg: get_version: app_log:es
        get_version_str:s get_cann_version:e get_cann_attribute:e get_cann_attribute_list:
        get_device_capability:ue float16_to_float:w float_to_float16:x data_type_size:e create_data_buffer:qq destroy_data_buffer:q
        get_data_buffer_addr:q get_data_buffer_size:q get_data_buffer_size_v2:q
        update_data_buffer:qqq""",
    "acl.rt": """
        set_device:i reset_device:i reset_device_force:i get_device: get_device_count: get_run_mode:
        synchronize_device: synchronize_device_with_timeout:i device_get_bare_tgid:
        device_enable_peer_access:iu device_disable_peer_access:i device_can_access_peer:ii
        device_peer_access_status:ii get_device_utilization_rate:i query_device_status:i
        get_device_info:ue get_device_capability:ie device_get_stream_priority_range:
        get_devices_topo:uu get_user_dev_id_by_logic_dev_id:i get_logic_dev_id_by_user_dev_id:i
        device_get_uuid:i set_device_sat_mode:e get_device_sat_mode: get_device_res_limit:ie
        device_set_limit:eq device_get_limit:e set_ts_device:e get_overflow_status:qqq
        reset_overflow_status:q reduce_async:qqqeeqq get_memcpy_desc_size:e set_memcpy_desc:qeqqqq
        memcpy_async_with_desc:qeq cmo_async:qqeq mem_pool_create:d mem_pool_destroy:q
        mem_pool_set_attr:qeq mem_pool_get_attr:qe mem_pool_malloc_async:qqq mem_pool_free_async:qq
        mem_pool_trim_to:qq mem_alloc_managed:qu mem_managed_advise:qqed mem_managed_get_attr:eqq
        mem_managed_prefetch_async:qqduq
        set_device_res_limit:ieu reset_device_res_limit:i get_stream_res_limit:qe
        set_stream_res_limit:qeu reset_stream_res_limit:q use_stream_res_in_current_thread:q
        unuse_stream_res_in_current_thread:q get_res_in_current_thread:e set_sys_param_opt:eq
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
        set_op_wait_timeout:u create_notify:q destroy_notify:q record_notify:qq
        wait_and_reset_notify:qqu get_notify_id:q notify_batch_reset:l notify_get_export_key:qqq
        notify_set_import_pid:ql notify_import_by_key:sq subscribe_report:qq launch_callback:fleq process_report:i
        unsubscribe_report:qq malloc:qe malloc_align32:qe malloc_cached:qe malloc_with_cfg:qed
        malloc_for_task_scheduler:qed free:q mem_flush:qq mem_invalidate:qq get_mem_info:e
        malloc_host:q malloc_host_with_cfg:qd free_host:q host_register:qqe host_register_v2:qqu
        host_get_device_pointer:qu host_unregister:q memcpy:qqqqe memcpy_async:qqqqeq
        memcpy_async_with_condition:qqqqeq memcpy2d:qqqqqqe memcpy2d_async:qqqqqqeq memset:qqiq
        memset_async:qqiqq reserve_mem_address:qqqq release_mem_address:q malloc_physical:qdq
        free_physical:q map_mem:qqqqq unmap_mem:q mem_get_allocation_granularity:de
        reserve_mem_address_no_uc_memory:qqqq mem_map_no_access:qqqqq mem_set_access:qql
        mem_get_access:qd mem_retain_allocation_handle:q
        mem_get_allocation_properties_from_handle:q mem_get_address_range:q
        mem_export_to_shareable_handle_v2:qqe mem_set_pid_to_shareable_handle_v2:hel
        mem_import_from_shareable_handle_v2:heq
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
