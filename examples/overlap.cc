// SPDX-License-Identifier: Apache-2.0
//
// Feeds a device tile by tile. Two streams share the work: on one, a host function prepares a tile
// in page-locked memory; on the other, the tile before it is copied to the device. Events keep them
// in step: a tile is sent when it is prepared, and its buffer is used again when it was sent. The
// timestamps of the events give the timeline that is printed. Written against the public headers
// alone, it runs unchanged on an Ascend device.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kTile = 32 * kMiB;
constexpr unsigned kTiles = 8;
constexpr unsigned kBuffers = 2;

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

// What the host does to a tile: some arithmetic on every word, as a decoder would.
struct Preparation {
  uint64_t* words;
  uint64_t seed;
};

uint64_t word_of(uint64_t seed, uint64_t index) {
  uint64_t word = seed + index * 0x9E3779B97F4A7C15;
  word ^= word >> 31;
  return word * 0xBF58476D1CE4E5B9;
}

void prepare(void* argument) {
  const auto& work = *static_cast<const Preparation*>(argument);
  for (uint64_t i = 0; i < kTile / sizeof(uint64_t); ++i) work.words[i] = word_of(work.seed, i);
}

aclrtEvent timed_event() {
  aclrtEvent event = nullptr;
  CHECK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
  return event;
}

// Begin and end of one step, as the device saw them.
struct Step {
  aclrtEvent begin = timed_event();
  aclrtEvent end = timed_event();

  double begin_after(aclrtEvent start) const { return milliseconds(start, begin); }
  double end_after(aclrtEvent start) const { return milliseconds(start, end); }
  static double milliseconds(aclrtEvent from, aclrtEvent to) {
    float elapsed = 0;
    CHECK(aclrtEventElapsedTime(&elapsed, from, to));
    return elapsed;
  }
  void destroy() {
    CHECK(aclrtDestroyEvent(begin));
    CHECK(aclrtDestroyEvent(end));
  }
};

struct Pipeline {
  aclrtStream host = nullptr;      // prepares
  aclrtStream transfer = nullptr;  // sends
  uint64_t* buffers[kBuffers] = {};
  void* device = nullptr;
  aclrtEvent start = timed_event();
  std::vector<Step> prepared{kTiles};
  std::vector<Step> sent{kTiles};
  std::vector<Preparation> work{kTiles};

  void* tile(unsigned number) const { return static_cast<char*>(device) + number * kTile; }
};

void queue_tile(Pipeline& pipeline, unsigned tile) {
  uint64_t* const buffer = pipeline.buffers[tile % kBuffers];
  pipeline.work[tile] = {buffer, tile};
  if (tile >= kBuffers) {
    CHECK(aclrtStreamWaitEvent(pipeline.host, pipeline.sent[tile - kBuffers].end));
  }
  CHECK(aclrtRecordEvent(pipeline.prepared[tile].begin, pipeline.host));
  CHECK(aclrtLaunchHostFunc(pipeline.host, prepare, &pipeline.work[tile]));
  CHECK(aclrtRecordEvent(pipeline.prepared[tile].end, pipeline.host));

  CHECK(aclrtStreamWaitEvent(pipeline.transfer, pipeline.prepared[tile].end));
  CHECK(aclrtRecordEvent(pipeline.sent[tile].begin, pipeline.transfer));
  CHECK(aclrtMemcpyAsync(pipeline.tile(tile), kTile, buffer, kTile, ACL_MEMCPY_HOST_TO_DEVICE,
                         pipeline.transfer));
  CHECK(aclrtRecordEvent(pipeline.sent[tile].end, pipeline.transfer));
}

bool arrived(const Pipeline& pipeline) {
  std::vector<uint64_t> back(kTile / sizeof(uint64_t));
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    CHECK(aclrtMemcpy(back.data(), kTile, pipeline.tile(tile), kTile, ACL_MEMCPY_DEVICE_TO_HOST));
    for (uint64_t i = 0; i < back.size(); ++i) {
      if (back[i] != word_of(tile, i)) return false;
    }
  }
  return true;
}

// One line per step: when it ran, as a bar.
void print_step(const char* name, unsigned tile, double begin, double end, double total) {
  constexpr double kColumns = 60;
  const auto column = [&](double moment) { return static_cast<size_t>(moment / total * kColumns); };
  const size_t first = column(begin);
  const size_t width = std::max<size_t>(1, column(end) - first);
  std::printf(
      "  %-8s %u  |%s%s%s| %6.1f .. %6.1f ms\n", name, tile, std::string(first, ' ').c_str(),
      std::string(width, name[0] == 'p' ? '#' : '=').c_str(),
      std::string(static_cast<size_t>(kColumns) + 1 - std::min(first + width, size_t{61}), ' ')
          .c_str(),
      begin, end);
}

void print_timeline(const Pipeline& pipeline) {
  const double total = pipeline.sent.back().end_after(pipeline.start);
  double one_by_one = 0;
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    for (const bool sending : {false, true}) {
      const Step& step = sending ? pipeline.sent[tile] : pipeline.prepared[tile];
      const double begin = step.begin_after(pipeline.start);
      const double end = step.end_after(pipeline.start);
      one_by_one += end - begin;
      print_step(sending ? "send" : "prepare", tile, begin, end, total);
    }
  }
  std::printf("\n  all steps: %.1f ms, done in %.1f ms\n", one_by_one, total);
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  Pipeline pipeline;
  CHECK(aclrtCreateStream(&pipeline.host));
  CHECK(aclrtCreateStream(&pipeline.transfer));
  for (uint64_t*& buffer : pipeline.buffers) {
    CHECK(aclrtMallocHost(reinterpret_cast<void**>(&buffer), kTile));
  }
  CHECK(aclrtMalloc(&pipeline.device, kTiles * kTile, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemset(pipeline.device, kTiles * kTile, 0, kTiles * kTile));

  std::printf("%u tiles of %zu MiB through %u page-locked buffers, two streams\n\n", kTiles,
              kTile / kMiB, kBuffers);
  CHECK(aclrtRecordEvent(pipeline.start, pipeline.host));
  for (unsigned tile = 0; tile < kTiles; ++tile) queue_tile(pipeline, tile);
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  CHECK(aclrtStreamQuery(pipeline.transfer, &status));
  std::printf("  everything is queued; the transfer stream is %s\n\n",
              status == ACL_STREAM_STATUS_COMPLETE ? "done already" : "at work");
  CHECK(aclrtSynchronizeStream(pipeline.transfer));
  print_timeline(pipeline);
  const bool right = arrived(pipeline);
  std::printf("  %s\n", right ? "every byte arrived" : "SOMETHING IS WRONG");

  for (Step& step : pipeline.prepared) step.destroy();
  for (Step& step : pipeline.sent) step.destroy();
  CHECK(aclrtDestroyEvent(pipeline.start));
  CHECK(aclrtDestroyStream(pipeline.host));
  CHECK(aclrtDestroyStream(pipeline.transfer));
  for (uint64_t* const buffer : pipeline.buffers) CHECK(aclrtFreeHost(buffer));
  CHECK(aclrtFree(pipeline.device));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return right ? 0 : 1;
}
