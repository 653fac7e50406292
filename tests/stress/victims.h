// SPDX-License-Identifier: Apache-2.0
//
// Memory that tests take away while streams copy to and from it, and what comes after it.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rules/host_objects.h"
#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {

inline constexpr size_t kVictimSize = kGranule;
inline constexpr uint8_t kHeirByte = 0x77;

// Memory that is taken away while it is copied, and what comes after it.
class Victim {
 public:
  virtual ~Victim() = default;
  virtual void* take() = 0;
  virtual void give_back() = 0;
  // Memory that may be made of what was given back, but that no copy queued so far names; and a
  // look at all of it. Filled with kHeirByte.
  virtual void take_heir() {}
  virtual void expect_heir_unchanged() {}
};

inline bool is_all(const void* start, size_t count, uint8_t byte) {
  const auto* const bytes = static_cast<const uint8_t*>(start);
  return std::all_of(bytes, bytes + count, [byte](uint8_t each) { return each == byte; });
}

// A block that takes over storage, at an address of its own.
class MappedHeir {
 public:
  ~MappedHeir() { EXPECT_SUCCESS(aclrtReleaseMemAddress(place_)); }
  void take() {
    block_ = create_block(kVictimSize);
    EXPECT_SUCCESS(aclrtMapMem(place_, kVictimSize, 0, block_, 0));
    EXPECT_SUCCESS(aclrtMemset(place_, kVictimSize, kHeirByte, kVictimSize));
  }
  void expect_unchanged() {
    EXPECT_TRUE(is_all(copy_out(place_, kVictimSize).data(), kVictimSize, kHeirByte))
        << "a late copy wrote to a block that came after";
    EXPECT_SUCCESS(aclrtUnmapMem(place_));
    EXPECT_SUCCESS(aclrtFreePhysical(block_));
  }

 private:
  void* const place_ = reserve(kVictimSize);
  aclrtDrvMemHandle block_ = nullptr;
};

class MallocedVictim : public Victim {
 public:
  void* take() override {
    EXPECT_SUCCESS(aclrtMalloc(&data_, kVictimSize, ACL_MEM_MALLOC_HUGE_FIRST));
    return data_;
  }
  void give_back() override { EXPECT_SUCCESS(aclrtFree(data_)); }
  void take_heir() override { heir_.take(); }
  void expect_heir_unchanged() override { heir_.expect_unchanged(); }

 private:
  void* data_ = nullptr;
  MappedHeir heir_;
};

class MappedVictim : public Victim {
 public:
  ~MappedVictim() override { EXPECT_SUCCESS(aclrtReleaseMemAddress(place_)); }
  void* take() override {
    block_ = create_block(kVictimSize);
    EXPECT_SUCCESS(aclrtMapMem(place_, kVictimSize, 0, block_, 0));
    return place_;
  }
  void give_back() override {
    EXPECT_SUCCESS(aclrtUnmapMem(place_));
    EXPECT_SUCCESS(aclrtFreePhysical(block_));
  }
  void take_heir() override { heir_.take(); }
  void expect_heir_unchanged() override { heir_.expect_unchanged(); }

 private:
  void* const place_ = reserve(kVictimSize);
  aclrtDrvMemHandle block_ = nullptr;
  MappedHeir heir_;
};

// The library may give its address to the next one, which old copies may then name: no heir.
class HostVictim : public Victim {
 public:
  void* take() override { return data_ = allocate_host(kVictimSize); }
  void give_back() override { EXPECT_SUCCESS(aclrtFreeHost(data_)); }

 private:
  void* data_ = nullptr;
};

// The heir is at the very same address, but not page-locked: copies of streams must not touch it.
// Every other time it is a hole, which nobody can touch.
class RegisteredVictim : public Victim {
 public:
  void* take() override {
    data_ = map_memory(nullptr, PROT_READ | PROT_WRITE);
    EXPECT_SUCCESS(aclrtHostRegisterV2(data_, kVictimSize, ACL_HOST_REG_PINNED));
    return data_;
  }
  // Nobody else gets the address as long as copies may name it.
  void give_back() override {
    EXPECT_SUCCESS(aclrtHostUnregister(data_));
    is_hole_ = !is_hole_;
    EXPECT_EQ(map_memory(data_, is_hole_ ? PROT_NONE : PROT_READ | PROT_WRITE), data_);
  }
  void take_heir() override {
    if (!is_hole_) memset(data_, kHeirByte, kVictimSize);
  }
  void expect_heir_unchanged() override {
    EXPECT_TRUE(is_hole_ || is_all(data_, kVictimSize, kHeirByte))
        << "a copy wrote to memory that was not registered any more";
    EXPECT_EQ(munmap(data_, kVictimSize), 0);
  }

 private:
  static void* map_memory(void* place, int protection) {
    const int fixed = place != nullptr ? MAP_FIXED : 0;
    return mmap(place, kVictimSize, protection, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  }
  void* data_ = nullptr;
  bool is_hole_ = false;
};

}  // namespace understudy_test
