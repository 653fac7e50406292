// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: address reservations, physical memory and mappings, and sharing them with other
// processes.
#include <cstring>
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

PyObject* mem_set_access(const Arguments& arguments) {
  void* address = nullptr;
  size_t size = 0;
  std::vector<aclrtMemAccessDesc> grants;
  if (!arguments.are_exactly(3) || !read_address(arguments.at(0), ValueName(0), address) ||
      !read_number(arguments.at(1), ValueName(1), size) ||
      !read_grants(arguments.at(2), ValueName(2), grants)) {
    return nullptr;
  }
  return to_python(
      without_gil([&] { return aclrtMemSetAccess(address, size, grants.data(), grants.size()); }));
}

PyObject* mem_get_access(const Arguments& arguments) {
  void* address = nullptr;
  aclrtMemLocation location{};
  if (!arguments.are_exactly(2) || !read_address(arguments.at(0), ValueName(0), address) ||
      !read_location(arguments.at(1), ValueName(1), location)) {
    return nullptr;
  }
  uint64_t flag = 0;
  const aclError status = aclrtMemGetAccess(address, &location, &flag);
  return tuple_of(flag, status);
}

PyObject* mem_get_allocation_properties_from_handle(const Arguments& arguments) {
  void* handle = nullptr;
  if (!arguments.are_exactly(1) || !read_address(arguments.at(0), ValueName(0), handle)) {
    return nullptr;
  }
  aclrtPhysicalMemProp property{};
  const aclError status = aclrtMemGetAllocationPropertiesFromHandle(handle, &property);
  return tuple_of(status == ACL_SUCCESS ? to_python(property) : PyDict_New(), status);
}

// A shareable handle of either kind: a number, or the bytes of one for other servers.
class ShareableHandle {
 public:
  bool read(PyObject* value, const ValueName& name) {
    if (!PyBytes_Check(value)) {
      uint64_t number = 0;
      if (!read_number(value, name, number)) return false;
      memcpy(&bytes_, &number, sizeof number);
      return true;
    }
    const auto size = static_cast<size_t>(PyBytes_Size(value));
    if (size > sizeof bytes_) {
      PyErr_Format(PyExc_ValueError, "%s has %zu bytes, and a shareable handle at most %zu",
                   name.text().c_str(), size, sizeof bytes_);
      return false;
    }
    memcpy(&bytes_, PyBytes_AsString(value), size);
    return true;
  }
  void* get() { return &bytes_; }
  // New reference.
  PyObject* value(aclrtMemSharedHandleType type) const {
    if (type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
      return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&bytes_), sizeof bytes_);
    }
    uint64_t number = 0;
    memcpy(&number, &bytes_, sizeof number);
    return to_python(number);
  }

 private:
  aclrtMemFabricHandle bytes_{};
};

PyObject* mem_export_to_shareable_handle_v2(const Arguments& arguments) {
  void* handle = nullptr;
  uint64_t flags = 0;
  aclrtMemSharedHandleType type{};
  if (!arguments.are_exactly(3) || !read_address(arguments.at(0), ValueName(0), handle) ||
      !read_number(arguments.at(1), ValueName(1), flags) ||
      !read_number(arguments.at(2), ValueName(2), type)) {
    return nullptr;
  }
  ShareableHandle shareable;
  const aclError status = without_gil(
      [&] { return aclrtMemExportToShareableHandleV2(handle, flags, type, shareable.get()); });
  return tuple_of(status == ACL_SUCCESS ? shareable.value(type) : to_python(0), status);
}

PyObject* mem_set_pid_to_shareable_handle_v2(const Arguments& arguments) {
  ShareableHandle shareable;
  aclrtMemSharedHandleType type{};
  std::vector<int32_t> ids;
  if (!arguments.are_exactly(3) || !shareable.read(arguments.at(0), ValueName(0)) ||
      !read_number(arguments.at(1), ValueName(1), type) ||
      !read_process_ids(arguments.at(2), ValueName(2), ids)) {
    return nullptr;
  }
  return to_python(without_gil([&] {
    return aclrtMemSetPidToShareableHandleV2(shareable.get(), type, ids.data(), ids.size());
  }));
}

PyObject* mem_import_from_shareable_handle_v2(const Arguments& arguments) {
  ShareableHandle shareable;
  aclrtMemSharedHandleType type{};
  uint64_t flags = 0;
  if (!arguments.are_exactly(3) || !shareable.read(arguments.at(0), ValueName(0)) ||
      !read_number(arguments.at(1), ValueName(1), type) ||
      !read_number(arguments.at(2), ValueName(2), flags)) {
    return nullptr;
  }
  aclrtDrvMemHandle handle = nullptr;
  const aclError status = without_gil(
      [&] { return aclrtMemImportFromShareableHandleV2(shareable.get(), type, flags, &handle); });
  return tuple_of(handle, status);
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
  KeyBuffer key(length);
  const aclError status = without_gil(
      [&] { return aclrtIpcMemGetExportKey(address, size, key.data(), key.length(), flags); });
  return tuple_of(key.text(), status);
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
    US_METHOD(rt, reserve_mem_address_no_uc_memory, call<aclrtReserveMemAddressNoUCMemory>),
    US_METHOD(rt, mem_map_no_access, call<aclrtMemMapNoAccess>),
    US_METHOD(rt, mem_set_access, by_hand<mem_set_access>),
    US_METHOD(rt, mem_get_access, by_hand<mem_get_access>),
    US_METHOD(rt, mem_retain_allocation_handle, ask<aclrtMemRetainAllocationHandle>),
    US_METHOD(rt, mem_get_allocation_properties_from_handle,
              by_hand<mem_get_allocation_properties_from_handle>),
    US_METHOD(rt, mem_get_address_range, ask<aclrtMemGetAddressRange>),
    US_END_OF_METHODS,
};

PyMethodDef sharing_methods[] = {
    US_METHOD(rt, mem_export_to_shareable_handle, call<aclrtMemExportToShareableHandle>),
    US_METHOD(rt, mem_set_pid_to_shareable_handle, by_hand<mem_set_pid_to_shareable_handle>),
    US_METHOD(rt, mem_import_from_shareable_handle, call<aclrtMemImportFromShareableHandle>),
    US_METHOD(rt, mem_export_to_shareable_handle_v2, by_hand<mem_export_to_shareable_handle_v2>),
    US_METHOD(rt, mem_set_pid_to_shareable_handle_v2, by_hand<mem_set_pid_to_shareable_handle_v2>),
    US_METHOD(rt, mem_import_from_shareable_handle_v2,
              by_hand<mem_import_from_shareable_handle_v2>),
    US_METHOD(rt, ipc_mem_get_export_key, by_hand<ipc_mem_get_export_key>),
    US_METHOD(rt, ipc_mem_set_import_pid, by_hand<ipc_mem_set_import_pid>),
    US_METHOD(rt, ipc_mem_import_by_key, by_hand<ipc_mem_import_by_key>),
    US_METHOD(rt, ipc_mem_close, by_hand<ipc_mem_close>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
