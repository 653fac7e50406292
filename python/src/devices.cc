// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: devices and contexts.
#include "acl/acl_rt.h"
#include "binding.h"
#include "callbacks.h"
#include "dictionaries.h"
#include "tables.h"

namespace understudy::python {
namespace {

// A function that fills a structure for a device: the structure as a dictionary, empty on failure.
template <typename Structure, aclError (*kFunction)(int32_t, Structure*)>
PyObject* describe_device(const Arguments& arguments) {
  int32_t device = 0;
  if (!arguments.are_exactly(1) || !read_number(arguments.at(0), ValueName(0), device)) {
    return nullptr;
  }
  Structure structure{};
  const aclError status = kFunction(device, &structure);
  return tuple_of(status == ACL_SUCCESS ? to_python(structure) : PyDict_New(), status);
}

// The C function has the flags before the state, and takes no room for them.
PyObject* get_primary_ctx_state(const Arguments& arguments) {
  int32_t device = 0;
  if (!arguments.are_exactly(1) || !read_number(arguments.at(0), ValueName(0), device)) {
    return nullptr;
  }
  int32_t active = 0;
  const aclError status = aclrtGetPrimaryCtxState(device, nullptr, &active);
  return tuple_of(active, 0, status);
}

}  // namespace

PyMethodDef device_methods[] = {
    US_METHOD(rt, set_device, call<aclrtSetDevice>),
    US_METHOD(rt, reset_device, call_and_forget<aclrtResetDevice>),
    US_METHOD(rt, reset_device_force, call_and_forget<aclrtResetDeviceForce>),
    US_METHOD(rt, get_device, ask<aclrtGetDevice>),
    US_METHOD(rt, get_device_count, ask<aclrtGetDeviceCount>),
    US_METHOD(rt, get_run_mode, ask<aclrtGetRunMode>),
    US_METHOD(rt, synchronize_device, call<aclrtSynchronizeDevice>),
    US_METHOD(rt, synchronize_device_with_timeout, call<aclrtSynchronizeDeviceWithTimeout>),
    US_METHOD(rt, device_get_bare_tgid, ask<aclrtDeviceGetBareTgid>),
    US_METHOD(rt, device_enable_peer_access, call<aclrtDeviceEnablePeerAccess>),
    US_METHOD(rt, device_disable_peer_access, call<aclrtDeviceDisablePeerAccess>),
    US_METHOD(rt, device_can_access_peer, ask<aclrtDeviceCanAccessPeer>),
    US_METHOD(rt, device_peer_access_status, ask<aclrtDevicePeerAccessStatus>),
    US_METHOD(rt, get_device_utilization_rate,
              (by_hand<describe_device<aclrtUtilizationInfo, aclrtGetDeviceUtilizationRate>>)),
    US_METHOD(rt, query_device_status, ask<aclrtQueryDeviceStatus>),
    US_METHOD(rt, get_device_info, ask<aclrtGetDeviceInfo>),
    US_METHOD(rt, get_device_capability, ask<aclrtGetDeviceCapability>),
    US_METHOD(rt, device_get_stream_priority_range, ask<aclrtDeviceGetStreamPriorityRange>),
    US_METHOD(rt, get_devices_topo, ask<aclrtGetDevicesTopo>),
    US_METHOD(rt, get_user_dev_id_by_logic_dev_id, ask<aclrtGetUserDevIdByLogicDevId>),
    US_METHOD(rt, get_logic_dev_id_by_user_dev_id, ask<aclrtGetLogicDevIdByUserDevId>),
    US_METHOD(rt, device_get_uuid, (by_hand<describe_device<aclrtUuid, aclrtDeviceGetUuid>>)),
    US_METHOD(rt, set_device_sat_mode, ask<aclrtSetDeviceSatMode>),
    US_METHOD(rt, get_device_sat_mode, ask<aclrtGetDeviceSatMode>),
    US_METHOD(rt, get_device_res_limit, ask<aclrtGetDeviceResLimit>),
    US_METHOD(rt, set_device_res_limit, ask<aclrtSetDeviceResLimit>),
    US_METHOD(rt, reset_device_res_limit, ask<aclrtResetDeviceResLimit>),
    US_METHOD(rt, device_set_limit, ask<aclrtDeviceSetLimit>),
    US_METHOD(rt, device_get_limit, ask<aclrtDeviceGetLimit>),
    US_METHOD(rt, set_ts_device, ask<aclrtSetTsDevice>),
    US_METHOD(rt, get_overflow_status, call<aclrtGetOverflowStatus>),
    US_METHOD(rt, reset_overflow_status, call<aclrtResetOverflowStatus>),
    US_METHOD(rt, set_sys_param_opt, ask<aclrtSetSysParamOpt>),
    US_METHOD(rt, get_sys_param_opt, ask<aclrtGetSysParamOpt>),
    US_END_OF_METHODS,
};

PyMethodDef context_methods[] = {
    US_METHOD(rt, create_context, call<aclrtCreateContext>),
    US_METHOD(rt, destroy_context, call_and_forget<aclrtDestroyContext>),
    US_METHOD(rt, set_context, ask<aclrtSetCurrentContext>),
    US_METHOD(rt, get_context, ask<aclrtGetCurrentContext>),
    US_METHOD(rt, ctx_get_current_default_stream, ask<aclrtCtxGetCurrentDefaultStream>),
    US_METHOD(rt, get_primary_ctx_state, by_hand<get_primary_ctx_state>),
    US_METHOD(rt, ctx_set_sys_param_opt, ask<aclrtCtxSetSysParamOpt>),
    US_METHOD(rt, ctx_get_sys_param_opt, ask<aclrtCtxGetSysParamOpt>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
