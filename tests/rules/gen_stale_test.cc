// SPDX-License-Identifier: Apache-2.0
//
// Device addresses that have no memory: freed, unmapped, reserved only, of another process, of the
// parent of a fork. A device address is one for ever, so that no call takes it for host memory.
// Covers: COPY-09, GEN-09, RESV-18, SET-06.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "rules/stale_addresses.h"
#include "rules/vmm_objects.h"
#include "support/fork_safety.h"
#include "support/peer.h"
#include "support/sanitizers.h"

namespace understudy_test::vmm {
namespace {

void* allocate(size_t size) {
  void* data = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&data, size, ACL_MEM_MALLOC_HUGE_FIRST));
  return data;
}

class StaleAddress : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (has_thread_sanitizer()) {
      GTEST_SKIP()
          << "ThreadSanitizer has memory of its own among device addresses, and few others";
    }
    device_ = allocate(kMiB);
  }
  void TearDown() override {
    if (device_ != nullptr) {
      EXPECT_SUCCESS(aclrtFree(device_));
    }
    DeviceTest::TearDown();
  }
  // All calls answer their codes, with the phrase, and change nothing.
  void expect_refused(void* stale, const char* phrase) const {
    const FiguresStay figures;
    EXPECT_EQ(wrong_answers(stale, phrase, device_), "");
  }

  void* device_ = nullptr;
};

TEST_F(StaleAddress, GEN_09_FreedAllocations) {
  for (const size_t size : {4 * kKiB, 100 * kKiB, 3 * kMiB, kGiB}) {
    SCOPED_TRACE(size);
    void* const neighbour = allocate(size);
    void* const freed = allocate(size);
    EXPECT_SUCCESS(aclrtFree(freed));
    expect_refused(freed, "is device memory that was freed");
    EXPECT_SUCCESS(aclrtFree(neighbour));
  }
}

TEST_F(StaleAddress, GEN_09_BytesBesideAnAllocation) {
  void* const small = allocate(4 * kKiB);  // with 32 bytes behind it
  expect_refused(at(small, 4 * kKiB + 64), "is outside the allocation of 4128 bytes at ");
  void* const large = allocate(3 * kMiB);
  expect_refused(at(large, 3 * kMiB + 4 * kKiB), "is outside the allocation of 3145760 bytes at ");
  EXPECT_SUCCESS(aclrtFree(large));
  EXPECT_SUCCESS(aclrtFree(small));
}

TEST_F(StaleAddress, GEN_09_RESV_18_ReservedAndNeverMapped) {
  const Range range(2 * kHugePage);
  expect_refused(range.start(), "is reserved but not mapped");
  expect_refused(range.byte(kHugePage + 64), "is reserved but not mapped");
}

TEST_F(StaleAddress, GEN_09_UnmappedMemory) {
  for (const size_t size : {kHugePage, 2 * kGiB}) {
    SCOPED_TRACE(size);
    const Range range(size);
    const Block block(size);
    { const Mapping mapping(range.start(), block); }
    expect_refused(range.start(), "is device memory that was unmapped");
    expect_refused(range.byte(size - 64), "is device memory that was unmapped");
    // What is mapped there next is found at once.
    const Mapping again(range.start(), block);
    expect_usable(range.start());
  }
}

TEST_F(StaleAddress, GEN_09_UnmappedMemoryOfReleasedReservations) {
  void* stale = nullptr;
  {
    const MappedBlock block;
    stale = block.start();
  }
  expect_refused(stale, "is device memory that was unmapped, and its reservation is released");
}

TEST_F(StaleAddress, GEN_09_ReleasedReservations) {
  void* const released = reserve(kHugePage);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  expect_refused(released, "is a device address that is not reserved");
}

TEST_F(StaleAddress, GEN_09_AddressesThatNoProcessHas) {
  for (const uint64_t start : {17 * kTiB + 12345 * kHugePage, 150 * kTiB}) {
    if (host_range(start, kHugePage) == HostRange::kOccupied) continue;
    SCOPED_TRACE(start);
    expect_refused(address(start), "is a device address that ");
  }
}

// ---- Addresses of other processes ----

// Somewhere in the window of wishes, where this process has nothing.
US_PEER(OwnsMappedMemory) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    const uint64_t start = find_free_start(kGiB);
    const Range range(kHugePage, 0, address(start));
    const Block block;
    const Mapping mapping(range.start(), block);
    channel.send(number(range.start()));
    channel.wait_for_end();
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

