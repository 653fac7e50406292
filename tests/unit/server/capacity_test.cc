// SPDX-License-Identifier: Apache-2.0
#include "server/capacity.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "unit/local_capacity.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

constexpr auto kNormal = PageKind::kNormal;
constexpr auto kHuge = PageKind::kHuge;
constexpr auto kGiant = PageKind::kGiant;

uint64_t free_of(const LocalCapacity& capacity, unsigned device, PageKind kind) {
  return capacity.figures(device, kind).free;
}

TEST(Capacity, BeginsWithEverythingFree) {
  const LocalCapacity capacity(2, 4 * kMiB, 10 * kMiB);
  for (const unsigned device : {0u, 1u}) {
    EXPECT_EQ(capacity.figures(device, kNormal).free, 4 * kMiB);
    EXPECT_EQ(capacity.figures(device, kNormal).total, 4 * kMiB);
    EXPECT_EQ(capacity.figures(device, kHuge).free, 10 * kMiB);
    EXPECT_EQ(capacity.figures(device, kHuge).total, 10 * kMiB);
  }
}

TEST(Capacity, ChargeTakesFromOnePoolOfOneDevice) {
  LocalCapacity capacity(2, 4 * kMiB, 10 * kMiB);
  ASSERT_TRUE(capacity.charge({1, kHuge, 2 * kMiB}));
  EXPECT_EQ(free_of(capacity, 1, kHuge), 8 * kMiB);
  EXPECT_EQ(capacity.figures(1, kHuge).total, 10 * kMiB);
  EXPECT_EQ(free_of(capacity, 1, kNormal), 4 * kMiB);
  EXPECT_EQ(free_of(capacity, 0, kHuge), 10 * kMiB);
  capacity.credit({1, kHuge, 2 * kMiB});
  EXPECT_EQ(free_of(capacity, 1, kHuge), 10 * kMiB);
}

TEST(Capacity, ChargeBeyondWhatIsFreeTakesNothing) {
  LocalCapacity capacity(1, 4 * kMiB, 10 * kMiB);
  EXPECT_FALSE(capacity.charge({0, kHuge, 10 * kMiB + 1}));
  EXPECT_FALSE(capacity.charge({0, kHuge, UINT64_MAX}));
  ASSERT_TRUE(capacity.charge({0, kHuge, 8 * kMiB}));
  EXPECT_FALSE(capacity.charge({0, kHuge, 3 * kMiB}));
  EXPECT_FALSE(capacity.charge({0, kHuge, UINT64_MAX - 8 * kMiB + 1}));
  EXPECT_EQ(free_of(capacity, 0, kHuge), 2 * kMiB);
  EXPECT_TRUE(capacity.charge({0, kHuge, 2 * kMiB}));
  EXPECT_EQ(free_of(capacity, 0, kHuge), 0u);
  EXPECT_FALSE(capacity.charge({0, kHuge, 1}));
}

TEST(Capacity, GiantPagesAreWholeGibibytesOfTheHugePool) {
  LocalCapacity capacity(1, kGiB, 3 * kGiB + 512 * kMiB);
  EXPECT_EQ(capacity.figures(0, kGiant).free, 3 * kGiB);
  EXPECT_EQ(capacity.figures(0, kGiant).total, 3 * kGiB);
  ASSERT_TRUE(capacity.charge({0, kGiant, kGiB}));
  EXPECT_EQ(free_of(capacity, 0, kHuge), 2 * kGiB + 512 * kMiB);
  EXPECT_EQ(free_of(capacity, 0, kGiant), 2 * kGiB);
  // The half GiB beside the whole ones costs no giant page, one huge page more does.
  ASSERT_TRUE(capacity.charge({0, kHuge, 512 * kMiB}));
  EXPECT_EQ(free_of(capacity, 0, kGiant), 2 * kGiB);
  ASSERT_TRUE(capacity.charge({0, kHuge, 2 * kMiB}));
  EXPECT_EQ(free_of(capacity, 0, kGiant), kGiB);
  EXPECT_EQ(free_of(capacity, 0, kNormal), kGiB);
}

TEST(Capacity, DeviceWithoutAPoolGivesNothingFromIt) {
  LocalCapacity capacity(1, 0, 10 * kMiB);
  EXPECT_FALSE(capacity.charge({0, kNormal, kNormalPage}));
  EXPECT_EQ(capacity.figures(0, kNormal).total, 0u);
}

