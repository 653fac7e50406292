// SPDX-License-Identifier: Apache-2.0
//
// Long random sequences of memory calls, valid and not, made on the real library and on a model of
// it; codes, answers, free memory and the bytes at both ends of every block must agree.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <vector>

#include "rules/live_mapping.h"
#include "stress/memory_model.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr int kSteps = 20000;
constexpr size_t kRememberedObjects = 48;
constexpr size_t kMostReservations = 24;
constexpr size_t kMostHostBlocks = 6;

class RandomRun {
 public:
  RandomRun(uint64_t seed, size_t device_bytes)
      : seed_(seed), random_(seed), model_(device_bytes) {}

  void run() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      make_a_call();
      expect_equal(model_.free_on(Home::kDevice0), free_bytes(ACL_HBM_MEM_HUGE), "free memory");
    }
  }

  void take_everything_down() {
    while (!model_.mappings().empty()) unmap_at(model_.mappings().begin()->first);
    while (!model_.blocks().empty()) free_handle(model_.blocks().begin()->first);
    while (!model_.reservations().empty()) release_at(model_.reservations().begin()->first);
  }

 private:
  using Call = void (RandomRun::*)();

  void make_a_call() {
    static constexpr Call kCalls[] = {&RandomRun::create,        &RandomRun::create,
                                      &RandomRun::free_any,      &RandomRun::free_any,
                                      &RandomRun::free_any,      &RandomRun::reserve_some,
                                      &RandomRun::release_any,   &RandomRun::map_fitting,
                                      &RandomRun::map_fitting,   &RandomRun::map_fitting,
                                      &RandomRun::map_any,       &RandomRun::unmap_any,
                                      &RandomRun::unmap_any,     &RandomRun::retain_any,
                                      &RandomRun::write_any,     &RandomRun::write_any,
                                      &RandomRun::set_any,       &RandomRun::read_any,
                                      &RandomRun::read_any,      &RandomRun::copy_within,
                                      &RandomRun::ask_about_any, &RandomRun::read_access_of_any};
    (this->*kCalls[pick(std::size(kCalls))])();
  }

  // ---- Choices ----

  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  bool one_in(size_t count) { return pick(count) == 0; }
  template <typename Objects>
  auto one_of(const Objects& objects) {
    return std::next(objects.begin(), static_cast<ptrdiff_t>(pick(objects.size())));
  }

  static void remember(std::vector<uint64_t>& objects, uint64_t object) {
    if (objects.size() == kRememberedObjects) objects.erase(objects.begin());
    objects.push_back(object);
  }

  // A handle that was given out at some time; it may be long gone.
  uint64_t any_handle() {
    if (handles_.empty() || one_in(50)) return 0x1234567;
    return handles_[pick(handles_.size())];
  }

  // A handle of a living block, though perhaps freed already, half of the time.
  uint64_t likely_handle() {
    const auto& blocks = model_.blocks();
    return blocks.empty() || one_in(2) ? any_handle() : one_of(blocks)->first;
  }

  // An address in or near a range that was reserved at some time: mostly at a granule.
  uint64_t any_place() {
    if (places_.empty()) return number(this) / kGranule * kGranule;
    const uint64_t granule = places_[pick(places_.size())] + pick(10) * kGranule;
    return one_in(12) ? granule + kPage : granule;
  }

  // A granule of a live reservation half of the time.
  uint64_t likely_place() {
    const auto& reservations = model_.reservations();
    if (reservations.empty() || one_in(2)) return any_place();
    const auto& [start, size] = *one_of(reservations);
    return start + pick(size / kGranule) * kGranule;
  }

  // The start of a live mapping half of the time.
  uint64_t likely_mapping() {
    const auto& mappings = model_.mappings();
    return mappings.empty() || one_in(2) ? any_place() : one_of(mappings)->first;
  }

  // Where copies go: within live reservations, as an address of none may be plain host memory. In
  // the first page of a mapping, in its last one, or across its end.
  struct Range {
    uint64_t start;
    size_t count;
  };
  std::optional<Range> some_range() {
    const auto& mappings = model_.mappings();
    if (mappings.empty()) return std::nullopt;
    const auto& [start, mapping] = *one_of(mappings);
    // The current context is device 0's, and only copies of its memory and the host's are modelled.
    if (mapping.block->home == Home::kDevice1) return std::nullopt;
    const uint64_t end = start + mapping.size;
    switch (pick(4)) {
      case 0:
        return Range{start, kPage};
      case 1:
        return Range{end - kPage, kPage};
      case 2:
        return Range{start + pick(kPage - 100), 1 + pick(100)};
      default:
        return Range{end - 1 - pick(64), 2 + pick(128)};
    }
  }

  // ---- Calls ----

  void create() {
    static constexpr Home kHomes[] = {Home::kDevice0, Home::kDevice0, Home::kDevice0,
                                      Home::kDevice1, Home::kHost};
    const Home home = kHomes[pick(std::size(kHomes))];
    if (home == Home::kHost && host_blocks() >= kMostHostBlocks) return;
    const size_t size = kGranule * (1 + pick(4));
    const aclrtPhysicalMemProp property =
        home == Home::kHost ? host_property()
                            : block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE,
                                             home == Home::kDevice1 ? 1 : 0);
    aclrtDrvMemHandle handle = nullptr;
    const aclError code = aclrtMallocPhysical(&handle, size, &property, 0);
    if (!expect_equal(model_.create(home, size), code, "create") || code != ACL_SUCCESS) return;
    expect_equal(false, model_.is_live(number(handle)), "handle given out twice");
    model_.created(number(handle), home, size);
    remember(handles_, number(handle));
  }

  void free_any() { free_handle(likely_handle()); }
  void free_handle(uint64_t handle) {
    expect_equal(model_.free_block(handle), aclrtFreePhysical(address(handle)), "free");
  }

  void reserve_some() {
    if (model_.reservations().size() >= kMostReservations) return;
    const size_t size = one_in(4) ? 1 + pick(kGranule) : kGranule * (1 + pick(8));
    void* range = nullptr;
    const aclError code = aclrtReserveMemAddress(&range, size, 0, nullptr, pick(2));
    if (!expect_equal(ACL_SUCCESS, code, "reserve")) return;
    expect_equal(true, model_.is_apart(number(range), size), "reservation is apart from others");
    model_.reserved(number(range), size);
    remember(places_, number(range));
  }

  void release_any() { release_at(any_place()); }
  void release_at(uint64_t start) {
    expect_equal(model_.release(start), aclrtReleaseMemAddress(address(start)), "release");
  }

  void map_any() {
    const size_t size = kGranule * (1 + pick(4));
    map_at(any_place(), size, any_handle());
  }
  // The size is right, so that most refusals come from the place.
  void map_fitting() {
    const auto& blocks = model_.blocks();
    if (blocks.empty()) return;
    const MemoryModel::Block& block = *one_of(blocks)->second;
    map_at(likely_place(), block.size, block.handle);
  }
  void map_at(uint64_t start, size_t size, uint64_t handle) {
    expect_equal(model_.map(start, size, handle),
                 aclrtMapMem(address(start), size, 0, address(handle), 0), "map");
  }

  void unmap_any() { unmap_at(likely_mapping()); }
  void unmap_at(uint64_t start) {
    expect_equal(model_.unmap(start), aclrtUnmapMem(address(start)), "unmap");
  }

  void retain_any() {
    const uint64_t start = likely_mapping();
    aclrtDrvMemHandle handle = nullptr;
    const aclError code = aclrtMemRetainAllocationHandle(address(start), &handle);
    const std::optional<uint64_t> expected = model_.retain(start);
    expect_equal(expected ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID, code, "retain");
    expect_equal(expected.value_or(0), number(handle), "retained handle");
  }

  void write_any() {
    const std::optional<Range> range = some_range();
    if (!range) return;
    const std::vector<uint8_t> bytes = pattern(range->count, static_cast<uint8_t>(random_()));
    const aclError code = aclrtMemcpy(address(range->start), bytes.size(), bytes.data(),
                                      bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE);
    if (expect_usable(*range, code, "write")) store(range->start, bytes);
  }

  void set_any() {
    const std::optional<Range> range = some_range();
    if (!range) return;
    const auto value = static_cast<uint8_t>(random_());
    const aclError code = aclrtMemset(address(range->start), range->count, value, range->count);
    if (expect_usable(*range, code, "set")) {
      store(range->start, std::vector<uint8_t>(range->count, value));
    }
  }

  void read_any() {
    const std::optional<Range> range = some_range();
    if (!range) return;
    std::vector<uint8_t> bytes(range->count, 0x5a);
    const aclError code = aclrtMemcpy(bytes.data(), bytes.size(), address(range->start),
                                      bytes.size(), ACL_MEMCPY_DEVICE_TO_HOST);
    if (expect_usable(*range, code, "read")) {
      expect_equal(true, matches(range->start, bytes), "bytes read");
    } else {
      expect_equal(true, bytes == std::vector<uint8_t>(range->count, 0x5a), "refused read");
    }
  }

  // From the first page of one mapping to the last page of another.
  void copy_within() {
    const std::optional<MemoryModel::Found> from = model_.mapping_at(likely_mapping());
    const std::optional<MemoryModel::Found> to = model_.mapping_at(likely_mapping());
    if (!from || !to || from->mapping->block->home == Home::kDevice1 ||
        to->mapping->block->home == Home::kDevice1) {
      return;
    }
    const uint64_t target = to->start + to->mapping->size - kPage;
    const aclError code = aclrtMemcpy(address(target), kPage, address(from->start), kPage,
                                      ACL_MEMCPY_DEVICE_TO_DEVICE);
    expect_equal(ACL_SUCCESS, code, "copy within the device or the host");
    to->mapping->block->last = from->mapping->block->first;
  }

  void ask_about_any() {
    const uint64_t place = likely_mapping() + pick(3) * kPage;
    const std::optional<MemoryModel::Found> found = model_.mapping_at(place);
    void* base = address(1);
    size_t size = 1;
    const aclError code = aclrtMemGetAddressRange(address(place), &base, &size);
    expect_equal(found ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID, code, "address range");
    expect_equal(found ? found->start : 0, number(base), "base of the address range");
    expect_equal(found ? found->mapping->size : 1, size, "size of the address range");

    aclrtPtrAttributes attributes;
    expect_equal(ACL_SUCCESS, aclrtPointerGetAttributes(address(place), &attributes), "attributes");
    expect_equal(expected_type(found), attributes.location.type, "location");
  }

  void read_access_of_any() {
    const uint64_t start = likely_mapping();
    const auto found = model_.mappings().find(start);
    const bool exists = found != model_.mappings().end();
    const bool owned = exists && found->second.block->home == Home::kDevice0;
    aclrtMemLocation device_0 = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    uint64_t flag = 77;
    const aclError code = aclrtMemGetAccess(address(start), &device_0, &flag);
    expect_equal(exists ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID, code, "access");
    expect_equal(uint64_t{exists ? (owned ? 3u : 0u) : 77u}, flag, "access flag");
  }

  // ---- Bytes ----

  void store(uint64_t start, const std::vector<uint8_t>& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const MemoryModel::Byte byte = model_.byte_at(start + i);
      if (byte.page == nullptr) continue;
      // A page whose other bytes are undefined becomes known only when written as a whole.
      if (!*byte.page && byte.offset == 0 && bytes.size() - i >= kPage) byte.page->emplace(kPage);
      if (*byte.page) (**byte.page)[byte.offset] = bytes[i];
    }
  }

  bool matches(uint64_t start, const std::vector<uint8_t>& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const MemoryModel::Byte byte = model_.byte_at(start + i);
      if (byte.page != nullptr && *byte.page && (**byte.page)[byte.offset] != bytes[i])
        return false;
    }
    return true;
  }

  // ---- Comparing ----

  template <typename Value>
  bool expect_equal(const Value& expected, const Value& actual, const char* what) {
    if (expected == actual) return true;
    ADD_FAILURE() << what << " differs at step " << step_ << " of seed " << seed_
                  << ": the model says " << expected << ", the library " << actual << "; "
                  << recent_error();
    return false;
  }

  bool expect_usable(const Range& range, aclError code, const char* what) {
    const bool usable = model_.is_usable(range.start, range.count);
    expect_equal(usable ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID, code, what);
    return usable;
  }

  static aclrtMemLocationType expected_type(const std::optional<MemoryModel::Found>& found) {
    if (!found) return ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    return found->mapping->block->home == Home::kHost ? ACL_MEM_LOCATION_TYPE_HOST
                                                      : ACL_MEM_LOCATION_TYPE_DEVICE;
  }

  size_t host_blocks() const {
    return static_cast<size_t>(
        std::count_if(model_.blocks().begin(), model_.blocks().end(),
                      [](const auto& entry) { return entry.second->home == Home::kHost; }));
  }

  const uint64_t seed_;
  int step_ = 0;
  std::mt19937_64 random_;
  MemoryModel model_;
  std::vector<uint64_t> handles_;
  std::vector<uint64_t> places_;
};

// Small devices, so that memory runs out often and is used again at once.
void compare_with_the_model(uint64_t seed) {
  const DeviceSession second(1);
  const MemoryFigures before_on_1 = memory_figures();
  const DeviceSession first(0);
  const MemoryFigures before_on_0 = memory_figures();

  RandomRun run(seed, free_bytes(ACL_HBM_MEM_HUGE));
  run.run();
  run.take_everything_down();

  EXPECT_EQ(memory_figures(), before_on_0);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(memory_figures(), before_on_1);
}

#define US_SMALL_DEVICES() \
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "64M"}, {"UNDERSTUDY_DEVICES", "2"})

TEST(RandomModel, AgreesWithSeed1) {
  US_SMALL_DEVICES();
  compare_with_the_model(1);
}

TEST(RandomModel, AgreesWithSeed2) {
  US_SMALL_DEVICES();
  compare_with_the_model(2);
}

TEST(RandomModel, AgreesWithSeed3) {
  US_SMALL_DEVICES();
  compare_with_the_model(3);
}

TEST(RandomModel, AgreesWithSeed20260101) {
  US_SMALL_DEVICES();
  compare_with_the_model(20260101);
}

#undef US_SMALL_DEVICES

}  // namespace
}  // namespace understudy_test
