// SPDX-License-Identifier: Apache-2.0
#include "dictionaries.h"

#include <string>

namespace understudy::python {
namespace {

bool require_dictionary(PyObject* value, const ValueName& name) {
  return PyDict_Check(value) || refuse_type(name, "dict", value);
}

enum class Missing { kIsError, kIsZero };

// The value of a key. Nothing if it is missing; with an exception set, if that is an error.
Reference item_of(PyObject* dictionary, const char* key, Missing missing = Missing::kIsError) {
  const Reference name(PyUnicode_FromString(key));
  if (!name) return {};
  PyObject* const value = PyDict_GetItemWithError(dictionary, name.get());
  if (value == nullptr && missing == Missing::kIsError && PyErr_Occurred() == nullptr) {
    raise_exception(PyExc_KeyError, "a dict has no key '%s'", key);
  }
  return Reference::to(value);
}

template <typename T>
bool read_item(PyObject* dictionary, const char* key, T& number,
               Missing missing = Missing::kIsError) {
  const Reference value = item_of(dictionary, key, missing);
  if (!value) return PyErr_Occurred() == nullptr;
  return read_number(value.get(), ValueName(key), number);
}

bool read_location_of(PyObject* dictionary, aclrtMemLocation& location) {
  const Reference value = item_of(dictionary, "location");
  return value && read_location(value.get(), ValueName("location"), location);
}

// A number, or a dictionary with it under its name.
template <typename T>
bool read_member(PyObject* value, const char* key, T& member, Missing missing = Missing::kIsError) {
  if (PyDict_Check(value)) return read_item(value, key, member, missing);
  return read_number(value, ValueName("value"), member);
}

bool read_attribute_value(PyObject* value, aclrtMallocAttrType attribute,
                          aclrtMallocAttrValue& member) {
  switch (attribute) {
    case ACL_RT_MEM_ATTR_MODULE_ID:
      return read_member(value, "moduleId", member.moduleId);
    case ACL_RT_MEM_ATTR_DEVICE_ID:
      return read_member(value, "deviceId", member.deviceId);
    case ACL_RT_MEM_ATTR_VA_FLAG:
      return read_member(value, "vaFlag", member.vaFlag);
    case ACL_RT_MEM_ATTR_RSV:
      break;
  }
  // Never read, here or in an unknown attribute.
  uint64_t reserved = 0;
  return read_member(value, "rsv", reserved, Missing::kIsZero);
}

bool read_attribute(PyObject* value, aclrtMallocAttribute& attribute) {
  if (!require_dictionary(value, ValueName("attrs"))) return false;
  if (!read_item(value, "attr", attribute.attr)) return false;
  const Reference member = item_of(value, "value");
  return member && read_attribute_value(member.get(), attribute.attr, attribute.value);
}

}  // namespace

bool read_property(PyObject* value, const ValueName& name, aclrtPhysicalMemProp& property) {
  return require_dictionary(value, name) && read_item(value, "handleType", property.handleType) &&
         read_item(value, "allocationType", property.allocationType) &&
         read_item(value, "memAttr", property.memAttr) &&
         read_location_of(value, property.location) &&
         read_item(value, "reserve", property.reserve, Missing::kIsZero);
}

bool read_location(PyObject* value, const ValueName& name, aclrtMemLocation& location) {
  return require_dictionary(value, name) && read_item(value, "id", location.id) &&
         read_item(value, "type", location.type);
}

bool read_grants(PyObject* value, const ValueName& name, std::vector<aclrtMemAccessDesc>& grants) {
  if (!require_list(value, name)) return false;
  // One more, because an empty list is no null pointer.
  grants.reserve(static_cast<size_t>(PyList_Size(value)) + 1);
  // The size again each time: reading an item may run code of the program's.
  for (Py_ssize_t index = 0; index < PyList_Size(value); ++index) {
    const Reference item = Reference::to(PyList_GetItem(value, index));
    aclrtMemAccessDesc grant{};
    if (!require_dictionary(item.get(), ValueName("desc")) ||
        !read_item(item.get(), "flags", grant.flags) ||
        !read_location_of(item.get(), grant.location)) {
      return false;
    }
    grants.push_back(grant);
  }
  return true;
}

bool read_pool_properties(PyObject* value, const ValueName& name, aclrtMemPoolProps& properties) {
  return require_dictionary(value, name) && read_item(value, "allocType", properties.allocType) &&
         read_item(value, "handleType", properties.handleType) &&
         read_location_of(value, properties.location) &&
         read_item(value, "maxSize", properties.maxSize, Missing::kIsZero);
}

bool read_managed_location(PyObject* value, const ValueName& name,
                           aclrtMemManagedLocation& location) {
  return require_dictionary(value, name) && read_item(value, "type", location.type) &&
         read_item(value, "id", location.id);
}

bool MallocConfiguration::read(PyObject* value, const ValueName& name) {
  if (!require_dictionary(value, name)) return false;
  is_given_ = PyDict_Size(value) > 0;
  if (!is_given_) return true;
  const Reference list = item_of(value, "attrs");
  size_t count = 0;
  if (!list || !require_list(list.get(), ValueName("attrs")) ||
      !read_item(value, "numAttrs", count)) {
    return false;
  }
  // The size again each time: reading an item may run code of the program's.
  for (Py_ssize_t index = 0; index < PyList_Size(list.get()) && attributes_.size() < count;
       ++index) {
    const Reference item = Reference::to(PyList_GetItem(list.get(), index));
    aclrtMallocAttribute attribute{};
    if (!read_attribute(item.get(), attribute)) return false;
    attributes_.push_back(attribute);
  }
  if (attributes_.size() < count) {
    return raise_exception(PyExc_ValueError, "numAttrs is %zu, but attrs has %zu entries", count,
                           attributes_.size());
  }
  configuration_ = {attributes_.data(), count};
  return true;
}

bool read_stream_attribute(PyObject* value, const ValueName& name, aclrtStreamAttr attribute,
                           aclrtStreamAttrValue& member) {
  if (!require_dictionary(value, name)) return false;
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return read_item(value, "failureMode", member.failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return read_item(value, "overflowSwitch", member.overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      return read_item(value, "userCustomTag", member.userCustomTag);
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      return read_item(value, "cacheOpInfoSwitch", member.cacheOpInfoSwitch);
    case ACL_STREAM_ATTR_PRIORITY:
      return read_item(value, "streamPriority", member.streamPriority);
  }
  return true;
}

PyObject* to_python(const aclrtPhysicalMemProp& property) {
  return Py_BuildValue("{sisisis{sIsi}sK}", "handleType", static_cast<int>(property.handleType),
                       "allocationType", static_cast<int>(property.allocationType), "memAttr",
                       static_cast<int>(property.memAttr), "location", "id", property.location.id,
                       "type", static_cast<int>(property.location.type), "reserve",
                       static_cast<unsigned long long>(property.reserve));
}

PyObject* to_python(const aclrtPtrAttributes& attributes) {
  return Py_BuildValue("{s{sIsi}sIs[IIII]}", "location", "id", attributes.location.id, "type",
                       static_cast<int>(attributes.location.type), "pageSize", attributes.pageSize,
                       "rsv", attributes.rsv[0], attributes.rsv[1], attributes.rsv[2],
                       attributes.rsv[3]);
}

PyObject* to_python(const aclrtUtilizationInfo& utilization) {
  return Py_BuildValue("{sisisisisK}", "cube_utilization", utilization.cubeUtilization,
                       "vector_utilization", utilization.vectorUtilization, "aicpu_utilization",
                       utilization.aicpuUtilization, "memory_utilization",
                       utilization.memoryUtilization, "utilization_extend",
                       reinterpret_cast<unsigned long long>(utilization.utilizationExtend));
}

PyObject* to_python(const aclrtUuid& uuid) {
  return Py_BuildValue("{sN}", "bytes",
                       PyUnicode_DecodeLatin1(uuid.bytes, sizeof uuid.bytes, nullptr));
}

PyObject* to_python(const aclCANNPackageVersion& version) {
  return Py_BuildValue("{ssssssssssss}", "version", version.version, "majorVersion",
                       version.majorVersion, "minorVersion", version.minorVersion, "releaseVersion",
                       version.releaseVersion, "patchVersion", version.patchVersion, "reserved",
                       version.reserved);
}

PyObject* stream_attribute_to_python(aclrtStreamAttr attribute,
                                     const aclrtStreamAttrValue& member) {
  switch (attribute) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return Py_BuildValue("{sK}", "failureMode",
                           static_cast<unsigned long long>(member.failureMode));
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return Py_BuildValue("{sI}", "overflowSwitch", member.overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      return Py_BuildValue("{sI}", "userCustomTag", member.userCustomTag);
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      return Py_BuildValue("{sI}", "cacheOpInfoSwitch", member.cacheOpInfoSwitch);
    case ACL_STREAM_ATTR_PRIORITY:
      return Py_BuildValue("{sI}", "streamPriority", member.streamPriority);
  }
  return PyDict_New();
}

}  // namespace understudy::python
