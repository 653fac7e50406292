// SPDX-License-Identifier: Apache-2.0
//
// Tests that run once on each product.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include "rules/allocation_objects.h"

namespace understudy_test {

// The parameter is the product. A fixture's tests begin with US_ON_PRODUCT.
class ProductTest : public testing::TestWithParam<std::string> {
 protected:
  static bool is_one_of(std::initializer_list<const char*> products) {
    return std::find(products.begin(), products.end(), GetParam()) != products.end();
  }
  static bool is_modern() { return is_one_of({"a2", "a3", "950"}); }
  // INF, TRN and 200I in both forms.
  static bool is_older() { return is_one_of({"inf", "trn", "200i", "200i-rc"}); }
};

inline auto every_product() {
  return testing::Values("a2", "a3", "950", "inf", "trn", "200i", "200i-rc", "ipv350");
}
inline std::string product_name(const testing::TestParamInfo<std::string>& info) {
  return test_name_of_product(info.param);
}

}  // namespace understudy_test

#define US_ON_PRODUCT() US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()})
// The call succeeds where `has` is true, and is refused as a missing function elsewhere.
#define EXPECT_SUPPORTED(has, call)                         \
  do {                                                      \
    if (has) {                                              \
      EXPECT_SUCCESS(call);                                 \
    } else {                                                \
      EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, call); \
    }                                                       \
  } while (false)
