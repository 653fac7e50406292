// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_limits.h"

#include <gtest/gtest.h>

#include "unit/expect_result.h"

namespace understudy {
namespace {

Settings settings_of(std::string_view product) {
  Settings settings;
  settings.product = *find_product(product);
  settings.visible_devices = {0, 1};
  return settings;
}

TEST(KernelLimits, RequestsAreGrantedTogetherOrNotAtAll) {
  const Settings settings = settings_of("950");
  KernelLimits limits(settings);
  KernelLimitRequests requests{{0, 0, 65536, {}, {}}};
  EXPECT_TRUE(fails_with(limits.check(requests), ErrorCode::kInvalidParam)) << "both stacks are 0";
  EXPECT_TRUE(fails_with(limits.set(requests), ErrorCode::kInvalidParam));
  EXPECT_EQ(value_of(limits.get(KernelLimit::kThreadStack)), 36864u);
  EXPECT_EQ(value_of(limits.get(KernelLimit::kCoreStack)), 32768u);
  requests[1] = 1;
  EXPECT_TRUE(is_ok(limits.check(requests)));
  EXPECT_EQ(value_of(limits.get(KernelLimit::kCoreStack)), 32768u) << "to check changes nothing";
  ASSERT_TRUE(is_ok(limits.set(requests)));
  EXPECT_EQ(value_of(limits.get(KernelLimit::kThreadStack)), 0u);
  EXPECT_EQ(value_of(limits.get(KernelLimit::kDivergenceStack)), 128u);
  EXPECT_EQ(value_of(limits.get(KernelLimit::kCoreStack)), 65536u);
}

TEST(KernelLimits, ZeroForOneStackMayMoveToTheOtherInOneStep) {
  const Settings settings = settings_of("950");
  KernelLimits limits(settings);
  ASSERT_TRUE(is_ok(limits.set(KernelLimit::kThreadStack, 0)));
  EXPECT_TRUE(is_ok(limits.set(KernelLimitRequests{{128, 0, {}, {}, {}}})));
}

TEST(KernelLimits, NothingIsAskedForByNoRequests) {
  Settings settings = settings_of("inf");
  settings.visible_devices = {1};
  KernelLimits limits(settings);
  EXPECT_TRUE(is_ok(limits.set(KernelLimitRequests())));
  EXPECT_TRUE(fails_with(limits.set(KernelLimit::kCoreStack, 1), ErrorCode::kInvalidDevice));
  settings.visible_devices = {0};
  EXPECT_TRUE(fails_with(limits.set(KernelLimit::kCoreStack, 1), ErrorCode::kNotInProduct));
  EXPECT_TRUE(fails_with(limits.get(KernelLimit::kCoreStack), ErrorCode::kNotInProduct));
}

}  // namespace
}  // namespace understudy
