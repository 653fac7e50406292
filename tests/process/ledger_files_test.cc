// SPDX-License-Identifier: Apache-2.0
//
// The directory of a server and the ledger in it, found in a bad state: what nobody uses is made
// anew, what is not a ledger at all or not private is refused by name. Nothing crashes or hangs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <ostream>
#include <random>
#include <string>

#include "process/ledger_objects.h"

namespace understudy_test::ledger {
namespace {

namespace fs = std::filesystem;

US_PEER(LedgerFilesUser) { serve_memory(channel); }
US_PEER(LedgerFilesJoiner) { serve_first_call(channel); }

std::string random_bytes(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(generator());
  return bytes;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  EXPECT_EQ(chmod(path.c_str(), 0600), 0);
}

// Writes over what is there, from an offset on.
void overwrite(const std::string& path, size_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
  EXPECT_TRUE(file.good()) << path;
}

// The first call of a new process there.
Outcome join(const std::string& directory, FirstCall call = FirstCall::kSetDevice) {
  Peer joiner(LedgerFilesJoiner, {{kServerVariable, directory}});
  return outcome_of(joiner, call);
}

// Two processes meet there and share an empty device.
void expect_good_server(const std::string& directory) {
  const Outcome first = join(directory);
  ASSERT_EQ(first.code, ACL_SUCCESS) << first.message();
  User one(LedgerFilesUser, {{kServerVariable, directory}});
  User two(LedgerFilesUser, {{kServerVariable, directory}});
  const Figures empty = one.figures();
  expect_all_free(empty);
  EXPECT_EQ(one.take(20 * kMiB), ACL_SUCCESS);
  EXPECT_EQ(two.figures(), less(empty, 20 * kMiB));
  EXPECT_EQ(two.take_all(), empty.huge_total / kPiece - 10);
  EXPECT_EQ(one.take(), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

void expect_refused(const std::string& directory, const std::string& named) {
  for (const FirstCall call : kFirstCalls) {
    SCOPED_TRACE(static_cast<int>(call));
    const Outcome outcome = join(directory, call);
    EXPECT_NE(outcome.code, ACL_SUCCESS);
    EXPECT_TRUE(outcome.names(named)) << "no " << named << " in: " << outcome.message();
  }
}

// ---- A file that is no good ----

struct Damage {
  const char* name;
  std::function<void(const std::string& ledger)> apply;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class LedgerDamage : public testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(
    , LedgerDamage,
    testing::Values(
        Damage{"truncated_to_0", [](const std::string& path) { fs::resize_file(path, 0); }},
        Damage{"truncated_to_1", [](const std::string& path) { fs::resize_file(path, 1); }},
        Damage{"truncated_to_100", [](const std::string& path) { fs::resize_file(path, 100); }},
        Damage{"truncated_to_half",
               [](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }},
        Damage{"longer_by_a_byte",
               [](const std::string& path) { fs::resize_file(path, fs::file_size(path) + 1); }},
        Damage{"very_long", [](const std::string& path) { fs::resize_file(path, kGiB); }},
        Damage{"of_zeros",
               [](const std::string& path) {
                 write_file(path, std::string(fs::file_size(path), '\0'));
               }},
        Damage{"of_ones",
               [](const std::string& path) {
                 write_file(path, std::string(fs::file_size(path), '\xFF'));
               }},
        Damage{"random_and_short",
               [](const std::string& path) { write_file(path, random_bytes(4096, 1)); }},
        Damage{"random_as_a_whole",
               [](const std::string& path) {
                 write_file(path, random_bytes(fs::file_size(path), 2));
               }},
        Damage{"random_behind_its_first_word",
               [](const std::string& path) {
                 overwrite(path, 8, random_bytes(fs::file_size(path) - 8, 3));
               }},
        Damage{"random_behind_its_first_line",
               [](const std::string& path) {
                 overwrite(path, 64, random_bytes(fs::file_size(path) - 64, 4));
               }},
        Damage{"random_behind_its_first_page",
               [](const std::string& path) {
                 const size_t size = fs::file_size(path);
                 if (size > 4096) overwrite(path, 4096, random_bytes(size - 4096, 5));
               }}),
    [](const testing::TestParamInfo<Damage>& parameter) {
      return std::string(parameter.param.name);
    });

TEST_P(LedgerDamage, IsMendedByTheNextProcess) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory directory;
  const std::string ledger = directory.path() + "/ledger";
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    {
      User earlier(LedgerFilesUser, {{kServerVariable, directory.path()}});
      EXPECT_EQ(earlier.take(20 * kMiB), ACL_SUCCESS);
      if (by_signal) earlier.peer().kill();
    }
    ASSERT_TRUE(fs::is_regular_file(ledger));
    GetParam().apply(ledger);
    expect_good_server(directory.path());
  }
}

TEST(LedgerFiles, AFileThatNeverWasALedgerIsMadeOne) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  for (const size_t size : {0u, 1u, 100u, 4096u, 1u << 20}) {
    SCOPED_TRACE(size);
    const ServerDirectory directory;
    write_file(directory.path() + "/ledger", random_bytes(size, 6));
    expect_good_server(directory.path());
  }
}

TEST(LedgerFiles, ARemovedDirectoryEntryHarmsNobodyThatComesLater) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory directory;
  EXPECT_EQ(join(directory.path()).code, ACL_SUCCESS);
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path())) {
    fs::remove_all(entry.path());
  }
  expect_good_server(directory.path());
}

