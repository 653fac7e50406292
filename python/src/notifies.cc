// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: notifies, also between processes.
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "binding.h"
#include "tables.h"

namespace understudy::python {
namespace {

PyObject* notify_batch_reset(const Arguments& arguments) {
  std::vector<aclrtNotify> notifies;
  if (!arguments.are_exactly(1) || !read_handles(arguments.at(0), ValueName(0), notifies)) {
    return nullptr;
  }
  return to_python(
      without_gil([&] { return aclrtNotifyBatchReset(notifies.data(), notifies.size()); }));
}

PyObject* notify_get_export_key(const Arguments& arguments) {
  aclrtNotify notify = nullptr;
  size_t length = 0;
  uint64_t flags = 0;
  if (!arguments.are_exactly(3) || !read_address(arguments.at(0), ValueName(0), notify) ||
      !read_number(arguments.at(1), ValueName(1), length) ||
      !read_number(arguments.at(2), ValueName(2), flags)) {
    return nullptr;
  }
  KeyBuffer key(length);
  const aclError status =
      without_gil([&] { return aclrtNotifyGetExportKey(notify, key.data(), key.length(), flags); });
  return tuple_of(key.text(), status);
}

PyObject* notify_set_import_pid(const Arguments& arguments) {
  aclrtNotify notify = nullptr;
  std::vector<int32_t> ids;
  if (!arguments.are_exactly(2) || !read_address(arguments.at(0), ValueName(0), notify) ||
      !read_process_ids(arguments.at(1), ValueName(1), ids)) {
    return nullptr;
  }
  return to_python(
      without_gil([&] { return aclrtNotifySetImportPid(notify, ids.data(), ids.size()); }));
}

PyObject* notify_import_by_key(const Arguments& arguments) {
  std::string key;
  uint64_t flags = 0;
  if (!arguments.are_exactly(2) ||
      !read_text(arguments.at(0), ValueName(0), TextEncoding::kUtf8, key) ||
      !read_number(arguments.at(1), ValueName(1), flags)) {
    return nullptr;
  }
  aclrtNotify notify = nullptr;
  const aclError status =
      without_gil([&] { return aclrtNotifyImportByKey(&notify, key.c_str(), flags); });
  return tuple_of(notify, status);
}

}  // namespace

PyMethodDef notify_methods[] = {
    US_METHOD(rt, create_notify, call<aclrtCreateNotify>),
    US_METHOD(rt, destroy_notify, call<aclrtDestroyNotify>),
    US_METHOD(rt, record_notify, call<aclrtRecordNotify>),
    US_METHOD(rt, wait_and_reset_notify, call<aclrtWaitAndResetNotify>),
    US_METHOD(rt, get_notify_id, ask<aclrtGetNotifyId>),
    US_METHOD(rt, notify_batch_reset, by_hand<notify_batch_reset>),
    US_METHOD(rt, notify_get_export_key, by_hand<notify_get_export_key>),
    US_METHOD(rt, notify_set_import_pid, by_hand<notify_set_import_pid>),
    US_METHOD(rt, notify_import_by_key, by_hand<notify_import_by_key>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
