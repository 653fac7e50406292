// SPDX-License-Identifier: Apache-2.0
//
// acl.rt: stream-ordered pools and managed memory, which the published module lacks.
#include "acl/acl_rt.h"
#include "binding.h"
#include "dictionaries.h"
#include "tables.h"

namespace understudy::python {
namespace {

PyObject* mem_pool_create(const Arguments& arguments) {
  aclrtMemPoolProps properties{};
  if (!arguments.are_exactly(1) ||
      !read_pool_properties(arguments.at(0), ValueName(0), properties)) {
    return nullptr;
  }
  aclrtMemPool pool = nullptr;
  const aclError status = without_gil([&] { return aclrtMemPoolCreate(&pool, &properties); });
  return tuple_of(pool, status);
}

// Switches have 32 bits and figures 64; in a word of 64 both are the number itself.
PyObject* mem_pool_set_attr(const Arguments& arguments) {
  void* pool = nullptr;
  aclrtMemPoolAttr attribute{};
  uint64_t value = 0;
  if (!arguments.are_exactly(3) || !read_address(arguments.at(0), ValueName(0), pool) ||
      !read_number(arguments.at(1), ValueName(1), attribute) ||
      !read_number(arguments.at(2), ValueName(2), value)) {
    return nullptr;
  }
  return to_python(without_gil([&] { return aclrtMemPoolSetAttr(pool, attribute, &value); }));
}

PyObject* mem_pool_get_attr(const Arguments& arguments) {
  void* pool = nullptr;
  aclrtMemPoolAttr attribute{};
  if (!arguments.are_exactly(2) || !read_address(arguments.at(0), ValueName(0), pool) ||
      !read_number(arguments.at(1), ValueName(1), attribute)) {
    return nullptr;
  }
  uint64_t value = 0;
  const aclError status = aclrtMemPoolGetAttr(pool, attribute, &value);
  return tuple_of(value, status);
}

PyObject* mem_managed_advise(const Arguments& arguments) {
  void* address = nullptr;
  uint64_t size = 0;
  aclrtMemManagedAdviseType advice{};
  aclrtMemManagedLocation location{};
  if (!arguments.are_exactly(4) || !read_address(arguments.at(0), ValueName(0), address) ||
      !read_number(arguments.at(1), ValueName(1), size) ||
      !read_number(arguments.at(2), ValueName(2), advice) ||
      !read_managed_location(arguments.at(3), ValueName(3), location)) {
    return nullptr;
  }
  return to_python(aclrtMemManagedAdvise(address, size, advice, location));
}

PyObject* mem_managed_prefetch_async(const Arguments& arguments) {
  void* address = nullptr;
  size_t size = 0;
  aclrtMemManagedLocation location{};
  uint32_t flags = 0;
  void* stream = nullptr;
  if (!arguments.are_exactly(5) || !read_address(arguments.at(0), ValueName(0), address) ||
      !read_number(arguments.at(1), ValueName(1), size) ||
      !read_managed_location(arguments.at(2), ValueName(2), location) ||
      !read_number(arguments.at(3), ValueName(3), flags) ||
      !read_address(arguments.at(4), ValueName(4), stream)) {
    return nullptr;
  }
  return to_python(without_gil(
      [&] { return aclrtMemManagedPrefetchAsync(address, size, location, flags, stream); }));
}

// A number; for the devices that access the range, as many as there is room for in C.
PyObject* mem_managed_get_attr(const Arguments& arguments) {
  aclrtMemManagedRangeAttribute attribute{};
  void* address = nullptr;
  size_t size = 0;
  if (!arguments.are_exactly(3) || !read_number(arguments.at(0), ValueName(0), attribute) ||
      !read_address(arguments.at(1), ValueName(1), address) ||
      !read_number(arguments.at(2), ValueName(2), size)) {
    return nullptr;
  }
  int32_t value = 0;
  const aclError status = aclrtMemManagedGetAttr(attribute, address, size, &value, sizeof value);
  return tuple_of(value, status);
}

}  // namespace

PyMethodDef pool_methods[] = {
    US_METHOD(rt, mem_pool_create, by_hand<mem_pool_create>),
    US_METHOD(rt, mem_pool_destroy, call<aclrtMemPoolDestroy>),
    US_METHOD(rt, mem_pool_set_attr, by_hand<mem_pool_set_attr>),
    US_METHOD(rt, mem_pool_get_attr, by_hand<mem_pool_get_attr>),
    US_METHOD(rt, mem_pool_malloc_async, call<aclrtMemPoolMallocAsync>),
    US_METHOD(rt, mem_pool_free_async, call<aclrtMemPoolFreeAsync>),
    US_METHOD(rt, mem_pool_trim_to, call<aclrtMemPoolTrimTo>),
    US_METHOD(rt, mem_alloc_managed, call<aclrtMemAllocManaged>),
    US_METHOD(rt, mem_managed_advise, by_hand<mem_managed_advise>),
    US_METHOD(rt, mem_managed_get_attr, by_hand<mem_managed_get_attr>),
    US_METHOD(rt, mem_managed_prefetch_async, by_hand<mem_managed_prefetch_async>),
    US_END_OF_METHODS,
};

}  // namespace understudy::python
