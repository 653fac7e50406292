// SPDX-License-Identifier: Apache-2.0
#include "platform/private_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "platform/fork_sentinel.h"
#include "platform/system_number.h"
#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/platform/planned_fault.h"
#include "unit/temporary_directory.h"

namespace understudy::platform {
namespace {

using std::filesystem::exists;

class PrivateDirectoryTest : public testing::Test {
 protected:
  static Result<PrivateDirectory> open_at(const std::string& path) {
    return PrivateDirectory::open_or_make(path);
  }
  PrivateDirectory open() { return value_of(open_at(own())); }
  std::string own() const { return outside_.at("own"); }
  static void write(const std::string& path) { std::ofstream(path) << "text"; }
  static mode_t mode_of(const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  TemporaryDirectory outside_;
};

TEST_F(PrivateDirectoryTest, IsMadeForItsUserAlone) {
  const PrivateDirectory directory = open();
  EXPECT_EQ(directory.path(), own());
  EXPECT_EQ(mode_of(own()), 0700u);
}

TEST_F(PrivateDirectoryTest, DirectoriesAroundItAreMadeToo) {
  const std::string path = outside_.at("a/b/c");
  EXPECT_TRUE(is_ok(open_at(path)));
  EXPECT_EQ(mode_of(path), 0700u);
}

TEST_F(PrivateDirectoryTest, DirectoryThatIsThereKeepsWhatIsInIt) {
  (void)open();
  write(own() + "/kept");
  const PrivateDirectory again = open();
  EXPECT_TRUE(exists(own() + "/kept"));
}

TEST_F(PrivateDirectoryTest, DirectoryThatOthersMayLookIntoIsRefused) {
  for (const mode_t mode : {0710u, 0701u, 0770u, 0777u, 0740u}) {
    (void)open();
    ASSERT_EQ(chmod(own().c_str(), mode), 0);
    EXPECT_TRUE(fails_with(open_at(own()), ErrorCode::kNoPermission)) << mode;
    EXPECT_EQ(mode_of(own()), mode);
    ASSERT_EQ(chmod(own().c_str(), 0700), 0);
  }
}

TEST_F(PrivateDirectoryTest, RootIsAPathAsWell) {
  for (const char* path : {"/", "///"}) {
    const Result<PrivateDirectory> root = open_at(path);
    ASSERT_TRUE(fails_with(root, ErrorCode::kNoPermission)) << path;
    EXPECT_EQ(std::string(root.error().text()).substr(0, 2), "/ ");
  }
}

TEST_F(PrivateDirectoryTest, DirectoryOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  (void)open();
  ASSERT_EQ(chown(own().c_str(), 12345, 12345), 0);
  EXPECT_TRUE(fails_with(open_at(own()), ErrorCode::kNoPermission));
}

TEST_F(PrivateDirectoryTest, WhatIsNoDirectoryIsRefused) {
  write(outside_.at("file"));
  EXPECT_TRUE(fails_with(open_at(outside_.at("file")), ErrorCode::kNoPermission));
  (void)open();
  ASSERT_EQ(symlink(own().c_str(), outside_.at("link").c_str()), 0);
  EXPECT_TRUE(fails_with(open_at(outside_.at("link")), ErrorCode::kNoPermission));
  ASSERT_EQ(symlink("nowhere", outside_.at("dangling").c_str()), 0);
  EXPECT_TRUE(fails_with(open_at(outside_.at("dangling")), ErrorCode::kNoPermission));
  EXPECT_FALSE(exists(outside_.at("nowhere")));
}

TEST_F(PrivateDirectoryTest, PathThatCannotBeIsAnError) {
  write(outside_.at("file"));
  EXPECT_FALSE(open_at(outside_.at("file/below")).ok());
  EXPECT_FALSE(open_at("").ok());
  EXPECT_TRUE(fails_with(open_at("/proc/nothing/there"), ErrorCode::kOutOfResources));
}

TEST_F(PrivateDirectoryTest, SentencesNameTheDirectoryAndWhatIsWrong) {
  const auto sentence_of = [](const std::string& path) -> std::string {
    const Result<PrivateDirectory> refused = open_at(path);
    return refused.ok() ? "no error" : refused.error().text();
  };
  write(outside_.at("file"));
  EXPECT_EQ(sentence_of(outside_.at("file")), outside_.at("file") + " is not a directory");
  ASSERT_EQ(symlink("elsewhere", outside_.at("link").c_str()), 0);
  EXPECT_EQ(sentence_of(outside_.at("link/")),
            outside_.at("link") + " is a link, which is not followed");
  EXPECT_EQ(sentence_of("/proc/nothing/there"),
            "/proc/nothing/there cannot be made: No such file or directory");
  (void)open();
  ASSERT_EQ(chmod(own().c_str(), 0750), 0);
  EXPECT_EQ(sentence_of(own()), own() + " is open to other users; its mode must be 0700");
  const std::string long_name = outside_.at(std::string(300, 'x'));
  EXPECT_NE(sentence_of(long_name).find("File name too long"), std::string::npos);
}

TEST_F(PrivateDirectoryTest, OneThatCannotBeWrittenToSaysSo) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  ASSERT_EQ(chmod(outside_.path().c_str(), 0500), 0);
  const Result<PrivateDirectory> not_made = open_at(own());
  ASSERT_EQ(chmod(outside_.path().c_str(), 0700), 0);
  ASSERT_FALSE(not_made.ok());
  EXPECT_EQ(not_made.error().text(), own() + " cannot be made: Permission denied");
  const PrivateDirectory directory = open();
  ASSERT_EQ(chmod(own().c_str(), 0500), 0);
  const Result<UnsharedFd> file = directory.open_file("ledger");
  ASSERT_EQ(chmod(own().c_str(), 0700), 0);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().text(), own() + "/ledger cannot be opened: Permission denied");
}

TEST_F(PrivateDirectoryTest, HostThatDoesNotOpenItIsAnError) {
  const PlannedFault fault(SystemCall::kOpenFile, 1, EMFILE);
  const Result<PrivateDirectory> failed = open_at(own());
  ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
  EXPECT_EQ(failed.error().system_number(), EMFILE);
}

TEST_F(PrivateDirectoryTest, DirectoryThatIsRemovedAsItIsOpenedIsMadeAgain) {
  (void)open();
  OtherProcess opening([&](const Line&) {
    plan_stop(SystemCall::kOpenFile, 1);
    EXPECT_TRUE(is_ok(open_at(own())));
    EXPECT_TRUE(exists(own()));
  });
  opening.wait_until_stopped();
  ASSERT_EQ(rmdir(own().c_str()), 0);
  opening.go_on();
  EXPECT_TRUE(opening.ended_well());
}

TEST_F(PrivateDirectoryTest, FileIsMadeOnceAndKeepsItsBytes) {
  const PrivateDirectory directory = open();
  for (const bool is_first : {true, false}) {
    const UnsharedFd file = value_of(directory.open_file("ledger"));
    char byte = 0;
    EXPECT_EQ(pread(file.get(), &byte, 1, 0), is_first ? 0 : 1);
    EXPECT_EQ(pwrite(file.get(), "x", 1, 0), 1);
    forget_for_fork_child(file.get());
  }
  EXPECT_EQ(mode_of(own() + "/ledger"), 0600u);
}

TEST_F(PrivateDirectoryTest, OnlyPlainFilesWithOneNameAreOpened) {
  const PrivateDirectory directory = open();
  write(outside_.at("elsewhere"));
  ASSERT_EQ(symlink(outside_.at("elsewhere").c_str(), (own() + "/link").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", (own() + "/dangling").c_str()), 0);
  ASSERT_EQ(link(outside_.at("elsewhere").c_str(), (own() + "/second-name").c_str()), 0);
  ASSERT_EQ(mkdir((own() + "/directory").c_str(), 0700), 0);
  ASSERT_EQ(mkfifo((own() + "/pipe").c_str(), 0600), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", own().c_str());
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const char* const name :
       {"link", "dangling", "second-name", "directory", "pipe", "socket"}) {
    EXPECT_TRUE(fails_with(directory.open_file(name), ErrorCode::kNoPermission)) << name;
  }
  EXPECT_FALSE(exists(own() + "/nowhere"));
}

TEST_F(PrivateDirectoryTest, FileThatIsRemovedAsItIsOpenedIsAbsent) {
  (void)open();
  write(own() + "/ledger");
  OtherProcess opening([&](const Line&) {
    const PrivateDirectory directory = open();
    plan_stop(SystemCall::kStatFile, 1);
    const Result<UnsharedFd> file = directory.open_file("ledger");
    ASSERT_FALSE(file.ok());
    EXPECT_TRUE(means_absent(file.error())) << file.error().text();
  });
  opening.wait_until_stopped();
  ASSERT_EQ(unlink((own() + "/ledger").c_str()), 0);
  opening.go_on();
  EXPECT_TRUE(opening.ended_well());
}

TEST_F(PrivateDirectoryTest, FileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const PrivateDirectory directory = open();
  write(own() + "/ledger");
  ASSERT_EQ(chown((own() + "/ledger").c_str(), 12345, 12345), 0);
  EXPECT_TRUE(fails_with(directory.open_file("ledger"), ErrorCode::kNoPermission));
}

TEST_F(PrivateDirectoryTest, HostThatDoesNotOpenAFileIsAnError) {
  const PrivateDirectory directory = open();
  const PlannedFault fault(SystemCall::kOpenFile, 1, ENFILE);
  const Result<UnsharedFd> failed = directory.open_file("ledger");
  ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
  EXPECT_EQ(failed.error().system_number(), ENFILE);
  EXPECT_FALSE(exists(own() + "/ledger"));
}

TEST_F(PrivateDirectoryTest, RemovesByName) {
  const PrivateDirectory directory = open();
  write(own() + "/ledger");
  directory.remove("not there");
  EXPECT_TRUE(exists(own() + "/ledger"));
  directory.remove("ledger");
  EXPECT_FALSE(exists(own() + "/ledger"));
}

TEST_F(PrivateDirectoryTest, TellsAllThatIsInItEachTime) {
  const PrivateDirectory directory = open();
  EXPECT_TRUE(value_of(directory.names()).empty());
  write(own() + "/ledger");
  ASSERT_EQ(symlink("nowhere", (own() + "/.link").c_str()), 0);
  for (int time = 0; time < 2; ++time) {
    std::vector<std::string> names = value_of(directory.names());
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{".link", "ledger"}));
  }
}

TEST_F(PrivateDirectoryTest, TellsWhatIsInItWithoutProc) {
  const PrivateDirectory directory = open();
  write(own() + "/ledger");
  OtherProcess other([&](const Line& line) {
    const PrivateDirectory theirs = open();
    const bool is_hidden = unshare(CLONE_NEWNS) == 0 &&
                           mount("none", "/proc", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                           mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
    line.say(is_hidden ? 1 : 0);
    EXPECT_EQ(value_of(theirs.names()), std::vector<std::string>{"ledger"});
  });
  const bool is_hidden = other.hear_word() != 0;
  EXPECT_TRUE(other.ended_well());
  if (!is_hidden) GTEST_SKIP() << "/proc cannot be hidden without privileges";
}

TEST_F(PrivateDirectoryTest, KnowsSocketsFromLinksToThem) {
  const PrivateDirectory directory = open();
  write(own() + "/file");
  ASSERT_EQ(mknod((own() + "/socket").c_str(), S_IFSOCK | 0600, 0), 0);
  ASSERT_EQ(symlink("socket", (own() + "/link").c_str()), 0);
  EXPECT_TRUE(directory.is_socket("socket"));
  for (const char* const name : {"file", "link", "not there"}) {
    EXPECT_FALSE(directory.is_socket(name)) << name;
  }
}

// A program that closes all descriptors, and opens a directory that gets the number.
TEST_F(PrivateDirectoryTest, RemovesNothingFromADirectoryThatHasItsNumberByNow) {
  const PrivateDirectory directory = open();
  const PrivateDirectory other = value_of(open_at(outside_.at("other")));
  write(own() + "/process-1");
  write(other.path() + "/process-1");
  ASSERT_GE(dup2(other.descriptor(), directory.descriptor()), 0);
  write(own() + "/here");
  EXPECT_EQ(value_of(directory.names()).size(), 2u);
  directory.remove("process-1");
  EXPECT_FALSE(exists(own() + "/process-1"));
  EXPECT_TRUE(exists(other.path() + "/process-1"));
}

TEST_F(PrivateDirectoryTest, StaysTheSameDirectoryUnderAnotherName) {
  const PrivateDirectory directory = open();
  write(own() + "/process-1");
  const std::string moved = outside_.at("moved");
  ASSERT_EQ(rename(own().c_str(), moved.c_str()), 0);
  (void)open();
  write(own() + "/process-1");
  directory.remove("process-1");
  EXPECT_TRUE(exists(own() + "/process-1"));
  EXPECT_FALSE(exists(moved + "/process-1"));
}

TEST_F(PrivateDirectoryTest, ForkChildrenHaveNoneOfItsDescriptors) {
  const PrivateDirectory directory = open();
  const UnsharedFd file = value_of(directory.open_file("ledger"));
  OtherProcess child([&](const Line&) {
    EXPECT_EQ(fcntl(directory.descriptor(), F_GETFD), -1);
    EXPECT_EQ(fcntl(file.get(), F_GETFD), -1);
  });
  EXPECT_TRUE(child.ended_well());
  EXPECT_NE(fcntl(file.get(), F_GETFD), -1);
  forget_for_fork_child(file.get());
}

TEST(ServerDirectory, IsOfTheUserByDefault) {
  EXPECT_EQ(default_server_directory(), "/dev/shm/understudy-" + std::to_string(geteuid()));
}

}  // namespace
}  // namespace understudy::platform
