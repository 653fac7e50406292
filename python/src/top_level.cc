// SPDX-License-Identifier: Apache-2.0
//
// acl: start and end, error texts, log lines, versions, data buffers.
#include <string>

#include "acl/acl.h"
#include "binding.h"
#include "callbacks.h"
#include "tables.h"

namespace understudy::python {
namespace {

PyObject* init(const Arguments& arguments) {
  if (!arguments.are_at_most(1)) return nullptr;
  std::string path;
  if (arguments.count() == 1 &&
      !read_text(arguments.at(0), ValueName(0), TextEncoding::kFileName, path)) {
    return nullptr;
  }
  return to_python(without_gil([&] { return aclInit(path.c_str()); }));
}

PyObject* get_version_str(const Arguments& arguments) {
  std::string package;
  if (!arguments.are_exactly(1) ||
      !read_text(arguments.at(0), ValueName(0), TextEncoding::kUtf8, package)) {
    return nullptr;
  }
  char version[ACL_PKG_VERSION_MAX_SIZE] = "";
  const aclError status = aclsysGetVersionStr(package.data(), version);
  return tuple_of(static_cast<const char*>(version), status);
}

// Where the running Python code is.
struct CallPlace {
  std::string function = "?";
  std::string file = "?";
  uint32_t line = 0;
};

std::string text_attribute(PyObject* object, const char* name) {
  const Reference value(PyObject_GetAttrString(object, name));
  std::string text;
  if (!value || !read_text(value.get(), ValueName(name), TextEncoding::kFileName, text)) {
    PyErr_Clear();
    return "?";
  }
  return text;
}

CallPlace current_place() {
  CallPlace place;
  PyObject* const frame_of = PySys_GetObject("_getframe");  // borrowed; not every Python has it
  if (frame_of == nullptr) return place;
  const Reference frame(PyObject_CallObject(frame_of, nullptr));
  const Reference code(frame ? PyObject_GetAttrString(frame.get(), "f_code") : nullptr);
  const Reference line(code ? PyObject_GetAttrString(frame.get(), "f_lineno") : nullptr);
  if (!line || !read_number(line.get(), ValueName("f_lineno"), place.line)) {
    PyErr_Clear();
    return place;
  }
  place.function = text_attribute(code.get(), "co_name");
  place.file = text_attribute(code.get(), "co_filename");
  return place;
}

PyObject* app_log(const Arguments& arguments) {
  aclLogLevel level{};
  std::string message;
  if (!arguments.are_exactly(2) || !read_number(arguments.at(0), ValueName(0), level) ||
      !read_text(arguments.at(1), ValueName(1), TextEncoding::kUtf8, message)) {
    return nullptr;
  }
  const CallPlace place = current_place();
  // Whoever reads what is written may need the GIL.
  without_gil([&] {
    aclAppLog(level, place.function.c_str(), place.file.c_str(), place.line, "%s", message.c_str());
    return 0;
  });
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef top_level_methods[] = {
    US_METHOD(acl, init, by_hand<init>),
    US_METHOD(acl, finalize, call_and_forget<aclFinalize>),
    US_METHOD(acl, finalize_reference, call_and_forget<aclFinalizeReference>),
    US_METHOD(acl, get_soc_name, ask<aclrtGetSocName>),
    US_METHOD(acl, get_recent_err_msg, ask<aclGetRecentErrMsg>),
    US_METHOD(acl, app_log, by_hand<app_log>),
    US_METHOD(acl, get_version, ask<aclrtGetVersion>),
    US_METHOD(acl, get_version_str, by_hand<get_version_str>),
    US_METHOD(acl, data_type_size, ask<aclDataTypeSize>),
    US_METHOD(acl, create_data_buffer, ask<aclCreateDataBuffer>),
    US_METHOD(acl, destroy_data_buffer, ask<aclDestroyDataBuffer>),
    US_METHOD(acl, get_data_buffer_addr, ask<aclGetDataBufferAddr>),
    US_METHOD(acl, get_data_buffer_size, ask<aclGetDataBufferSize>),
    US_METHOD(acl, get_data_buffer_size_v2, ask<aclGetDataBufferSizeV2>),
    US_METHOD(acl, update_data_buffer, ask<aclUpdateDataBuffer>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
