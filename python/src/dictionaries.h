// SPDX-License-Identifier: Apache-2.0
//
// Structures of the C interface as dictionaries, whose keys are the names of the members. A missing
// key is a KeyError unless said otherwise; unknown keys are ignored.
#pragma once

#include <vector>

#include "acl/acl.h"
#include "arguments.h"
#include "python_api.h"

namespace understudy::python {

bool read_property(PyObject* value, const ValueName& name, aclrtPhysicalMemProp& property);

bool read_location(PyObject* value, const ValueName& name, aclrtMemLocation& location);
// A list of {"flags": f, "location": {...}}.
bool read_grants(PyObject* value, const ValueName& name, std::vector<aclrtMemAccessDesc>& grants);

// Keys allocType, handleType and location; maxSize may be left out.
bool read_pool_properties(PyObject* value, const ValueName& name, aclrtMemPoolProps& properties);
bool read_managed_location(PyObject* value, const ValueName& name,
                           aclrtMemManagedLocation& location);

// What configures an allocation; an empty dictionary is no configuration at all.
class MallocConfiguration {
 public:
  bool read(PyObject* value, const ValueName& name);
  // For the C function: null if there is none.
  aclrtMallocConfig* get() { return is_given_ ? &configuration_ : nullptr; }

 private:
  std::vector<aclrtMallocAttribute> attributes_;
  aclrtMallocConfig configuration_{};
  bool is_given_ = false;
};

// The member that belongs to the attribute; nothing is read for one that has no member.
bool read_stream_attribute(PyObject* value, const ValueName& name, aclrtStreamAttr attribute,
                           aclrtStreamAttrValue& member);

// New references.
PyObject* to_python(const aclrtPhysicalMemProp& property);
PyObject* to_python(const aclrtPtrAttributes& attributes);
PyObject* to_python(const aclrtUtilizationInfo& utilization);
PyObject* to_python(const aclrtUuid& uuid);
PyObject* to_python(const aclCANNPackageVersion& version);
// With the member that belongs to the attribute alone.
PyObject* stream_attribute_to_python(aclrtStreamAttr attribute, const aclrtStreamAttrValue& member);

}  // namespace understudy::python
