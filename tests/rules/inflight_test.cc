// SPDX-License-Identifier: Apache-2.0
//
// Memory that ends while queued work still wants it: the release succeeds at once, the work fails
// on its stream, and nothing else is touched.
// Covers: ACOPY-06, FREE-03, GEN-09, HOST-21, HREG-22, SMEM-06.
#include <cstdint>
#include <functional>
#include <vector>

#include "rules/async_objects.h"
#include "rules/batch_objects.h"
#include "rules/vmm_objects.h"

namespace understudy_test {
namespace {

class InFlight : public HostMemoryTest {};

constexpr size_t kSize = kPage;

// What the work reads or writes besides the memory that ends.
class Surroundings {
 public:
  Surroundings() {
    store(locked_.data(), pattern(kSize, 70));
    copy_in(device_.data(), pattern(kSize, 71));
    copy_in(behind_.data(), pattern(kSize, 72));
  }
  void* locked() const { return locked_.data(); }
  void* device() const { return device_.data(); }

  // A task behind the work, which must run although the work fails.
  void queue_behind(aclrtStream stream) const {
    EXPECT_SUCCESS(aclrtMemsetAsync(behind_.data(), kSize, 1, kSize, stream));
  }
  void expect_only_behind_changed() const {
    EXPECT_TRUE(holds(locked_.data(), pattern(kSize, 70)));
    EXPECT_TRUE(copy_out(device_.data(), kSize) == pattern(kSize, 71));
    EXPECT_TRUE(copy_out(behind_.data(), kSize) == std::vector<uint8_t>(kSize, 1));
  }

