// SPDX-License-Identifier: Apache-2.0
//
// Two programs share the weights of a model, and a third one only watches. The loader puts the
// weights into device memory block by block and exports them to the worker alone. The worker
// imports all blocks, maps them side by side, checks every byte, and changes some that the loader
// then sees. Then the loader ends: the worker goes on with the weights, which are paid for until it
// lets go, too. Written against the public headers alone, it runs unchanged on Ascend devices.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBlock = 20 * kMiB;
constexpr size_t kBlocks = 16;
constexpr size_t kChanged = 5;  // the block that the worker changes

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

// ---- A line between two programs; on a real machine a socket or a file would do.

class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}

  template <typename T>
  void send(const T& value) const {
    if (::send(socket_, &value, sizeof value, MSG_NOSIGNAL) != sizeof value) std::exit(1);
  }
  template <typename T>
  T receive() const {
    T value{};
    if (recv(socket_, &value, sizeof value, MSG_WAITALL) != sizeof value) std::exit(1);
    return value;
  }
  void wait_for_turn() const { (void)receive<char>(); }
  void give_turn() const { send('x'); }

 private:
  int socket_;
};

// ---- What the programs have in common.

std::vector<uint32_t> weights_of(size_t block) {
  std::vector<uint32_t> weights(kBlock / sizeof(uint32_t));
  std::iota(weights.begin(), weights.end(), static_cast<uint32_t>(block << 24));
  return weights;
}

std::byte* reserve(size_t size) {
  void* base = nullptr;
  CHECK(aclrtReserveMemAddress(&base, size, 0, nullptr, 0));
  return static_cast<std::byte*>(base);
}

bool holds(const std::byte* block, const std::vector<uint32_t>& expected) {
  std::vector<uint32_t> read(expected.size());
  CHECK(aclrtMemcpy(read.data(), kBlock, block, kBlock, ACL_MEMCPY_DEVICE_TO_HOST));
  return read == expected;
}

// ---- The three programs. Each says what it is in every line it prints.

void run_loader(const Line& line) {
  CHECK(aclrtSetDevice(0));
  const auto worker = line.receive<int32_t>();
  std::byte* const base = reserve(kBlocks * kBlock);
  aclrtPhysicalMemProp property = {};
  property.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  property.memAttr = ACL_HBM_MEM_HUGE;
  property.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  std::array<uint64_t, kBlocks> tokens{};
  for (size_t i = 0; i < kBlocks; ++i) {
    aclrtDrvMemHandle block = nullptr;
    CHECK(aclrtMallocPhysical(&block, kBlock, &property, 0));
    CHECK(aclrtMapMem(base + i * kBlock, kBlock, 0, block, 0));
    const std::vector<uint32_t> weights = weights_of(i);
    CHECK(
        aclrtMemcpy(base + i * kBlock, kBlock, weights.data(), kBlock, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 0, &tokens[i]));
    int32_t importer = worker;
    CHECK(aclrtMemSetPidToShareableHandle(tokens[i], &importer, 1));
  }
  std::printf("loader   %zu blocks of %zu MiB are exported, to process %d alone\n", kBlocks,
              kBlock / kMiB, worker);
  std::fflush(stdout);
  line.send(tokens);
  line.wait_for_turn();
  std::vector<uint32_t> changed = weights_of(kChanged);
  std::fill(changed.begin(), changed.end(), 7);
  std::printf("loader   sees what the worker wrote into block %zu: %s\n", kChanged,
              holds(base + kChanged * kBlock, changed) ? "yes" : "NO");
  std::printf("loader   ends without a word\n");
  std::fflush(stdout);
  _exit(0);
}

void run_worker(const Line& loader, const Line& director) {
  CHECK(aclrtSetDevice(0));
  int32_t own = 0;
  CHECK(aclrtDeviceGetBareTgid(&own));
  loader.send(own);
  const auto tokens = loader.receive<std::array<uint64_t, kBlocks>>();
  std::byte* const base = reserve(kBlocks * kBlock);
  bool all_right = true;
  for (size_t i = 0; i < kBlocks; ++i) {
    aclrtDrvMemHandle block = nullptr;
    CHECK(aclrtMemImportFromShareableHandle(tokens[i], 0, &block));
    CHECK(aclrtMapMem(base + i * kBlock, kBlock, 0, block, 0));
    CHECK(aclrtFreePhysical(block));  // the mapping keeps it
    all_right = all_right && holds(base + i * kBlock, weights_of(i));
  }
  std::printf("worker   has all %zu MiB side by side, every byte as loaded: %s\n",
              kBlocks * kBlock / kMiB, all_right ? "yes" : "NO");
  const std::vector<uint32_t> changed(kBlock / sizeof(uint32_t), 7);
  CHECK(aclrtMemcpy(base + kChanged * kBlock, kBlock, changed.data(), kBlock,
                    ACL_MEMCPY_HOST_TO_DEVICE));
  std::fflush(stdout);
  director.give_turn();
  director.wait_for_turn();
  loader.give_turn();
  director.wait_for_turn();  // the loader has ended
  std::printf("worker   still reads them, now that the loader is gone: %s\n",
              holds(base, weights_of(0)) ? "yes" : "NO");
  std::fflush(stdout);
  director.give_turn();
  director.wait_for_turn();
  for (size_t i = 0; i < kBlocks; ++i) CHECK(aclrtUnmapMem(base + i * kBlock));
  std::printf("worker   lets go of them\n");
  std::fflush(stdout);
  director.give_turn();
  director.wait_for_turn();
  _exit(0);
}

// Uses no memory; prints what is free on the device whenever it is its turn.
void run_watcher(const Line& line) {
  CHECK(aclrtSetDevice(0));
  size_t before = 0;
  while (true) {
    line.wait_for_turn();
    size_t free = 0;
    size_t total = 0;
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
    if (before == 0) before = free;
    const size_t used = (before - free) / kMiB;
    std::printf("watcher  %5zu MiB in use  [%-20s]\n", used,
                std::string(used * 20 / (2 * kBlocks * kBlock / kMiB), '#').c_str());
    std::fflush(stdout);
    line.give_turn();
  }
}

struct Ends {
  int here;
  int there;
};

Ends make_line() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(1);
  return {ends[0], ends[1]};
}

template <typename Program>
pid_t start(Program program) {
  const pid_t id = fork();
  if (id == 0) {
    program();
    _exit(0);
  }
  return id;
}

bool ended_well(pid_t id) {
  int status = 0;
  return waitpid(id, &status, 0) == id && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

// The director only says whose turn it is, and uses no device.
int main() {
  const Ends between = make_line();  // loader and worker
  const Ends to_worker = make_line();
  const Ends to_watcher = make_line();
  const pid_t watcher = start([&] { run_watcher(Line(to_watcher.there)); });
  const pid_t worker = start([&] { run_worker(Line(between.there), Line(to_worker.there)); });
  const Line worker_line(to_worker.here);
  const Line watcher_line(to_watcher.here);
  const auto look = [&] {
    watcher_line.give_turn();
    watcher_line.wait_for_turn();
  };
  look();
  const pid_t loader = start([&] { run_loader(Line(between.here)); });
  worker_line.wait_for_turn();
  look();
  worker_line.give_turn();
  const bool loaded = ended_well(loader);
  look();
  worker_line.give_turn();
  worker_line.wait_for_turn();
  worker_line.give_turn();
  worker_line.wait_for_turn();
  look();
  worker_line.give_turn();
  const bool worked = ended_well(worker);
  kill(watcher, SIGTERM);
  waitpid(watcher, nullptr, 0);
  return loaded && worked ? 0 : 1;
}