// ---- Something else in its place ----

struct Obstacle {
  const char* name;
  std::function<void(const std::string& ledger, const std::string& target)> put;
};

void PrintTo(const Obstacle& obstacle, std::ostream* out) { *out << obstacle.name; }

class LedgerObstacle : public testing::TestWithParam<Obstacle> {};
INSTANTIATE_TEST_SUITE_P(
    , LedgerObstacle,
    testing::Values(
        Obstacle{"directory", [](const std::string& ledger,
                                 const std::string&) { fs::create_directory(ledger); }},
        Obstacle{"link",
                 [](const std::string& ledger, const std::string& target) {
                   write_file(target, "not yours");
                   fs::create_symlink(target, ledger);
                 }},
        Obstacle{"link_to_nothing",
                 [](const std::string& ledger, const std::string& target) {
                   fs::create_symlink(target, ledger);
                 }},
        Obstacle{"link_to_itself", [](const std::string& ledger,
                                      const std::string&) { fs::create_symlink(ledger, ledger); }},
        Obstacle{"fifo", [](const std::string& ledger,
                            const std::string&) { EXPECT_EQ(mkfifo(ledger.c_str(), 0600), 0); }}),
    [](const testing::TestParamInfo<Obstacle>& parameter) {
      return std::string(parameter.param.name);
    });

TEST_P(LedgerObstacle, IsRefusedByNameAndLeftAlone) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory directory;
  const ServerDirectory elsewhere;
  const std::string ledger = directory.path() + "/ledger";
  const std::string target = elsewhere.path() + "/target";
  GetParam().put(ledger, target);
  const fs::file_type type = fs::symlink_status(ledger).type();
  const bool had_target = fs::exists(target);
  expect_refused(directory.path(), ledger);
  EXPECT_EQ(fs::symlink_status(ledger).type(), type);
  EXPECT_EQ(fs::exists(target), had_target);
  if (had_target) {
    EXPECT_EQ(contents(target), "not yours");
  }
  fs::remove_all(ledger);
  expect_good_server(directory.path());
}

// ---- The directory itself ----

TEST(LedgerDirectory, OneThatOthersMayWriteToIsRefused) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory directory;
  for (const mode_t mode : {0777u, 01777u}) {
    SCOPED_TRACE(mode);
    ASSERT_EQ(chmod(directory.path().c_str(), mode), 0);
    expect_refused(directory.path(), directory.path());
    EXPECT_TRUE(fs::is_empty(directory.path()));
  }
  ASSERT_EQ(chmod(directory.path().c_str(), 0700), 0);
  expect_good_server(directory.path());
}

TEST(LedgerDirectory, OneOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory directory;
  ASSERT_EQ(chown(directory.path().c_str(), 12345, static_cast<gid_t>(-1)), 0);
  expect_refused(directory.path(), directory.path());
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(LedgerDirectory, AFileInItsPlaceIsRefused) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory parent;
  const std::string path = parent.path() + "/server";
  write_file(path, "not yours");
  expect_refused(path, path);
  EXPECT_EQ(contents(path), "not yours");
}

// Whether one that is missing is made is not said. If so, it is private.
TEST(LedgerDirectory, OneThatIsMissingIsMadePrivateOrRefused) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const ServerDirectory parent;
  const std::string path = parent.path() + "/server";
  const Outcome outcome = join(path);
  if (outcome.code == ACL_SUCCESS) {
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077u, 0u);
    expect_good_server(path);
  } else {
    EXPECT_TRUE(outcome.names(path)) << outcome.message();
  }
  expect_refused("/dev/null/no/such/directory", "/dev/null");
}

}  // namespace
}  // namespace understudy_test::ledger
