// SPDX-License-Identifier: Apache-2.0
#include "device/pci_bus_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "device/settings.h"

namespace understudy {
namespace {

TEST(PciBusId, EveryDeviceHasATextThatLeadsBack) {
  std::set<std::string> texts;
  for (int32_t device = 0; device < static_cast<int32_t>(kMaxDevices); ++device) {
    const PciBusId id = PciBusId::of_device(device);
    const std::string text = id.text().data();
    EXPECT_EQ(text.size() + 1, PciBusId::kTextSize);
    EXPECT_EQ(PciBusId::parse(text), id);
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), kMaxDevices);
}

TEST(PciBusId, NumbersAreHexadecimalInEitherCase) {
  const PciBusId expected{0x12AB, 0x3D, 0x1F, 0x7};
  EXPECT_EQ(PciBusId::parse("12ab:3d:1f.7"), expected);
  EXPECT_EQ(PciBusId::parse("12AB:3D:1F.7"), expected);
  EXPECT_STREQ(expected.text().data(), "12ab:3d:1f.7");
}

TEST(PciBusId, TextsOfOtherFormsAreNone) {
  for (const char* const text :
       {"", "12ab:3d:1f7", "12ab:3d:1f.77", "12ab.3d:1f.7", "12ab:3d:1f:7", "12ab:3x:1f.7"}) {
    EXPECT_EQ(PciBusId::parse(text), std::nullopt) << text;
  }
  EXPECT_EQ(PciBusId::parse(std::string_view("12ab:3d:1f.\0", 12)), std::nullopt);
}

}  // namespace
}  // namespace understudy