 private:
  HostBlock locked_{kSize};
  DeviceBlock device_{kSize};
  DeviceBlock behind_{kSize};
};

struct Work {
  const char* name;
  std::function<aclError(void* memory, aclrtStream stream)> queue;
};

aclError queue_batch(void* to, void* from, const aclrtMemcpyBatchAttr& attribute,
                     aclrtStream stream) {
  Batch batch;
  batch.add(to, from, kSize);
  batch.from_element(0, attribute);
  const BatchArguments with = batch.arguments();
  return aclrtMemcpyBatchAsyncV2(with.targets, with.rooms, with.sources, with.sizes, with.count,
                                 with.attributes, with.attribute_starts, with.attribute_count,
                                 stream);
}

Work copy_from(void* source) {
  return {"copy into it", [source](void* memory, aclrtStream stream) {
            return aclrtMemcpyAsync(memory, kSize, source, kSize, ACL_MEMCPY_DEFAULT, stream);
          }};
}
Work copy_to(void* target) {
  return {"copy out of it", [target](void* memory, aclrtStream stream) {
            return aclrtMemcpyAsync(target, kSize, memory, kSize, ACL_MEMCPY_DEFAULT, stream);
          }};
}

// Every kind of work on device memory.
std::vector<Work> work_on_device_memory(const Surroundings& around) {
  void* const locked = around.locked();
  void* const device = around.device();
  return {
      copy_from(locked),
      copy_to(locked),
      copy_from(device),
      copy_to(device),
      {"set", [](void* memory,
                 aclrtStream stream) { return aclrtMemsetAsync(memory, kSize, 9, kSize, stream); }},
      {"words",
       [](void* memory, aclrtStream stream) {
         return aclrtMemsetD32Async(memory, kSize, 9, kSize / 4, stream);
       }},
      {"rows into it",
       [device](void* memory, aclrtStream stream) {
         return aclrtMemcpy2dAsync(memory, 64, device, 64, 32, 8, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                   stream);
       }},
      {"rows out of it",
       [locked](void* memory, aclrtStream stream) {
         return aclrtMemcpy2dAsync(locked, 64, memory, 64, 32, 8, ACL_MEMCPY_DEVICE_TO_HOST,
                                   stream);
       }},
      {"batch into it",
       [locked](void* memory, aclrtStream stream) {
         return queue_batch(memory, locked, to_device(), stream);
       }},
      {"batch out of it",
       [locked](void* memory, aclrtStream stream) {
         return queue_batch(locked, memory, to_host(), stream);
       }},
      {"value write",
       [](void* memory, aclrtStream stream) { return aclrtValueWrite(memory, 9, 0, stream); }},
      {"value wait",
       [](void* memory, aclrtStream stream) {
         return aclrtValueWait(memory, 9, ACL_STREAM_WAIT_VALUE_EQ, stream);
       }},
  };
}

// Queues the work behind a gate, ends the memory and expects that the work fails.
void expect_work_fails(const Work& work, void* memory, const Surroundings& around,
                       const std::function<aclError()>& end) {
  SCOPED_TRACE(work.name);
  const TestStream stream;
  Gate gate(stream.get());
  EXPECT_SUCCESS(while_held(gate, [&] { return work.queue(memory, stream.get()); }));
  around.queue_behind(stream.get());
  EXPECT_SUCCESS(while_held(gate, end));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  expect_task_failed(stream.get());
  around.expect_only_behind_changed();
}

TEST_F(InFlight, FREE_03_ACOPY_06_GEN_09_FreedDeviceMemory) {
  const Surroundings names;
  const size_t count = work_on_device_memory(names).size();
  for (size_t i = 0; i < count; ++i) {
    const Surroundings around;
    const MemoryFigures before = memory_figures();
    DeviceBlock block(kSize);
    copy_in(block.data(), pattern(kSize, 73));
    void* const memory = block.release();
    expect_work_fails(work_on_device_memory(around)[i], memory, around,
                      [&] { return aclrtFree(memory); });
    EXPECT_EQ(memory_figures(), before);
    expect_unknown_place(memory);
  }
}

TEST_F(InFlight, ACOPY_06_GEN_09_UnmappedMemory) {
  const Surroundings names;
  const size_t count = work_on_device_memory(names).size();
  for (size_t i = 0; i < count; ++i) {
    const Surroundings around;
    vmm::MappedBlock block;
    copy_in(block.start(), pattern(kSize, 74));
    expect_work_fails(work_on_device_memory(around)[i], block.start(), around,
                      [&] { return aclrtUnmapMem(block.mapping.give_up()); });
    // The block keeps what it had.
    const vmm::Mapping again(block.start(), block.block);
    EXPECT_TRUE(copy_out(block.start(), kSize) == pattern(kSize, 74));
  }
}

TEST_F(InFlight, HOST_21_ACOPY_06_GEN_09_FreedHostMemory) {
  for (const bool into : {true, false}) {
    const Surroundings around;
    HostBlock block(kSize);
    void* const memory = block.give_up();
    expect_work_fails(into ? copy_from(around.device()) : copy_to(around.device()), memory, around,
                      [&] { return aclrtFreeHost(memory); });
  }
}

TEST_F(InFlight, ACOPY_06_HREG_22_UnregisteredMemoryKeepsItsBytes) {
  for (const bool into : {true, false}) {
    const Surroundings around;
    const OwnMemory own(kSize);
    store(own.data(), pattern(kSize, 75));
    void* at_device = nullptr;
    ASSERT_SUCCESS(aclrtHostRegister(own.data(), kSize, ACL_HOST_REGISTER_MAPPED, &at_device));
    expect_work_fails(into ? copy_from(around.device()) : copy_to(around.device()), own.data(),
                      around, [&] { return aclrtHostUnregister(own.data()); });
    EXPECT_TRUE(holds(own.data(), pattern(kSize, 75)));
  }
}

// ---- Memory that is there again ----

TEST_F(InFlight, ACOPY_06_WorkUsesTheBlockThatIsMappedWhenItRuns) {
  const HostBlock locked(2 * kSize);
  store(locked.data(), pattern(kSize, 76));
  const vmm::Range range(kGranule);
  const vmm::Block first(kGranule);
  const vmm::Block second(kGranule);
  const TestStream stream;
  vmm::Mapping before(range.start(), first);
  copy_in(range.start(), pattern(2 * kSize, 77));
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemcpyAsync(range.start(), kSize, locked.data(), kSize, ACL_MEMCPY_DEFAULT,
                                    stream.get()));
    EXPECT_SUCCESS(aclrtMemcpyAsync(locked.at(kSize), kSize, range.byte(kSize), kSize,
                                    ACL_MEMCPY_DEFAULT, stream.get()));
    EXPECT_SUCCESS(while_held(gate, [&] { return aclrtUnmapMem(before.give_up()); }));
    const vmm::Mapping after(range.start(), second);
    copy_in(range.start(), pattern(2 * kSize, 78));
    gate.open();
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_TRUE(copy_out(range.start(), kSize) == pattern(kSize, 76));
    EXPECT_TRUE(copy_out(range.byte(kSize), kSize) == copy_out(locked.at(kSize), kSize));
  }
  const vmm::Mapping again(range.start(), first);
  EXPECT_TRUE(copy_out(range.start(), 2 * kSize) == pattern(2 * kSize, 77));
}