TEST(Capacity, StaysExactWithManyThreads) {
  constexpr uint64_t kPages = 64;
  LocalCapacity capacity(1, 0, kPages * kHugePage);
  std::atomic<uint64_t> held{0};
  std::atomic<uint64_t> most_held{0};
  run_on_threads(4, [&](int) {
    // Together they want twice of what there is, so that charges fail all the time.
    for (int round = 0; round < 200; ++round) {
      uint64_t mine = 0;
      for (uint64_t i = 0; i < kPages / 2; ++i) {
        if (!capacity.charge({0, kHuge, kHugePage})) continue;
        ++mine;
        const uint64_t now = ++held;
        uint64_t most = most_held.load();
        while (now > most && !most_held.compare_exchange_weak(most, now)) {
        }
      }
      held -= mine;
      capacity.credit({0, kHuge, mine * kHugePage});
    }
  });
  EXPECT_LE(most_held.load(), kPages);
  EXPECT_EQ(free_of(capacity, 0, kHuge), kPages * kHugePage);
}

TEST(Capacity, ThreadsTogetherGetExactlyWhatThereIs) {
  constexpr uint64_t kPages = 1000;
  LocalCapacity capacity(1, 0, kPages * kHugePage);
  std::atomic<uint64_t> granted{0};
  run_on_threads(4, [&](int) {
    while (capacity.charge({0, kHuge, kHugePage})) ++granted;
  });
  EXPECT_EQ(granted, kPages);
  EXPECT_EQ(free_of(capacity, 0, kHuge), 0u);
}

// ---- Modules ----

ModuleUsage usage_of(const LocalCapacity& capacity, uint8_t module) {
  for (const ModuleUsage& usage : capacity.usage(0)) {
    if (usage.module == module) return usage;
  }
  return {module, 0, 0};
}

TEST(CapacityModules, ChargesCountForTheModuleTheyName) {
  LocalCapacity capacity(1, 4 * kMiB, 10 * kMiB);
  ASSERT_TRUE(capacity.charge({0, kHuge, 2 * kMiB, 7}));
  ASSERT_TRUE(capacity.charge({0, kNormal, kMiB, 7}));
  ASSERT_TRUE(capacity.charge({0, kHuge, 4 * kMiB}));
  EXPECT_EQ(usage_of(capacity, 7).current, 3 * kMiB);
  EXPECT_EQ(usage_of(capacity, kApplicationModule).current, 4 * kMiB);
  EXPECT_EQ(capacity.usage(0).size(), 2u);
}

TEST(CapacityModules, PeakStaysWhenMemoryGoes) {
  LocalCapacity capacity(1, 0, 10 * kMiB);
  for (const uint8_t module : {uint8_t{0}, kApplicationModule, uint8_t{255}}) {
    ASSERT_TRUE(capacity.charge({0, kHuge, 4 * kMiB, module}));
    capacity.credit({0, kHuge, 4 * kMiB, module});
    ASSERT_TRUE(capacity.charge({0, kHuge, 2 * kMiB, module}));
    EXPECT_EQ(usage_of(capacity, module).current, 2 * kMiB);
    EXPECT_EQ(usage_of(capacity, module).peak, 4 * kMiB);
    capacity.credit({0, kHuge, 2 * kMiB, module});
  }
}

TEST(CapacityModules, RefusedChargeCountsForNobody) {
  LocalCapacity capacity(1, 0, 2 * kMiB);
  EXPECT_FALSE(capacity.charge({0, kHuge, 4 * kMiB, 7}));
  EXPECT_FALSE(capacity.charge({0, kHuge, 4 * kMiB}));
  EXPECT_TRUE(capacity.usage(0).empty());
}

TEST(CapacityModules, ExplanationNamesDevicePagesAndSizes) {
  LocalCapacity capacity(1, kMiB, 2 * kMiB);
  const Result<void> refused = charge_or_explain(capacity, {0, kHuge, 4 * kMiB});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_STREQ(refused.error().text(),
               "4 MiB in huge pages are not free on device 0: it has 1 MiB of 1 MiB in normal and "
               "2 MiB of 2 MiB in huge pages left; no process holds any of it");
  ASSERT_TRUE(capacity.charge({0, PageKind::kNormal, 12 * kKiB}));
  EXPECT_STREQ(charge_or_explain(capacity, {0, kHuge, 4 * kMiB}).error().text(),
               "4 MiB in huge pages are not free on device 0: it has 1012 KiB of 1 MiB in normal "
               "and 2 MiB of 2 MiB in huge pages left; this process holds the most, 12 KiB");
}

