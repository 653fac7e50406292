// SPDX-License-Identifier: Apache-2.0
//
// A process that closes a descriptor of the ledger is alive: the kernel says so, whatever became of
// its locks. Its memory keeps its bytes and its charges, whatever the other processes do meanwhile.
// To open and close the ledger file is enough to lose the POSIX locks of a process on it; to close
// every descriptor is what many programs do before they start another one.
// Covers: IPC-22, SHARE-38, SHARE-40.
#include <fcntl.h>
#include <unistd.h>

#include <ostream>
#include <string>

#include "acl/acl_understudy.h"
#include "process/sharing_objects.h"

namespace understudy_test::share {
namespace {

constexpr size_t kBlockSize = 2 * kGranule;
constexpr size_t kLargeSize = 3 * kGranule;
constexpr size_t kSmallSize = 4 * kKiB;

// What the careless process has. Shared: a block and a small allocation. Its own: all the rest.
struct Holdings {
  Offer block;
  KeyOffer small;
  View own_block;
  void* own_large;
  void* own_small;
};

void fill(void* start, size_t size, uint8_t seed) { copy_in(start, pattern(size, seed)); }
bool is_filled(void* start, size_t size, uint8_t seed) {
  return copy_out(start, size) == pattern(size, seed);
}
void* allocate(size_t size, uint8_t seed) {
  void* start = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&start, size, ACL_MEM_MALLOC_HUGE_FIRST));
  fill(start, size, seed);
  return start;
}

Holdings take_holdings() {
  Holdings holdings{};
  holdings.block = offer_block(kBlockSize, kEveryone, 1);
  holdings.small = offer_key(kSmallSize, 2);
  const aclrtDrvMemHandle handle = create_block(kBlockSize);
  holdings.own_block = {handle, map_anew(handle, kBlockSize), kBlockSize};
  fill(holdings.own_block.start, kBlockSize, 3);
  holdings.own_large = allocate(kLargeSize, 4);
  holdings.own_small = allocate(kSmallSize, 5);
  return holdings;
}
// Every byte that it has is as it was, and can be written.
void check_holdings(Holdings holdings) {
  EXPECT_TRUE(is_marked(holdings.block.view.start, kBlockSize, 1));
  EXPECT_TRUE(is_marked(holdings.small.start, kSmallSize, 2));
  const auto check = [](void* start, size_t size, uint8_t seed) {
    EXPECT_TRUE(is_filled(start, size, seed)) << "of " << size << " bytes";
    fill(start, size, 99);
    EXPECT_TRUE(is_filled(start, size, 99)) << "of " << size << " bytes, written anew";
    fill(start, size, seed);
  };
  check(holdings.own_block.start, kBlockSize, 3);
  check(holdings.own_large, kLargeSize, 4);
  check(holdings.own_small, kSmallSize, 5);
}
void give_back_holdings(Holdings holdings) {
  close_view(holdings.block.view);
  EXPECT_SUCCESS(aclrtIpcMemClose(holdings.small.key.get()));
  EXPECT_SUCCESS(aclrtFree(holdings.small.start));
  close_view(holdings.own_block);
  EXPECT_SUCCESS(aclrtFree(holdings.own_large));
  EXPECT_SUCCESS(aclrtFree(holdings.own_small));
}

struct Used {
  size_t huge;
  size_t normal;
  friend bool operator==(const Used&, const Used&) = default;
};
void PrintTo(const Used& used, std::ostream* out) {
  *out << used.huge << " bytes in huge pages, " << used.normal << " in normal ones";
}
Used used() {
  size_t free = 0;
  Used seen{};
  size_t total = 0;
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM_HUGE, &free, &total));
  seen.huge = total - free;
  EXPECT_SUCCESS(aclrtGetMemInfo(ACL_HBM_MEM_NORMAL, &free, &total));
  seen.normal = total - free;
  return seen;
}

// What makes a process careless.
void open_and_close_the_ledger() {
  const std::string path = std::string(aclUnderstudyRuntimeDirectory()) + "/ledger";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0) << path;
  close(file);
}
void do_nothing() {}  // so that the tests themselves are tested
void close_unknown_descriptors() { close_range(4, ~0U, 0); }  // 3 leads to the test

using Carelessness = void (*)();

struct NamedCarelessness {
  const char* name;
  Carelessness commit;
};
void PrintTo(const NamedCarelessness& carelessness, std::ostream* out) {
  *out << carelessness.name;
}

