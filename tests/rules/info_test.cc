// SPDX-License-Identifier: Apache-2.0
//
// aclrtGetMemInfo: arguments, which figures belong to which kind of memory, and how blocks move
// them.
// Covers: INFO-01, INFO-02, INFO-03, INFO-04, INFO-05, INFO-06, INFO-07, INFO-08, INFO-09.
#include <cstdint>
#include <utility>
#include <vector>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using MemoryInfo = DeviceTest;

constexpr size_t kUntouched = 0x5a5a5a5a5a5a5a5a;

struct Figures {
  aclError code;
  size_t free;
  size_t total;
  friend bool operator==(const Figures&, const Figures&) = default;
};

void PrintTo(const Figures& figures, std::ostream* out) {
  *out << "code " << figures.code << ", free " << figures.free << " of " << figures.total;
}

Figures figures_of(aclrtMemAttr attribute) {
  Figures figures{ACL_SUCCESS, kUntouched, kUntouched};
  figures.code = aclrtGetMemInfo(attribute, &figures.free, &figures.total);
  return figures;
}

TEST_F(MemoryInfo, INFO_01_NullOutputIsRefused) {
  size_t figure = kUntouched;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &figure));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, &figure, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetMemInfo(ACL_HBM_MEM, nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtGetMemInfo(enum_value<aclrtMemAttr>(99), &figure, nullptr));
  EXPECT_EQ(figure, kUntouched);
}

TEST_F(MemoryInfo, INFO_02_UnknownKindIsRefused) {
  for (const int64_t kind :
       {int64_t{-1}, int64_t{18}, int64_t{99}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
    SCOPED_TRACE(kind);
    size_t free = kUntouched;
    size_t total = kUntouched;
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_MEMORY_TYPE,
                 aclrtGetMemInfo(enum_value<aclrtMemAttr>(kind), &free, &total));
    EXPECT_EQ(free, kUntouched);
    EXPECT_EQ(total, kUntouched);
  }
}

TEST_F(MemoryInfo, INFO_03_ThreadWithoutContextIsRefused) {
  on_bare_thread([] {
    size_t free = kUntouched;
    size_t total = kUntouched;
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    EXPECT_EQ(free, kUntouched);
    EXPECT_EQ(total, kUntouched);
  });
}

TEST_F(MemoryInfo, INFO_03_FiguresAreThoseOfTheCurrentDevice) {
  const MemoryFigures device_0 = memory_figures();
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const size_t free_on_1 = free_bytes();
  const aclrtDrvMemHandle block =
      create_block(4 * kMiB, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  EXPECT_EQ(free_bytes(), free_on_1 - 4 * kMiB);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(memory_figures(), device_0);

  EXPECT_SUCCESS(aclrtFreePhysical(block));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(free_bytes(), free_on_1);
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
}

TEST_F(MemoryInfo, INFO_03_FiguresFollowTheContextNotTheThread) {
  aclrtContext context = nullptr;
  ASSERT_SUCCESS(aclrtCreateContext(&context, 1));
  const size_t free_on_1 = free_bytes();
  const aclrtDrvMemHandle block =
      create_block(4 * kMiB, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  on_bare_thread([&] {
    ASSERT_SUCCESS(aclrtSetCurrentContext(context));
    EXPECT_EQ(free_bytes(), free_on_1 - 4 * kMiB);
  });
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(MemoryInfo, INFO_04_FreeNeverExceedsTotalNorTotalTheDevice) {
  for (int attribute = 0; attribute <= 17; ++attribute) {
    SCOPED_TRACE(attribute);
    const Figures figures = figures_of(enum_value<aclrtMemAttr>(attribute));
    if (figures.code != ACL_SUCCESS) continue;
    EXPECT_LE(figures.free, figures.total);
    EXPECT_LE(figures.total, 64 * kGiB);
  }
  EXPECT_GT(figures_of(ACL_HBM_MEM).total, size_t{0});
}

// What the system keeps for itself is not in the figures: all that is called free can be had.
TEST_F(MemoryInfo, INFO_04_EverythingCalledFreeCanBeAllocated) {
  const MemoryFigures before = memory_figures();
  for (const auto& [attribute, kind] : {std::pair{ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE},
                                        std::pair{ACL_MEM_NORMAL, ACL_HBM_MEM_NORMAL}}) {
    SCOPED_TRACE(attribute);
    const size_t size = free_bytes(kind) / kGranule * kGranule;
    ASSERT_GT(size, size_t{0});
    const aclrtDrvMemHandle block = create_block(size, block_property(attribute));
    EXPECT_LT(free_bytes(kind), kGranule);

    const aclrtPhysicalMemProp property = block_property(attribute);
    aclrtDrvMemHandle none = nullptr;
    EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION,
                 aclrtMallocPhysical(&none, kGranule, &property, 0));
    EXPECT_SUCCESS(aclrtFreePhysical(block));
  }
  EXPECT_EQ(memory_figures(), before);
}

void expect_whole_is_huge_plus_normal(aclrtMemAttr whole, aclrtMemAttr huge, aclrtMemAttr normal) {
  SCOPED_TRACE(whole);
  const Figures sum = figures_of(whole);
  const Figures huge_part = figures_of(huge);
  const Figures normal_part = figures_of(normal);
  ASSERT_EQ(sum.code, ACL_SUCCESS);
  ASSERT_EQ(huge_part.code, ACL_SUCCESS);
  ASSERT_EQ(normal_part.code, ACL_SUCCESS);
  EXPECT_EQ(sum.free, huge_part.free + normal_part.free);
  EXPECT_EQ(sum.total, huge_part.total + normal_part.total);
}

TEST_F(MemoryInfo, INFO_05_WholeIsHugePlusNormal) {
  const auto expect_sums = [] {
    expect_whole_is_huge_plus_normal(ACL_HBM_MEM, ACL_HBM_MEM_HUGE, ACL_HBM_MEM_NORMAL);
    expect_whole_is_huge_plus_normal(ACL_DDR_MEM, ACL_DDR_MEM_HUGE, ACL_DDR_MEM_NORMAL);
  };
  expect_sums();
  const LiveMapping huge(4 * kMiB, block_property(ACL_HBM_MEM_HUGE));
  const LiveMapping normal(6 * kMiB, block_property(ACL_MEM_NORMAL));
  expect_sums();
}

TEST_F(MemoryInfo, INFO_05_HugeAndNormalFormsReportOneKindEach) {
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
  {
    const LiveMapping block(4 * kMiB, block_property(ACL_HBM_MEM_HUGE));
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge - 4 * kMiB);
    EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal);
  }
  const LiveMapping block(6 * kMiB, block_property(ACL_MEM_NORMAL));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge);
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal - 6 * kMiB);
}

