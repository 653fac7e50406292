// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: memory of devices and of the host, copies, pointers; acl.media: its memory.
#include "acl/acl_rt.h"
#include "acl/ops/acl_dvpp.h"
#include "binding.h"
#include "dictionaries.h"
#include "tables.h"

namespace understudy::python {
namespace {

template <aclError (*kFunction)(void**, size_t, aclrtMemMallocPolicy, aclrtMallocConfig*)>
PyObject* malloc_configured(const Arguments& arguments) {
  size_t size = 0;
  aclrtMemMallocPolicy policy{};
  MallocConfiguration configuration;
  if (!arguments.are_exactly(3) || !read_number(arguments.at(0), ValueName(0), size) ||
      !read_number(arguments.at(1), ValueName(1), policy) ||
      !configuration.read(arguments.at(2), ValueName(2))) {
    return nullptr;
  }
  void* address = nullptr;
  const aclError status =
      without_gil([&] { return kFunction(&address, size, policy, configuration.get()); });
  return tuple_of(address, status);
}

PyObject* malloc_host_with_cfg(const Arguments& arguments) {
  uint64_t size = 0;
  MallocConfiguration configuration;
  if (!arguments.are_exactly(2) || !read_number(arguments.at(0), ValueName(0), size) ||
      !configuration.read(arguments.at(1), ValueName(1))) {
    return nullptr;
  }
  void* address = nullptr;
  const aclError status =
      without_gil([&] { return aclrtMallocHostWithCfg(&address, size, configuration.get()); });
  return tuple_of(address, status);
}

PyObject* pointer_get_attributes(const Arguments& arguments) {
  void* address = nullptr;
  if (!arguments.are_exactly(1) || !read_address(arguments.at(0), ValueName(0), address)) {
    return nullptr;
  }
  aclrtPtrAttributes attributes{};
  const aclError status = aclrtPointerGetAttributes(address, &attributes);
  return tuple_of(status == ACL_SUCCESS ? to_python(attributes) : PyDict_New(), status);
}

// Gives the description back as well.
PyObject* set_memcpy_desc(const Arguments& arguments) {
  void* description = nullptr;
  aclrtMemcpyKind kind{};
  void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  void* configuration = nullptr;
  if (!arguments.are_exactly(6) || !read_address(arguments.at(0), ValueName(0), description) ||
      !read_number(arguments.at(1), ValueName(1), kind) ||
      !read_address(arguments.at(2), ValueName(2), from) ||
      !read_address(arguments.at(3), ValueName(3), to) ||
      !read_number(arguments.at(4), ValueName(4), count) ||
      !read_address(arguments.at(5), ValueName(5), configuration)) {
    return nullptr;
  }
  const aclError status = without_gil(
      [&] { return aclrtSetMemcpyDesc(description, kind, from, to, count, configuration); });
  return tuple_of(description, status);
}

}  // namespace

PyMethodDef memory_methods[] = {
    US_METHOD(rt, malloc, call<aclrtMalloc>),
    US_METHOD(rt, malloc_align32, call<aclrtMallocAlign32>),
    US_METHOD(rt, malloc_cached, call<aclrtMallocCached>),
    US_METHOD(rt, malloc_with_cfg, by_hand<malloc_configured<aclrtMallocWithCfg>>),
    US_METHOD(rt, malloc_for_task_scheduler,
              by_hand<malloc_configured<aclrtMallocForTaskScheduler>>),
    US_METHOD(rt, free, call<aclrtFree>),
    US_METHOD(rt, mem_flush, call<aclrtMemFlush>),
    US_METHOD(rt, mem_invalidate, call<aclrtMemInvalidate>),
    US_METHOD(rt, get_mem_info, call<aclrtGetMemInfo>),
    US_METHOD(rt, malloc_host, call<aclrtMallocHost>),
    US_METHOD(rt, malloc_host_with_cfg, by_hand<malloc_host_with_cfg>),
    US_METHOD(rt, free_host, call<aclrtFreeHost>),
    US_METHOD(rt, host_register, call<aclrtHostRegister>),
    US_METHOD(rt, host_register_v2, call<aclrtHostRegisterV2>),
    US_METHOD(rt, host_get_device_pointer, ask<aclrtHostGetDevicePointer>),
    US_METHOD(rt, host_unregister, call<aclrtHostUnregister>),
    US_METHOD(rt, memcpy, call<aclrtMemcpy>),
    US_METHOD(rt, memcpy_async, call<aclrtMemcpyAsync>),
    US_METHOD(rt, memcpy_async_with_condition, call<aclrtMemcpyAsyncWithCondition>),
    US_METHOD(rt, memcpy2d, call<aclrtMemcpy2d>),
    US_METHOD(rt, memcpy2d_async, call<aclrtMemcpy2dAsync>),
    US_METHOD(rt, memset, call<aclrtMemset>),
    US_METHOD(rt, memset_async, call<aclrtMemsetAsync>),
    US_METHOD(rt, reduce_async, call<aclrtReduceAsync>),
    US_METHOD(rt, get_memcpy_desc_size, ask<aclrtGetMemcpyDescSize>),
    US_METHOD(rt, set_memcpy_desc, by_hand<set_memcpy_desc>),
    US_METHOD(rt, memcpy_async_with_desc, call<aclrtMemcpyAsyncWithDesc>),
    US_METHOD(rt, cmo_async, call<aclrtCmoAsync>),
    US_METHOD(rt, pointer_get_attributes, by_hand<pointer_get_attributes>),
    US_METHOD(rt, value_write, call<aclrtValueWrite>),
    US_METHOD(rt, value_wait, call<aclrtValueWait>),
    US_END_OF_METHODS,
};

PyMethodDef media_methods[] = {
    US_METHOD(media, dvpp_malloc, call<acldvppMalloc>),
    US_METHOD(media, dvpp_free, call<acldvppFree>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
