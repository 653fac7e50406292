// SPDX-License-Identifier: Apache-2.0
//
// acl: start and end, error texts, log lines, versions, capabilities, data buffers.
#include <string>

#include "acl/acl.h"
#include "binding.h"
#include "callbacks.h"
#include "dictionaries.h"
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

PyObject* get_cann_version(const Arguments& arguments) {
  aclCANNPackageName package{};
  if (!arguments.are_exactly(1) || !read_number(arguments.at(0), ValueName(0), package)) {
    return nullptr;
  }
  aclCANNPackageVersion version{};
  const aclError status = aclsysGetCANNVersion(package, &version);
  return tuple_of(status == ACL_SUCCESS ? to_python(version) : PyDict_New(), status);
}

PyObject* get_cann_attribute_list(const Arguments& arguments) {
  if (!arguments.are_exactly(0)) return nullptr;
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  const aclError status = aclGetCannAttributeList(&attributes, &count);
  Reference list(PyList_New(0));
  for (size_t i = 0; list && i < count; ++i) {
    const Reference item(to_python(attributes[i]));
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return tuple_of(list.release(), count, status);
}

PyObject* float_to_float16(const Arguments& arguments) {
  if (!arguments.are_exactly(1)) return nullptr;
  const double value = PyFloat_AsDouble(arguments.at(0));
  if (PyErr_Occurred() != nullptr) return nullptr;
  return to_python(aclFloatToFloat16(static_cast<float>(value)));
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
  // A reader of the log may need the GIL.
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
    US_METHOD(acl, get_cann_version, by_hand<get_cann_version>),
    US_METHOD(acl, get_cann_attribute, ask<aclGetCannAttribute>),
    US_METHOD(acl, get_cann_attribute_list, by_hand<get_cann_attribute_list>),
    US_METHOD(acl, get_device_capability, ask<aclGetDeviceCapability>),
    US_METHOD(acl, data_type_size, ask<aclDataTypeSize>),
    US_METHOD(acl, float16_to_float, ask<aclFloat16ToFloat>),
    US_METHOD(acl, float_to_float16, by_hand<float_to_float16>),
    US_METHOD(acl, create_data_buffer, ask<aclCreateDataBuffer>),
    US_METHOD(acl, destroy_data_buffer, ask<aclDestroyDataBuffer>),
    US_METHOD(acl, get_data_buffer_addr, ask<aclGetDataBufferAddr>),
    US_METHOD(acl, get_data_buffer_size, ask<aclGetDataBufferSize>),
    US_METHOD(acl, get_data_buffer_size_v2, ask<aclGetDataBufferSizeV2>),
    US_METHOD(acl, update_data_buffer, ask<aclUpdateDataBuffer>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
