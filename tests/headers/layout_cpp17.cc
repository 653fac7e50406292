/* SPDX-License-Identifier: Apache-2.0 */
/* The public headers as C++17, the oldest that clients use. To compile is to pass. */

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "acl/acl_rt_allocator.h"
#include "acl/error_codes/rt_error_codes.h"

#define TYPE(type, ...) static_assert(std::is_same_v<type, __VA_ARGS__>);
#define VALUE(name, value) static_assert((name) == (value));
#define MACRO(name, value) \
  VALUE(name, value)       \
  static_assert(std::is_same_v<decltype(name), decltype(value)>);
#define LAYOUT(type, size, alignment)    \
  static_assert(sizeof(type) == (size)); \
  static_assert(alignof(type) == (alignment));
#define TAG(tag) LAYOUT(enum tag, 4, 4)
#define FIELD(type, offset, field_type, field)      \
  static_assert(offsetof(type, field) == (offset)); \
  static_assert(std::is_same_v<decltype(type::field), field_type>);

#include "assertions.inc"
