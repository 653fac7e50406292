// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: address reservations, physical memory and mappings, and sharing them with other
// processes.
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "binding.h"
#include "dictionaries.h"
#include "tables.h"

namespace understudy::python {
namespace {

PyObject* malloc_physical(const Arguments& arguments) {
  size_t size = 0;
  aclrtPhysicalMemProp property{};
  uint64_t flags = 0;
  if (!arguments.are_exactly(3) || !read_number(arguments.at(0), ValueName(0), size) ||
      !read_property(arguments.at(1), ValueName(1), property) ||
      !read_number(arguments.at(2), ValueName(2), flags)) {
    return nullptr;
  }
  aclrtDrvMemHandle handle = nullptr;
  const aclError status =
      without_gil([&] { return aclrtMallocPhysical(&handle, size, &property, flags); });
  return tuple_of(handle, status);
}

PyObject* mem_get_allocation_granularity(const Arguments& arguments) {
  aclrtPhysicalMemProp property{};
  aclrtMemGranularityOptions option{};
  if (!arguments.are_exactly(2) || !read_property(arguments.at(0), ValueName(0), property) ||
      !read_number(arguments.at(1), ValueName(1), option)) {
    return nullptr;
  }
  size_t granularity = 0;
  const aclError status = aclrtMemGetAllocationGranularity(&property, option, &granularity);
  return tuple_of(granularity, status);
}

PyObject* mem_set_pid_to_shareable_handle(const Arguments& arguments) {
  uint64_t shareable = 0;
  std::vector<int32_t> ids;
  if (!arguments.are_exactly(2) || !read_number(arguments.at(0), ValueName(0), shareable) ||
      !read_process_ids(arguments.at(1), ValueName(1), ids)) {
    return nullptr;
  }
  return to_python(without_gil(
      [&] { return aclrtMemSetPidToShareableHandle(shareable, ids.data(), ids.size()); }));
}

PyObject* ipc_mem_get_export_key(const Arguments& arguments) {
  void* address = nullptr;
  size_t size = 0;
  size_t length = 0;
  uint64_t flags = 0;
  if (!arguments.are_exactly(4) || !read_address(arguments.at(0), ValueName(0), address) ||
      !read_number(arguments.at(1), ValueName(1), size) ||
      !read_number(arguments.at(2), ValueName(2), length) ||
      !read_number(arguments.at(3), ValueName(3), flags)) {
    return nullptr;
  }
  // Longer than any key, so that a length nobody has memory for is no different from a long one.
  char key[256] = "";
  if (length > sizeof key) length = sizeof key;
  const aclError status =
      without_gil([&] { return aclrtIpcMemGetExportKey(address, size, key, length, flags); });
  return tuple_of(static_cast<const char*>(key), status);
}

bool read_key(const Arguments& arguments, std::string& key) {
  return read_text(arguments.at(0), ValueName(0), TextEncoding::kUtf8, key);
}

PyObject* ipc_mem_set_import_pid(const Arguments& arguments) {
  std::string key;
  std::vector<int32_t> ids;
  if (!arguments.are_exactly(2) || !read_key(arguments, key) ||
      !read_process_ids(arguments.at(1), ValueName(1), ids)) {
    return nullptr;
  }
  return to_python(
      without_gil([&] { return aclrtIpcMemSetImportPid(key.c_str(), ids.data(), ids.size()); }));
}

PyObject* ipc_mem_import_by_key(const Arguments& arguments) {
  std::string key;
  uint64_t flags = 0;
  if (!arguments.are_exactly(2) || !read_key(arguments, key) ||
      !read_number(arguments.at(1), ValueName(1), flags)) {
    return nullptr;
  }
  void* address = nullptr;
  const aclError status =
      without_gil([&] { return aclrtIpcMemImportByKey(&address, key.c_str(), flags); });
  return tuple_of(address, status);
}

PyObject* ipc_mem_close(const Arguments& arguments) {
  std::string key;
  if (!arguments.are_exactly(1) || !read_key(arguments, key)) return nullptr;
  return to_python(without_gil([&] { return aclrtIpcMemClose(key.c_str()); }));
}

}  // namespace

PyMethodDef virtual_memory_methods[] = {
    US_METHOD(rt, reserve_mem_address, call<aclrtReserveMemAddress>),
    US_METHOD(rt, release_mem_address, call<aclrtReleaseMemAddress>),
    US_METHOD(rt, malloc_physical, by_hand<malloc_physical>),
    US_METHOD(rt, free_physical, call<aclrtFreePhysical>),
    US_METHOD(rt, map_mem, call<aclrtMapMem>),
    US_METHOD(rt, unmap_mem, call<aclrtUnmapMem>),
    US_METHOD(rt, mem_get_allocation_granularity, by_hand<mem_get_allocation_granularity>),
    US_END_OF_METHODS,
};

PyMethodDef sharing_methods[] = {
    US_METHOD(rt, mem_export_to_shareable_handle, call<aclrtMemExportToShareableHandle>),
    US_METHOD(rt, mem_set_pid_to_shareable_handle, by_hand<mem_set_pid_to_shareable_handle>),
    US_METHOD(rt, mem_import_from_shareable_handle, call<aclrtMemImportFromShareableHandle>),
    US_METHOD(rt, ipc_mem_get_export_key, by_hand<ipc_mem_get_export_key>),
    US_METHOD(rt, ipc_mem_set_import_pid, by_hand<ipc_mem_set_import_pid>),
    US_METHOD(rt, ipc_mem_import_by_key, by_hand<ipc_mem_import_by_key>),
    US_METHOD(rt, ipc_mem_close, by_hand<ipc_mem_close>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
