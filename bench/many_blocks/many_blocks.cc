// SPDX-License-Identifier: Apache-2.0
//
// What does one block cost when there are 32 768 of them side by side, in a process that may open
// 1 024 files? Each repetition is a process of its own, for the growth of its memory.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/raw_memory.h"
#include "support/report.h"

namespace {

using namespace bench;

// A copy across the border of two blocks arrives: they really lie side by side.
void check_border(std::byte* border) {
  std::array<std::byte, 64> out;
  std::array<std::byte, 64> in{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i + 1);
  check(aclrtMemcpy(border - 32, 64, out.data(), 64, ACL_MEMCPY_HOST_TO_DEVICE));
  check(aclrtMemcpy(in.data(), 64, border - 32, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  if (in != out) fail("bytes copied across the border of two blocks changed");
}

// Nanoseconds to create and map, to unmap and free, bytes; nanoseconds to export, and bytes then;
// all per block.
std::vector<double> map_many(size_t count) {
  start_device();
  std::byte* const base = reserve_addresses(count * kGranule);
  std::vector<aclrtDrvMemHandle> blocks(count);
  const size_t bytes_before = private_bytes();

  const Stopwatch map_time;
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = create_block(kGranule);
    map_block(base + i * kGranule, kGranule, blocks[i]);
  }
  const double mapped = map_time.nanoseconds();
  const size_t bytes = private_bytes() - bytes_before;
  check_border(base + count / 2 * kGranule);

  const Stopwatch export_time;
  for (const aclrtDrvMemHandle block : blocks) {
    uint64_t token = 0;
    check(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 1, &token));
  }
  const double exported = export_time.nanoseconds();
  const size_t shared_bytes = private_bytes() - bytes_before;

  const Stopwatch unmap_time;
  for (size_t i = 0; i < count; ++i) {
    check(aclrtUnmapMem(base + i * kGranule));
    check(aclrtFreePhysical(blocks[i]));
  }
  const double unmapped = unmap_time.nanoseconds();
  const auto per_block = [&](double value) { return value / static_cast<double>(count); };
  return {per_block(mapped), per_block(unmapped), per_block(static_cast<double>(bytes)),
          per_block(exported), per_block(static_cast<double>(shared_bytes))};
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("many_blocks", argc, argv);
  const size_t count = report.full_or_smoke<size_t>(32768, 512);
  rlimit files{};
  require(getrlimit(RLIMIT_NOFILE, &files) == 0, "getrlimit");
  files.rlim_cur = files.rlim_max = std::min<rlim_t>(files.rlim_max, 1024);
  require(setrlimit(RLIMIT_NOFILE, &files) == 0, "setrlimit");
  setenv("UNDERSTUDY_MEMORY", "80G", 1);

  const std::vector<double> figures =
      medians_in_children(report.full_or_smoke(11U, 1U), [&] { return map_many(count); });
  report.add({"create and map", kNanoseconds, figures[0], {}, {}});
  report.add({"unmap and free", kNanoseconds, figures[1], {}, {}});
  report.add({"heap", kBytes, figures[2], {}, {.at_most = 150}});
  report.add({"export", kNanoseconds, figures[3], {}, {}});
  report.add({"heap when all are exported", kBytes, figures[4], {}, {.at_most = 150}});
}
