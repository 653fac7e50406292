// SPDX-License-Identifier: Apache-2.0
//
// The same requests, served twice: by a cache in front of aclrtMalloc, as frameworks write them,
// and by a stream-ordered pool. Requests come and go with sizes that drift, like the batches of a
// server. The cache keeps every block it ever got, for requests of about its size; the pool cuts
// and joins. Printed is what each of them takes from the device for what is in use.
//
// Written against the public headers alone; pools exist on the A2 generation.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kUnit = 2 * kMiB;
constexpr int kRequests = 4000;
constexpr size_t kMostAlive = 24;

void check(aclError code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s failed with %d: %s\n", call, code, text == nullptr ? "" : text);
  std::exit(1);
}
#define CHECK(call) check((call), #call)

size_t rounded(size_t size) { return (size + kUnit - 1) / kUnit * kUnit; }

// Blocks by size; a request takes the smallest one that is large enough and not twice too large.
class CachedMalloc {
 public:
  void* allocate(size_t size) {
    auto found = free_.lower_bound(size);
    if (found == free_.end() || found->first > 2 * size) {
      void* block = nullptr;
      CHECK(aclrtMallocAlign32(&block, size, ACL_MEM_MALLOC_HUGE_ONLY));
      reserved_ += size;
      return keep(block, size);
    }
    void* const block = found->second;
    const size_t had = found->first;
    free_.erase(found);
    return keep(block, had);
  }
  void release(void* block) { free_.emplace(sizes_[block], block); }
  size_t reserved() const { return reserved_; }
  void clear() {
    for (const auto& [block, size] : sizes_) CHECK(aclrtFree(block));
  }

 private:
  void* keep(void* block, size_t size) {
    sizes_[block] = size;
    return block;
  }

  std::multimap<size_t, void*> free_;
  std::map<void*, size_t> sizes_;
  size_t reserved_ = 0;
};

class Pool {
 public:
  explicit Pool(aclrtStream stream) : stream_(stream) {
    aclrtMemPoolProps props = {};
    props.allocType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    props.handleType = ACL_MEM_HANDLE_TYPE_NONE;
    props.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    CHECK(aclrtMemPoolCreate(&pool_, &props));
  }
  void* allocate(size_t size) {
    void* block = nullptr;
    CHECK(aclrtMemPoolMallocAsync(&block, size, pool_, stream_));
    return block;
  }
  void release(void* block) { CHECK(aclrtMemPoolFreeAsync(block, stream_)); }
  size_t reserved() const { return figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT); }
  size_t reserved_high() const { return figure(ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH); }
  void trim() { CHECK(aclrtMemPoolTrimTo(pool_, 0)); }
  void clear() { CHECK(aclrtMemPoolDestroy(pool_)); }

 private:
  size_t figure(aclrtMemPoolAttr attribute) const {
    uint64_t value = 0;
    CHECK(aclrtMemPoolGetAttr(pool_, attribute, &value));
    return value;
  }

  aclrtStream stream_;
  aclrtMemPool pool_ = nullptr;
};

// One request that is being served, by both.
struct Request {
  size_t size;
  void* cached;
  void* pooled;
};

double mib(size_t bytes) { return static_cast<double>(bytes) / kMiB; }

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  CachedMalloc cache;
  Pool pool(stream);
  std::mt19937_64 random(7);
  std::vector<Request> alive;
  size_t used = 0;
  size_t used_high = 0;

  std::printf("%10s %12s %18s %14s\n", "requests", "in use", "cached aclrtMalloc", "pool");
  for (int n = 1; n <= kRequests; ++n) {
    while (alive.size() >= kMostAlive || (!alive.empty() && random() % 5 < 2)) {
      const size_t which = random() % alive.size();
      cache.release(alive[which].cached);
      pool.release(alive[which].pooled);
      used -= alive[which].size;
      alive[which] = alive.back();
      alive.pop_back();
    }
    // From small requests to large ones, over the life of the server.
    const size_t typical = 4 * kMiB + static_cast<size_t>(n) * 60 * kMiB / kRequests;
    const size_t size = rounded(typical / 2 + random() % typical);
    alive.push_back({size, cache.allocate(size), pool.allocate(size)});
    used += size;
    used_high = used > used_high ? used : used_high;
    if (n % (kRequests / 8) == 0) {
      std::printf("%10d %8.0f MiB %14.0f MiB %10.0f MiB\n", n, mib(used), mib(cache.reserved()),
                  mib(pool.reserved()));
    }
  }
  std::printf(
      "\nat most %.0f MiB were in use at a time; the cache holds %.2f times that, the pool "
      "%.2f times\n",
      mib(used_high), mib(cache.reserved()) / mib(used_high),
      mib(pool.reserved_high()) / mib(used_high));
  for (const Request& request : alive) pool.release(request.pooled);
  CHECK(aclrtSynchronizeStream(stream));
  pool.trim();
  std::printf("after the last request the pool has given back all but %.0f MiB\n",
              mib(pool.reserved()));
  const bool is_better = pool.reserved_high() < cache.reserved();
  pool.clear();
  cache.clear();
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return is_better ? 0 : 1;
}
