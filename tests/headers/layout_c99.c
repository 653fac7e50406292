/* SPDX-License-Identifier: Apache-2.0 */
/* The public headers as strict C99. To compile is to pass. */

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "acl/acl_rt_allocator.h"
#include "acl/error_codes/rt_error_codes.h"

/* A condition that does not hold makes an array of negative size. */
#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1];

#define TYPE(type, ...) HOLDS(type_##type, sizeof(type) == sizeof(__VA_ARGS__))
#define VALUE(name, value) HOLDS(value_##name, (name) == (value))
#define MACRO(name, value)               \
  HOLDS(value_##name, (name) == (value)) \
  HOLDS(type_##name, sizeof(name) == sizeof(value))
#define LAYOUT(type, size, alignment)        \
  struct align_##type {                      \
    char first;                              \
    type second;                             \
  };                                         \
  HOLDS(size_##type, sizeof(type) == (size)) \
  HOLDS(alignment_##type, offsetof(struct align_##type, second) == (alignment))
#define TAG(tag)                  \
  typedef enum tag tag##_typedef; \
  LAYOUT(tag##_typedef, 4, 4)
#define FIELD(type, offset, field_type, field)                      \
  HOLDS(offset_##type##_##field, offsetof(type, field) == (offset)) \
  HOLDS(size_##type##_##field, sizeof(((type*)0)->field) == sizeof(field_type))

#include "assertions.inc"
