// SPDX-License-Identifier: Apache-2.0
//
// Runtime directories that cannot be used: the sentence names the directory, what is wrong with it,
// and the variable that chooses another.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/rule_test.h"
#include "support/server_directory.h"

namespace understudy_test {
namespace {

std::string refusal_of(const std::string& directory) {
  setenv(kServerVariable, directory.c_str(), 1);
  EXPECT_NE(aclrtSetDevice(0), ACL_SUCCESS);
  return recent_error();
}

std::string sentence(const std::string& why) {
  return "aclrtSetDevice: the runtime directory cannot be used: " + why +
         "; set UNDERSTUDY_RUNTIME_DIR to a directory of your own\n";
}

TEST(RuntimeDirectory, ThatCannotBeUsedNamesItselfTheReasonAndTheVariable) {
  US_FRESH_PROCESS();
  const ServerDirectory outside;
  const std::string own = outside.path() + "/own";
  std::filesystem::create_directory(own);
  std::filesystem::create_symlink(own, outside.path() + "/link");
  EXPECT_EQ(refusal_of(outside.path() + "/link"),
            sentence(outside.path() + "/link is a link, which is not followed"));
  EXPECT_EQ(refusal_of("/dev/null"), sentence("/dev/null is not a directory"));
  EXPECT_EQ(refusal_of("/proc/nothing/there"),
            sentence("/proc/nothing/there cannot be made: No such file or directory"));
  std::filesystem::permissions(own, std::filesystem::perms(0755));
  EXPECT_EQ(refusal_of(own), sentence(own + " is open to other users; its mode must be 0700"));
  // The first that can be used is used.
  std::filesystem::permissions(own, std::filesystem::perms(0700));
  setenv(kServerVariable, own.c_str(), 1);
  EXPECT_SUCCESS(aclrtSetDevice(0));
}

TEST(RuntimeDirectory, OfAnotherUserIsNamed) {
  US_FRESH_PROCESS();
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const ServerDirectory other;
  ASSERT_EQ(chown(other.path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(refusal_of(other.path()), sentence(other.path() + " belongs to another user"));
}

TEST(RuntimeDirectory, ThatIsNotWritableIsNamed) {
  US_FRESH_PROCESS();
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  const ServerDirectory closed;
  std::filesystem::permissions(closed.path(), std::filesystem::perms(0500));
  EXPECT_EQ(refusal_of(closed.path()),
            sentence(closed.path() + "/ledger cannot be opened: Permission denied"));
  EXPECT_EQ(refusal_of(closed.path() + "/below"),
            sentence(closed.path() + "/below cannot be made: Permission denied"));
}

TEST(RuntimeDirectory, OnAReadOnlyFileSystemIsNamed) {
  US_FRESH_PROCESS();
  const ServerDirectory place;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", place.path().c_str(), "tmpfs", MS_RDONLY, "mode=0700") != 0) {
    GTEST_SKIP() << "this process may not mount a file system";
  }
  EXPECT_EQ(refusal_of(place.path()),
            sentence(place.path() + "/ledger cannot be opened: Read-only file system"));
  EXPECT_EQ(refusal_of(place.path() + "/below"),
            sentence(place.path() + "/below cannot be made: Read-only file system"));
  umount(place.path().c_str());
}

}  // namespace
}  // namespace understudy_test