class LedgerDescriptor : public testing::TestWithParam<NamedCarelessness> {};
INSTANTIATE_TEST_SUITE_P(
    , LedgerDescriptor,
    testing::Values(NamedCarelessness{"Nothing", do_nothing},
                    NamedCarelessness{"OpenAndClose", open_and_close_the_ledger},
                    NamedCarelessness{"CloseRange", close_unknown_descriptors}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

// Imports what the careless one shares, if that works, and ends the import.
void import_and_end(Holdings holdings) {
  aclrtDrvMemHandle handle = nullptr;
  if (aclrtMemImportFromShareableHandle(holdings.block.token, 0, &handle) == ACL_SUCCESS) {
    const View view{handle, map_anew(handle, kBlockSize), kBlockSize};
    EXPECT_TRUE(is_marked(view.start, kBlockSize, 1));
    close_view(view);
  }
  void* start = nullptr;
  if (aclrtIpcMemImportByKey(&start, holdings.small.key.get(), ipc::kPlainImport) == ACL_SUCCESS) {
    EXPECT_TRUE(is_marked(start, kSmallSize, 2));
    EXPECT_SUCCESS(aclrtIpcMemClose(holdings.small.key.get()));
  }
  (void)recent_error();
}

TEST_P(LedgerDescriptor, IPC_22_SHARE_38_SHARE_40_OneWhoClosesItKeepsItsMemoryAndItsCharges) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"}, {"UNDERSTUDY_MEMORY", "1G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_EQ(used(), (Used{0, 0}));
  Remote careless;
  const Holdings holdings = careless.call(take_holdings);
  const Used taken = used();
  Remote importer;
  // One import that began before, and several afterwards.
  const View view = importer.call(import_view, holdings.block.token, kBlockSize, 0);
  void* const small = importer.call(import_key, holdings.small.key);
  careless.call(GetParam().commit);
  EXPECT_EQ(used(), taken);
  EXPECT_EQ(importer.call(used), taken);

  EXPECT_TRUE(importer.call(is_marked, view.start, kBlockSize, uint8_t{1}));
  EXPECT_TRUE(importer.call(is_marked, small, kSmallSize, uint8_t{2}));
  importer.call(close_key, holdings.small.key);
  importer.call(close_view, view);
  careless.call(check_holdings, holdings);
  {
    SCOPED_TRACE("a process that imports and is killed");
    Remote killed;
    killed.call(import_and_end, holdings);
    (void)killed.call(offer_block, kBlockSize, kEveryone, uint8_t{8});
    killed.kill();
  }
  EXPECT_EQ(used(), taken);
  careless.call(check_holdings, holdings);
  {
    SCOPED_TRACE("a process that joins and ends");
    Remote late;
    EXPECT_EQ(late.call(used), taken);
    late.call(import_and_end, holdings);
  }
  importer.call(import_and_end, holdings);
  careless.call(check_holdings, holdings);
  EXPECT_EQ(used(), taken);
  EXPECT_EQ(careless.call(used), taken) << "as the process itself sees it";

  careless.call(give_back_holdings, holdings);
  EXPECT_EQ(used(), (Used{0, 0}));
  EXPECT_EQ(careless.call(used), (Used{0, 0}));
}

struct AnyExport {
  aclError code;
  View view;
  uint64_t token;
};
AnyExport export_anew() {
  const aclrtDrvMemHandle handle = create_block(kBlockSize);
  AnyExport made{ACL_SUCCESS, {handle, map_anew(handle, kBlockSize), kBlockSize}, 0};
  mark(made.view.start, kBlockSize, 6);
  made.code =
      aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, kEveryone, &made.token);
  return made;
}

// It can share again. One that has closed every descriptor may be refused, but not left waiting.
TEST_P(LedgerDescriptor, SHARE_38_OneWhoClosesItExportsAgain) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"}, {"UNDERSTUDY_MEMORY", "1G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Remote careless;
  const Holdings holdings = careless.call(take_holdings);
  careless.call(GetParam().commit);
  Remote importer;  // joins, and so looks who lives
  importer.call(import_and_end, holdings);
  const AnyExport made = careless.call(export_anew);
  if (GetParam().commit != close_unknown_descriptors) {
    EXPECT_EQ(made.code, ACL_SUCCESS);
    const View view = importer.call(import_view, made.token, kBlockSize, 0);
    EXPECT_TRUE(importer.call(is_marked, view.start, kBlockSize, uint8_t{6}));
    importer.call(close_view, view);
  }
  careless.call(close_view, made.view);
  careless.call(check_holdings, holdings);
  careless.call(give_back_holdings, holdings);
  EXPECT_EQ(used(), (Used{0, 0}));
}

// The end of a process is noticed all the same.
TEST_P(LedgerDescriptor, SHARE_40_TheEndOfOneWhoClosedItGivesEverythingBack) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"}, {"UNDERSTUDY_MEMORY", "1G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Remote careless;
  const Holdings holdings = careless.call(take_holdings);
  careless.call(GetParam().commit);
  Remote importer;
  importer.call(import_and_end, holdings);
  careless.kill();
  EXPECT_EQ(importer.call(used), (Used{0, 0}));
  EXPECT_EQ(used(), (Used{0, 0}));
}

}  // namespace
}  // namespace understudy_test::share