// The handle may go: a mapping keeps its block.
TEST_F(InFlight, ACOPY_06_WorkOutlivesTheHandleOfAMappedBlock) {
  const HostBlock locked(kSize);
  store(locked.data(), pattern(kSize, 79));
  vmm::MappedBlock block;
  const TestStream stream;
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemcpyAsync(block.start(), kSize, locked.data(), kSize, ACL_MEMCPY_DEFAULT,
                                    stream.get()));
    EXPECT_SUCCESS(while_held(gate, [&] { return aclrtFreePhysical(block.block.give_up()); }));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(block.start(), kSize) == pattern(kSize, 79));
}

// ---- Work that runs already ----

TEST_F(InFlight, FREE_03_GEN_09_MemoryMayEndInTheMiddleOfACopy) {
  constexpr size_t kLarge = 4 * kMiB;
  const DeviceBlock target(kLarge);
  const TestStream stream;
  for (int round = 0; round < 30; ++round) {
    DeviceBlock source(kLarge);
    EXPECT_SUCCESS(aclrtMemsetAsync(source.data(), kLarge, round, kLarge, stream.get()));
    EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kLarge, source.data(), kLarge,
                                    ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
    source.free();
    const aclError code = finish(stream.get());
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_SYS_DMA) << code;
    (void)recent_error();
  }
  EXPECT_SUCCESS(aclrtMemsetAsync(target.data(), kLarge, 5, kLarge, stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(target.data(), kLarge) == std::vector<uint8_t>(kLarge, 5));
}

TEST_F(InFlight, ACOPY_06_GEN_09_MappingMayEndInTheMiddleOfACopy) {
  constexpr size_t kLarge = 4 * kMiB;
  const HostBlock target(kLarge);
  const TestStream stream;
  for (int round = 0; round < 30; ++round) {
    {
      const vmm::MappedBlock source(kLarge);
      EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kLarge, source.start(), kLarge,
                                      ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    }
    const aclError code = finish(stream.get());
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_SYS_DMA) << code;
    (void)recent_error();
  }
}

// A stream that waits for a word which is no more would never go on.
TEST_F(InFlight, SMEM_06_FREE_03_WaitForAWordEndsWithTheWord) {
  DeviceBlock word(8);
  copy_in(word.data(), std::vector<uint8_t>(8, 0));
  const TestStream stream;
  EXPECT_SUCCESS(aclrtValueWait(word.data(), 1, ACL_STREAM_WAIT_VALUE_EQ, stream.get()));
  expect_held(stream.get());
  word.free();
  expect_task_failed(stream.get());
}

}  // namespace
}  // namespace understudy_test
