// SPDX-License-Identifier: Apache-2.0
//
// The published vNPU templates, written a second time by their names: the number behind "vir" is
// that of the AI cores, the one before "c" that of the AI CPUs, the one before "g" the gigabytes.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "base/sizes.h"
#include "device/product_profile.h"

namespace understudy {
namespace {

template <typename Visit>
void for_each_slice(Visit visit) {
  for (const ProductProfile& product : product_profiles()) {
    for (const Soc& soc : product.socs) {
      for (const Slice& slice : soc.slices) {
        SCOPED_TRACE(std::string(soc.name) + " " + std::string(slice.name));
        visit(product, soc, slice);
      }
    }
  }
}

TEST(Slices, AreWhatTheirNamesSay) {
  static const std::regex form(R"(vir(\d+)(?:_(\d)c)?(?:_(\d+)g)?(?:_(?:n?m|n?dvpp))?)");
  for_each_slice([](const ProductProfile&, const Soc&, const Slice& slice) {
    std::smatch part;
    const std::string name(slice.name);
    ASSERT_TRUE(std::regex_match(name, part, form));
    EXPECT_EQ(slice.ai_cores, std::stoi(part[1]));
    if (part[2].matched) {
      EXPECT_EQ(slice.ai_cpus, std::stoi(part[2]));
    }
    if (part[3].matched) {
      EXPECT_EQ(slice.memory, std::stoull(part[3]) * kGiB);
    }
    EXPECT_GT(slice.ai_cpus, 0);
  });
}

TEST(Slices, ArePartsOfTheirDevices) {
  for_each_slice([](const ProductProfile& product, const Soc& soc, const Slice& slice) {
    EXPECT_LE(slice.memory, soc.memory / 2);
    EXPECT_LT(slice.ai_cores, product.ai_cores);
    EXPECT_EQ(soc.find_slice(slice.name), &slice);
    EXPECT_EQ(soc.find_slice(""), nullptr);
    EXPECT_EQ(soc.find_slice("none"), nullptr);
  });
}

TEST(Slices, AreNamedOnceBySoc) {
  for (const ProductProfile& product : product_profiles()) {
    for (const Soc& soc : product.socs) {
      std::set<std::string_view> names;
      for (const Slice& slice : soc.slices) {
        EXPECT_TRUE(names.insert(slice.name).second) << soc.name << " " << slice.name;
      }
    }
  }
}

TEST(Slices, ChangeCoresAndSharingOfAProductAndNothingElse) {
  for_each_slice([](const ProductProfile& product, const Soc&, const Slice& slice) {
    const ProductProfile part = product.sliced(slice);
    EXPECT_EQ(part.key, product.key);
    EXPECT_EQ(part.ai_cores, slice.ai_cores);
    EXPECT_EQ(part.ai_cpus, slice.ai_cpus);
    EXPECT_LE(part.vector_cores, product.vector_cores);
    EXPECT_EQ(part.vector_cores == 0, product.vector_cores == 0);
    EXPECT_EQ(part.l2_cache, product.l2_cache);
    for (unsigned i = 0; i < static_cast<unsigned>(Feature::kCount); ++i) {
      const auto feature = static_cast<Feature>(i);
      EXPECT_EQ(part.has(feature), product.has(feature) || feature == Feature::kVirtualInstance);
    }
  });
}

TEST(Slices, VectorCoresComeInPairsWhereTheDeviceHasThemSo) {
  const ProductProfile& a2 = *find_product("a2");
  EXPECT_EQ(a2.sliced(*a2.socs.front().find_slice("vir05_1c_16g")).vector_cores, 10);
  const ProductProfile& inf = *find_product("inf");
  EXPECT_EQ(inf.sliced(*inf.socs.front().find_slice("vir01")).vector_cores, 1);
  EXPECT_EQ(inf.sliced(*inf.socs.front().find_slice("vir04")).vector_cores, 4);
}

}  // namespace
}  // namespace understudy