// ---- What a device uses when idle ----

TEST(CapacityIdle, IsNeverFreeAndPartOfTheTotal) {
  LocalCapacity capacity(1, 2 * kMiB, 8 * kMiB, {.normal = 12 * kKiB, .huge = 2 * kMiB});
  EXPECT_EQ(capacity.figures(0, PageKind::kNormal).total, 2 * kMiB);
  EXPECT_EQ(capacity.figures(0, PageKind::kNormal).free, 2 * kMiB - 12 * kKiB);
  EXPECT_EQ(capacity.figures(0, kHuge).total, 8 * kMiB);
  EXPECT_EQ(capacity.figures(0, kHuge).free, 6 * kMiB);

  EXPECT_FALSE(capacity.charge({0, kHuge, 8 * kMiB}));
  EXPECT_TRUE(capacity.charge({0, kHuge, 6 * kMiB}));
  EXPECT_FALSE(capacity.charge({0, kHuge, kHugePage}));
  EXPECT_EQ(capacity.figures(0, kHuge).free, 0u);
  EXPECT_FALSE(capacity.charge({0, PageKind::kNormal, 2 * kMiB - 8 * kKiB}));
  EXPECT_TRUE(capacity.charge({0, PageKind::kNormal, 2 * kMiB - 12 * kKiB}));
  capacity.credit({0, kHuge, 6 * kMiB});
  EXPECT_EQ(capacity.figures(0, kHuge).free, 6 * kMiB);
  ASSERT_EQ(capacity.usage(0).size(), 1u) << "no module has it";
  EXPECT_EQ(capacity.usage(0)[0].current, 2 * kMiB - 12 * kKiB);
}

TEST(CapacityIdle, GiantPagesAreCountedBesideIt) {
  LocalCapacity capacity(1, 0, 3 * kGiB, {.huge = kHugePage});
  EXPECT_EQ(capacity.figures(0, PageKind::kGiant).total, 3 * kGiB);
  EXPECT_EQ(capacity.figures(0, PageKind::kGiant).free, 2 * kGiB);
}

TEST(CapacityIdle, ExplanationNamesIt) {
  LocalCapacity capacity(1, kMiB, 4 * kMiB, {.huge = 2 * kMiB});
  EXPECT_STREQ(charge_or_explain(capacity, {0, kHuge, 4 * kMiB}).error().text(),
               "4 MiB in huge pages are not free on device 0: it has 1 MiB of 1 MiB in normal and "
               "2 MiB of 4 MiB in huge pages left, and 2 MiB are in use when it is idle; no "
               "process holds any of it");
}

// ---- Memory of the host for copies between devices ----

TEST(CapacityHostWindow, IsCountedBesideTheDevices) {
  LocalCapacity local(1, kMiB, 2 * kMiB, {}, 8 * kMiB);
  Capacity& capacity = local;
  EXPECT_TRUE(capacity.charge_host_window(6 * kMiB));
  EXPECT_EQ(capacity.host_window().free, 2 * kMiB);
  EXPECT_EQ(capacity.host_window().total, 8 * kMiB);
  EXPECT_FALSE(capacity.charge_host_window(4 * kMiB));
  EXPECT_TRUE(capacity.charge_host_window(2 * kMiB));
  EXPECT_EQ(local.figures(0, kHuge).free, 2 * kMiB);
  EXPECT_TRUE(local.usage(0).empty());
  capacity.credit_host_window(8 * kMiB);
  EXPECT_EQ(capacity.host_window().free, 8 * kMiB);
}

TEST(CapacityModules, StayExactWithManyThreads) {
  LocalCapacity capacity(1, 0, kGiB);
  run_on_threads(4, [&](int thread) {
    const Charge charge{0, kHuge, kHugePage, static_cast<uint8_t>(thread)};
    for (int round = 0; round < 500; ++round) {
      EXPECT_TRUE(capacity.charge(charge));
      capacity.credit(charge);
    }
    EXPECT_TRUE(capacity.charge(charge));
  });
  for (uint8_t module = 0; module < 4; ++module) {
    EXPECT_EQ(usage_of(capacity, module).current, kHugePage);
    EXPECT_EQ(usage_of(capacity, module).peak, kHugePage);
  }
  EXPECT_EQ(usage_of(capacity, kApplicationModule).current, 0u);
}