TEST(MemoryInfoOfDdrProduct, INFO_05_WholeIsHugePlusNormal) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  const DeviceSession session;
  const LiveMapping huge(4 * kMiB, block_property(ACL_MEM_HUGE));
  const LiveMapping normal(6 * kMiB, block_property(ACL_MEM_NORMAL));
  expect_whole_is_huge_plus_normal(ACL_DDR_MEM, ACL_DDR_MEM_HUGE, ACL_DDR_MEM_NORMAL);
  expect_whole_is_huge_plus_normal(ACL_HBM_MEM, ACL_HBM_MEM_HUGE, ACL_HBM_MEM_NORMAL);
}

void expect_general_forms_answer_as_hbm_forms() {
  const std::pair<aclrtMemAttr, aclrtMemAttr> pairs[] = {
      {ACL_MEM_NORMAL, ACL_HBM_MEM_NORMAL},     {ACL_MEM_HUGE, ACL_HBM_MEM_HUGE},
      {ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G},     {ACL_MEM_P2P_NORMAL, ACL_HBM_MEM_P2P_NORMAL},
      {ACL_MEM_P2P_HUGE, ACL_HBM_MEM_P2P_HUGE}, {ACL_MEM_P2P_HUGE1G, ACL_HBM_MEM_P2P_HUGE1G},
  };
  for (const auto& [general, hbm] : pairs) {
    SCOPED_TRACE(general);
    EXPECT_EQ(figures_of(general), figures_of(hbm));
  }
  EXPECT_GT(figures_of(ACL_MEM_HUGE).total, size_t{0});
  EXPECT_GT(figures_of(ACL_MEM_NORMAL).total, size_t{0});
}

TEST_F(MemoryInfo, INFO_06_GeneralFormsAnswerAsHbmForms) {
  expect_general_forms_answer_as_hbm_forms();
  const LiveMapping huge(4 * kMiB, block_property(ACL_HBM_MEM_HUGE));
  const LiveMapping normal(6 * kMiB, block_property(ACL_MEM_NORMAL));
  expect_general_forms_answer_as_hbm_forms();
}

TEST(MemoryInfoOfDdrProduct, INFO_06_GeneralFormsAnswerAsHbmForms) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  const DeviceSession session;
  expect_general_forms_answer_as_hbm_forms();
}

TEST_F(MemoryInfo, INFO_07_HbmProductHasNoDdr) {
  for (const aclrtMemAttr attribute : {ACL_DDR_MEM, ACL_DDR_MEM_HUGE, ACL_DDR_MEM_NORMAL,
                                       ACL_DDR_MEM_P2P_HUGE, ACL_DDR_MEM_P2P_NORMAL}) {
    SCOPED_TRACE(attribute);
    EXPECT_EQ(figures_of(attribute), (Figures{ACL_SUCCESS, 0, 0}));
  }
}

