// SPDX-License-Identifier: Apache-2.0
#include "platform/private_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "platform/fork_sentinel.h"
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

TEST_F(PrivateDirectoryTest, HostThatDoesNotOpenItIsAnError) {
  const PlannedFault fault(SystemCall::kOpenFile, 1, EMFILE);
  const Result<PrivateDirectory> failed = open_at(own());
  ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
  EXPECT_EQ(failed.error().system_number(), EMFILE);
}

TEST_F(PrivateDirectoryTest, FileIsMadeOnceAndKeepsItsBytes) {
  const PrivateDirectory directory = open();
  for (const bool is_first : {true, false}) {
    const UniqueFd file = value_of(directory.open_file("ledger"));
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
  const Result<UniqueFd> failed = directory.open_file("ledger");
  ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfResources));
  EXPECT_EQ(failed.error().system_number(), ENFILE);
  EXPECT_FALSE(exists(own() + "/ledger"));
}

TEST_F(PrivateDirectoryTest, RemovesByNameAndByBeginning) {
  const PrivateDirectory directory = open();
  for (const char* const name : {"process-1", "process-22", "processes", "ledger"}) {
    write(own() + "/" + name);
  }
  directory.remove("not there");
  directory.remove_all("process-");
  EXPECT_FALSE(exists(own() + "/process-1"));
  EXPECT_FALSE(exists(own() + "/process-22"));
  EXPECT_TRUE(exists(own() + "/processes"));
  directory.remove("ledger");
  EXPECT_FALSE(exists(own() + "/ledger"));
}

TEST_F(PrivateDirectoryTest, StaysTheSameDirectoryUnderAnotherName) {
  const PrivateDirectory directory = open();
  write(own() + "/process-1");
  const std::string moved = outside_.at("moved");
  ASSERT_EQ(rename(own().c_str(), moved.c_str()), 0);
  (void)open();
  write(own() + "/process-1");
  directory.remove_all("process-");
  EXPECT_TRUE(exists(own() + "/process-1"));
  EXPECT_FALSE(exists(moved + "/process-1"));
}

TEST_F(PrivateDirectoryTest, ForkChildrenHaveNoneOfItsDescriptors) {
  const PrivateDirectory directory = open();
  const UniqueFd file = value_of(directory.open_file("ledger"));
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
