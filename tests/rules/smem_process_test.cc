// SPDX-License-Identifier: Apache-2.0
//
// aclrtValueWait and aclrtValueWrite between processes: a stream waits for a word in shared memory
// that another process writes.
// Covers: SMEM-07.
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/ipc_objects.h"

namespace understudy_test::ipc {
namespace {

constexpr uint32_t kEqual = ACL_STREAM_WAIT_VALUE_EQ;
constexpr uint32_t kGreaterOrEqual = ACL_STREAM_WAIT_VALUE_GEQ;
constexpr uint32_t kAnd = ACL_STREAM_WAIT_VALUE_AND;

// How a word is written.
enum class Writer : uint8_t { kValueWrite, kCopy, kQueuedCopy, kSet, kQueuedSet };
constexpr Writer kWriters[] = {Writer::kValueWrite, Writer::kCopy, Writer::kQueuedCopy,
                               Writer::kSet, Writer::kQueuedSet};

// A word of 0x01 bytes, which every writer can make.
constexpr uint64_t kOnes = 0x0101010101010101;

std::vector<uint8_t> bytes_of(uint64_t value) {
  std::vector<uint8_t> bytes(sizeof value);
  memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

uint64_t word_at(const void* word) {
  uint64_t value = 0;
  memcpy(&value, copy_out(word, sizeof value).data(), sizeof value);
  return value;
}

aclError write_ones(Writer writer, void* word, aclrtStream stream) {
  const DeviceBlock source(8);
  copy_in(source.data(), bytes_of(kOnes));
  aclError code = ACL_SUCCESS;
  switch (writer) {
    case Writer::kValueWrite:
      code = aclrtValueWrite(word, kOnes, 0, stream);
      break;
    case Writer::kCopy:
      return aclrtMemcpy(word, 8, bytes_of(kOnes).data(), 8, ACL_MEMCPY_HOST_TO_DEVICE);
    case Writer::kQueuedCopy:
      code = aclrtMemcpyAsync(word, 8, source.data(), 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
      break;
    case Writer::kSet:
      return aclrtMemset(word, 8, 1, 8);
    case Writer::kQueuedSet:
      code = aclrtMemsetAsync(word, 8, 1, 8, stream);
      break;
  }
  return code != ACL_SUCCESS ? code : finish(stream);
}

// Writes the first word of the key's memory in the way it is told, each time it is told.
US_PEER(SmemWritesWhenTold) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    const Import shared(channel.receive<Key>());
    const TestStream stream;
    channel.send(ACL_SUCCESS);
    for (Writer writer{}; channel.receive_bytes(&writer, sizeof writer);) {
      channel.send(write_ones(writer, shared.data(), stream.get()));
    }
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// Waits on its stream for ones in the first word, then answers in the second.
US_PEER(SmemWaitsAndAnswers) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    const Import shared(channel.receive<Key>());
    const TestStream stream;
    for (uint64_t round = 0; channel.receive_bytes(&round, sizeof round);) {
      EXPECT_SUCCESS(aclrtValueWait(shared.data(), kOnes, kEqual, stream.get()));
      EXPECT_SUCCESS(aclrtValueWrite(at(shared.data(), 8), round, 0, stream.get()));
      expect_held(stream.get());
      channel.send(ACL_SUCCESS);  // it stands
      channel.send(finish(stream.get()));
    }
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// Queues its half of a rally on the first word.
US_PEER(SmemPassesTheWordBack) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  {
    const Import shared(channel.receive<Key>());
    const auto rounds = channel.receive<uint64_t>();
    const TestStream stream;
    for (uint64_t i = 0; i < rounds; ++i) {
      EXPECT_SUCCESS(aclrtValueWait(shared.data(), 2 * i + 1, kEqual, stream.get()));
      EXPECT_SUCCESS(aclrtValueWrite(shared.data(), 2 * i + 2, 0, stream.get()));
    }
    channel.send(finish(stream.get()));
    channel.wait_for_end();
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// The same through virtual memory: imports a block, maps it, writes its last word.
US_PEER(SmemWritesAMappedBlock) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const auto token = channel.receive<uint64_t>();
  aclrtDrvMemHandle handle = nullptr;
  ASSERT_SUCCESS(aclrtMemImportFromShareableHandle(token, 0, &handle));
  void* const range = reserve(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, handle, 0));
  {
    const TestStream stream;
    EXPECT_SUCCESS(aclrtValueWrite(at(range, kGranule - 8), 7, 0, stream.get()));
    channel.send(finish(stream.get()));
  }
  channel.wait_for_end();
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

using ValueBetweenProcesses = IpcTest;

TEST_F(ValueBetweenProcesses, SMEM_07_AWriteOfAnotherProcessReleasesTheWait) {
  for (const size_t size : {size_t{512}, 2 * kMiB}) {
    SCOPED_TRACE(size);
    const ExportedBlock block(size);
    const TestStream stream;
    Peer writer(SmemWritesWhenTold);
    writer.send(block.key());
    EXPECT_EQ(writer.receive<aclError>(), ACL_SUCCESS);
    for (const Writer way : kWriters) {
      SCOPED_TRACE(static_cast<int>(way));
      copy_in(block.data(), std::vector<uint8_t>(16));
      EXPECT_SUCCESS(aclrtValueWait(block.data(), kOnes, kEqual, stream.get()));
      EXPECT_SUCCESS(aclrtValueWrite(block.at(8), 5, 0, stream.get()));
      expect_held(stream.get());
      EXPECT_EQ(word_at(block.at(8)), 0u);
      writer.send(way);
      EXPECT_EQ(writer.receive<aclError>(), ACL_SUCCESS);
      EXPECT_SUCCESS(finish(stream.get()));
      EXPECT_EQ(word_at(block.at(8)), 5u);
    }
    writer.finish();
  }
}

TEST_F(ValueBetweenProcesses, SMEM_07_AWaitInAnotherProcessIsReleasedByAWriteHere) {
  const ExportedBlock block(512);
  const TestStream stream;
  Peer waiter(SmemWaitsAndAnswers);
  waiter.send(block.key());
  uint64_t round = 0;
  for (const Writer way : kWriters) {
    SCOPED_TRACE(static_cast<int>(way));
    copy_in(block.data(), std::vector<uint8_t>(16));
    waiter.send(++round);
    EXPECT_EQ(waiter.receive<aclError>(), ACL_SUCCESS);
    EXPECT_EQ(word_at(block.at(8)), 0u);
    EXPECT_SUCCESS(write_ones(way, block.data(), stream.get()));
    EXPECT_EQ(waiter.receive<aclError>(), ACL_SUCCESS);
    EXPECT_EQ(word_at(block.at(8)), round);
  }
  waiter.finish();
}

TEST_F(ValueBetweenProcesses, SMEM_07_TwoProcessesPassTheWordBackAndForth) {
  constexpr uint64_t kRounds = 100;
  const ExportedBlock block(512);
  copy_in(block.data(), bytes_of(0));
  Peer other(SmemPassesTheWordBack);
  other.send(block.key());
  other.send(kRounds);
  const TestStream stream;
  for (uint64_t i = 0; i < kRounds; ++i) {
    EXPECT_SUCCESS(aclrtValueWait(block.data(), 2 * i, kEqual, stream.get()));
    EXPECT_SUCCESS(aclrtValueWrite(block.data(), 2 * i + 1, 0, stream.get()));
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(other.receive<aclError>(), ACL_SUCCESS);
  EXPECT_EQ(word_at(block.data()), 2 * kRounds);
  other.finish();
}

TEST_F(ValueBetweenProcesses, SMEM_07_SeveralStreamsWaitForOneWord) {
  const ExportedBlock block(512);
  copy_in(block.data(), bytes_of(0));
  const TestStream equal;
  const TestStream greater;
  const TestStream some_bit;
  EXPECT_SUCCESS(aclrtValueWait(block.data(), kOnes, kEqual, equal.get()));
  EXPECT_SUCCESS(aclrtValueWait(block.data(), 1, kGreaterOrEqual, greater.get()));
  EXPECT_SUCCESS(aclrtValueWait(block.data(), 1, kAnd, some_bit.get()));
  Peer writer(SmemWritesWhenTold);
  writer.send(block.key());
  EXPECT_EQ(writer.receive<aclError>(), ACL_SUCCESS);
  for (const TestStream* stream : {&equal, &greater, &some_bit}) expect_held(stream->get());
  writer.send(Writer::kValueWrite);
  EXPECT_EQ(writer.receive<aclError>(), ACL_SUCCESS);
  for (const TestStream* stream : {&equal, &greater, &some_bit}) {
    EXPECT_SUCCESS(finish(stream->get()));
  }
  writer.finish();
}

TEST_F(ValueBetweenProcesses, SMEM_07_AWaitOnAMappedBlockIsReleasedToo) {
  const LiveMapping mapping;
  void* const word = mapping.at(kGranule - 8);
  copy_in(word, bytes_of(0));
  uint64_t token = 0;
  ASSERT_SUCCESS(aclrtMemExportToShareableHandle(mapping.handle(), ACL_MEM_HANDLE_TYPE_NONE,
                                                 ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
                                                 &token));
  const TestStream stream;
  EXPECT_SUCCESS(aclrtValueWait(word, 7, kEqual, stream.get()));
  expect_held(stream.get());
  Peer writer(SmemWritesAMappedBlock);
  writer.send(token);
  EXPECT_EQ(writer.receive<aclError>(), ACL_SUCCESS);
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(word_at(word), 7u);
  writer.finish();
}

}  // namespace
}  // namespace understudy_test::ipc