// Another module's charge is in two counters; what lies between them is not the application's.
TEST(CapacityModules, PeakOfTheApplicationIsItsOwnWhateverOthersDo) {
  LocalCapacity capacity(1, 0, kGiB);
  run_on_threads(2, [&](int thread) {
    const Charge charge =
        thread == 0 ? Charge{0, kHuge, 512 * kMiB, 7} : Charge{0, kHuge, kHugePage};
    for (int round = 0; round < 20000; ++round) {
      EXPECT_TRUE(capacity.charge(charge));
      capacity.credit(charge);
    }
  });
  EXPECT_EQ(usage_of(capacity, kApplicationModule).peak, kHugePage);
}

TEST(CapacityDeathTest, MoreCreditThanChargeIsOurOwnFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LocalCapacity capacity(1, 0, 10 * kMiB);
  ASSERT_TRUE(capacity.charge({0, kHuge, 2 * kMiB}));
  EXPECT_DEATH(capacity.credit({0, kHuge, 4 * kMiB}), "credited 512 pages more");
}

TEST(PageKind, SizesAreThoseOfTheDevice) {
  EXPECT_EQ(page_size(kNormal), 4 * kKiB);
  EXPECT_EQ(page_size(kHuge), 2 * kMiB);
  EXPECT_EQ(page_size(kGiant), kGiB);
}

// ---- Set aside ----

TEST(Capacity, SetAsideGivesEverythingBackAndTakesItAgain) {
  LocalCapacity local(2, 4 * kMiB, 10 * kMiB);
  Capacity& capacity = local;
  ASSERT_TRUE(local.charge({0, kNormal, kMiB}));
  ASSERT_TRUE(local.charge({0, kHuge, 4 * kMiB}));
  ASSERT_TRUE(local.charge({1, kHuge, 2 * kMiB, 7}));
  EXPECT_EQ(capacity.charged(), 7 * kMiB);
  capacity.show_set_aside(true);
  EXPECT_EQ(free_of(local, 0, kHuge), 10 * kMiB);
  EXPECT_FALSE(local.charge({0, kHuge, 10 * kMiB}));  // shown, and not yet given
  capacity.show_set_aside(false);
  EXPECT_EQ(free_of(local, 0, kHuge), 6 * kMiB);
  capacity.set_aside();
  EXPECT_EQ(capacity.charged(), 0u);
  EXPECT_EQ(free_of(local, 0, kNormal), 4 * kMiB);
  EXPECT_EQ(free_of(local, 0, kHuge), 10 * kMiB);
  EXPECT_EQ(free_of(local, 1, kHuge), 10 * kMiB);
  EXPECT_EQ(local.usage(0)[0].current, 5 * kMiB);  // whose it is has not changed
  EXPECT_TRUE(capacity.bring_back());
  EXPECT_EQ(capacity.charged(), 7 * kMiB);
  EXPECT_EQ(free_of(local, 0, kHuge), 6 * kMiB);
  EXPECT_EQ(free_of(local, 1, kHuge), 8 * kMiB);
}

TEST(Capacity, BringsAllBackOrNothing) {
  LocalCapacity local(2, 4 * kMiB, 10 * kMiB);
  Capacity& capacity = local;
  ASSERT_TRUE(local.charge({0, kHuge, 4 * kMiB}));
  ASSERT_TRUE(local.charge({1, kHuge, 4 * kMiB}));
  capacity.set_aside();
  // As another process would: there is room on one device alone.
  ASSERT_TRUE(local.charge({1, kHuge, 8 * kMiB}));
  EXPECT_FALSE(capacity.bring_back());
  EXPECT_EQ(free_of(local, 0, kHuge), 10 * kMiB);
  EXPECT_EQ(free_of(local, 1, kHuge), 2 * kMiB);
}

// A process that ends while its memory is set aside frees what is not charged.
TEST(Capacity, WhatIsSetAsideCanBeCredited) {
  LocalCapacity local(1, 4 * kMiB, 10 * kMiB);
  Capacity& capacity = local;
  ASSERT_TRUE(local.charge({0, kHuge, 4 * kMiB}));
  capacity.set_aside();
  local.credit({0, kHuge, 4 * kMiB});
  EXPECT_EQ(free_of(local, 0, kHuge), 10 * kMiB);
  EXPECT_TRUE(capacity.bring_back());
  EXPECT_EQ(free_of(local, 0, kHuge), 10 * kMiB);
}

}  // namespace
}  // namespace understudy