TEST(StaleAddressInAFreshProcess, GEN_09_MemoryOfAnotherProcess) {
  US_FRESH_PROCESS();
  const DeviceBinding binding;
  Peer owner(OwnsMappedMemory);
  void* const foreign = address(owner.receive<uint64_t>());
  if (host_range(number(foreign), kHugePage) != HostRange::kFree) {
    GTEST_SKIP() << "something of this process is there";
  }
  void* const own = allocate(kMiB);
  EXPECT_EQ(wrong_answers(foreign, "is a device address that this process never had", own), "");
  EXPECT_SUCCESS(aclrtFree(own));
}

// ---- Fork children ----

// Runs the body in a child and gives the text that it returns.
template <typename Body>
std::string answer_of_child(Body body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  return text;
}

// The child has allocations of its own, which lie where the parent's are.
std::string answers_in_child(void* stale, const char* phrase) {
  if (aclrtSetDevice(0) != ACL_SUCCESS) return "no device";
  void* own = nullptr;
  if (aclrtMalloc(&own, 3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return "no memory";
  const std::string wrong = wrong_answers(stale, phrase, own);
  return aclrtFree(own) == ACL_SUCCESS ? wrong : "not freed";
}

TEST_F(StaleAddress, GEN_09_MemoryOfTheParentInAForkChild) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  const uint64_t start = find_free_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const Range range(kHugePage, 0, address(start));
  const Block block;
  const Mapping mapping(range.start(), block);
  expect_usable(range.start(), 9);
  EXPECT_EQ(answer_of_child([&] {
              return answers_in_child(range.start(),
                                      "is a device address that this process never had");
            }),
            "");
  // An allocation of the parent's, far from what the child allocates.
  void* const far = allocate(8 * kGiB);
  EXPECT_EQ(
      answer_of_child([&] { return answers_in_child(at(far, 7 * kGiB), "is a device address "); }),
      "");
  EXPECT_SUCCESS(aclrtFree(far));
  expect_usable(range.start(), 9);
}

// ---- Host memory ----

// A program may have memory of its own in the windows of the devices.
TEST_F(StaleAddress, COPY_09_HostMemoryAmongDeviceAddressesIsHostMemory) {
  for (const uint64_t near : {18 * kTiB, 30 * kTiB}) {
    SCOPED_TRACE(near);
    void* const own = map_own_memory(near, kHugePage, PROT_READ | PROT_WRITE);
    if (own == MAP_FAILED) continue;
    for (const size_t size : {size_t{64}, kHugePage}) {
      const std::vector<uint8_t> bytes = pattern(size, 5);
      EXPECT_SUCCESS(aclrtMemcpy(own, size, bytes.data(), size, ACL_MEMCPY_HOST_TO_HOST));
      EXPECT_EQ(memcmp(own, bytes.data(), size), 0);
      EXPECT_SUCCESS(aclrtMemset(own, size, 3, size));
      EXPECT_EQ(static_cast<uint8_t*>(own)[size - 1], 3);
    }
    EXPECT_SUCCESS(aclrtMemcpyAsync(device_, 64, own, 64, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
    ASSERT_EQ(munmap(own, kHugePage), 0);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(own, kHugePage, 3, kHugePage));
  }
}

// A host pointer that is none is refused where the kernel is asked: far from all memory of the
// process, and with copies so large that the question costs nothing.
TEST_F(StaleAddress, COPY_09_SET_06_WildHostPointersAreRefusedWhereTheKernelIsAsked) {
  std::vector<uint8_t> host(2 * kMiB);
  for (const uint64_t wild : {uint64_t{8}, uint64_t{0xFFF}, 3 * kTiB, 130 * kTiB, uint64_t{1} << 60,
                              ~uint64_t{0} - 4096}) {
    // Hosts keep the lowest addresses free, and ThreadSanitizer lets nothing be tried there.
    if (wild >= kHugePage &&
        host_range(wild / kHugePage * kHugePage, kHugePage) == HostRange::kOccupied) {
      continue;
    }
    SCOPED_TRACE(wild);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(device_, 64, address(wild), 64, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(address(wild), 64, device_, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(address(wild), 64, host.data(), 64, ACL_MEMCPY_HOST_TO_HOST));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(address(wild), 64, 1, 64));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemsetAsync(address(wild), 64, 1, 64, nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpyAsync(device_, 64, address(wild), 64,
                                                              ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy2d(device_, 64, address(wild), 64, 64, 2, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  // In the midst of the process's memory: a buffer that is shorter than the copy.
  void* const pages = mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(munmap(at(pages, 2 * kMiB), 2 * kMiB), 0);
  EXPECT_SUCCESS(aclrtMemset(pages, 2 * kMiB, 1, 2 * kMiB));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(pages, 4 * kMiB, 2, 4 * kMiB));
  EXPECT_EQ(*static_cast<uint8_t*>(pages), 1) << "nothing is written before all is checked";
  ASSERT_EQ(munmap(pages, 2 * kMiB), 0);
}

}  // namespace
}  // namespace understudy_test::vmm