TEST(MemoryInfoOfDdrProduct, INFO_07_HbmQueriesAreAnsweredFromDdr) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  const DeviceSession session;
  const LiveMapping block(4 * kMiB, block_property(ACL_HBM_MEM_HUGE));
  const std::pair<aclrtMemAttr, aclrtMemAttr> pairs[] = {
      {ACL_HBM_MEM, ACL_DDR_MEM},
      {ACL_HBM_MEM_HUGE, ACL_DDR_MEM_HUGE},
      {ACL_HBM_MEM_NORMAL, ACL_DDR_MEM_NORMAL},
  };
  for (const auto& [hbm, ddr] : pairs) {
    SCOPED_TRACE(hbm);
    EXPECT_EQ(figures_of(hbm), figures_of(ddr));
    EXPECT_EQ(figures_of(hbm).code, ACL_SUCCESS);
    EXPECT_GT(figures_of(hbm).total, size_t{0});
  }
}

void expect_no_giant_pages() {
  const DeviceSession session;
  for (const aclrtMemAttr attribute :
       {ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_P2P_HUGE1G, ACL_MEM_HUGE1G, ACL_MEM_P2P_HUGE1G}) {
    SCOPED_TRACE(attribute);
    size_t free = kUntouched;
    size_t total = kUntouched;
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtGetMemInfo(attribute, &free, &total));
    EXPECT_EQ(free, kUntouched);
    EXPECT_EQ(total, kUntouched);
  }
}

TEST(MemoryInfoWithoutGiantPages, INFO_08_AtlasInference) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  expect_no_giant_pages();
}

TEST(MemoryInfoWithoutGiantPages, INFO_08_AtlasTraining) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "trn"});
  expect_no_giant_pages();
}

TEST(MemoryInfoWithoutGiantPages, INFO_08_Atlas200I) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i"});
  expect_no_giant_pages();
}

TEST_F(MemoryInfo, INFO_08_GiantFigureIsTheWholeGiBLeftOfTheHugePool) {
  const auto expect_whole_gib = [] {
    const Figures huge = figures_of(ACL_HBM_MEM_HUGE);
    const Figures giant = figures_of(ACL_HBM_MEM_HUGE1G);
    ASSERT_EQ(giant.code, ACL_SUCCESS);
    EXPECT_EQ(giant.free, huge.free / kGiB * kGiB);
    EXPECT_EQ(giant.total, huge.total / kGiB * kGiB);
  };
  expect_whole_gib();
  const LiveMapping small(kGranule, block_property(ACL_HBM_MEM_HUGE));
  expect_whole_gib();
  const LiveMapping giant(2 * kGiB, block_property(ACL_HBM_MEM_HUGE1G));
  expect_whole_gib();
}

struct Taking {
  aclrtMemAttr attribute;
  size_t size;
  aclrtMemAttr kind;  // whose figure falls
};

// Takes a block, says which figures fall, gives it back.
void expect_taken_and_restored(const Taking& taking) {
  SCOPED_TRACE(taking.attribute);
  const MemoryFigures before = memory_figures();
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
  const aclrtDrvMemHandle block = create_block(taking.size, block_property(taking.attribute));
  const bool from_huge = taking.kind == ACL_HBM_MEM_HUGE;
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), huge - (from_huge ? taking.size : 0));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), normal - (from_huge ? 0 : taking.size));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM), huge + normal - taking.size);
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(MemoryInfo, INFO_09_BlockLowersItsOwnKindAndReleaseRestoresIt) {
  const Taking takings[] = {
      {ACL_HBM_MEM_HUGE, kGranule, ACL_HBM_MEM_HUGE},
      {ACL_HBM_MEM_HUGE, 3 * kGiB + kGranule, ACL_HBM_MEM_HUGE},
      {ACL_MEM_HUGE, 2 * kGranule, ACL_HBM_MEM_HUGE},
      {ACL_MEM_P2P_HUGE, 2 * kGranule, ACL_HBM_MEM_HUGE},
      {ACL_HBM_MEM_NORMAL, kGranule, ACL_HBM_MEM_HUGE},  // served by huge pages
      {ACL_HBM_MEM_HUGE1G, kGiB, ACL_HBM_MEM_HUGE},
      {ACL_MEM_HUGE1G, 2 * kGiB, ACL_HBM_MEM_HUGE},
      {ACL_MEM_NORMAL, kGranule, ACL_HBM_MEM_NORMAL},
      {ACL_MEM_P2P_NORMAL, 3 * kGranule, ACL_HBM_MEM_NORMAL},
  };
  for (const Taking& taking : takings) expect_taken_and_restored(taking);
}

TEST_F(MemoryInfo, INFO_09_HostBlockAndReservationLowerNothing) {
  const MemoryFigures before = memory_figures();
  const LiveMapping host_block(kGranule, host_property());
  void* const range = reserve(kTiB);
  EXPECT_EQ(memory_figures(), before);
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(MemoryInfo, INFO_09_RefusedAllocationLowersNothing) {
  const MemoryFigures before = memory_figures();
  const aclrtPhysicalMemProp property = block_property();
  const size_t too_much = free_bytes(ACL_HBM_MEM_HUGE) / kGranule * kGranule + kGranule;
  aclrtDrvMemHandle none = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocPhysical(&none, too_much, &property, 0));
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test
