// SPDX-License-Identifier: Apache-2.0
//
// fork and the ledger: a child starts with nothing, what it takes counts once, and neither keeps
// nor ends what its parent has.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "process/ledger_objects.h"
#include "rules/ipc_objects.h"
#include "support/fork_safety.h"

namespace understudy_test::ledger {
namespace {

// A child of this process that runs a body and answers over a channel.
class Forked {
 public:
  explicit Forked(const std::function<void(Channel&)>& body) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) abort();
    fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      Channel channel(ends[1]);
      body(channel);
      fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    EXPECT_GT(pid_, 0);
    close(ends[1]);
    descriptor_ = ends[0];
    channel_.emplace(descriptor_);
  }
  ~Forked() {
    if (pid_ > 0) finish();
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  Channel& channel() { return *channel_; }
  JobAnswer ask(const JobRequest& request) {
    channel_->send(request);
    return channel_->receive<JobAnswer>();
  }
  Figures figures() { return ask({.job = Job::kFigures}).seen; }
  // Lets go of it and waits for its end. Its younger siblings have copies of the descriptor, so to
  // close it would not be enough.
  void finish() {
    shutdown(descriptor_, SHUT_RDWR);
    channel_->close();
    const int status = wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    (void)wait();
  }

 private:
  int wait() {
    int status = 0;
    EXPECT_GT(waitpid(std::exchange(pid_, -1), &status, 0), 0);
    return status;
  }

  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::optional<Channel> channel_;
};

// A child that uses memory of device 0.
class ForkedUser : public Forked {
 public:
  ForkedUser() : Forked(serve_memory) { channel().send(int32_t{0}); }
  aclError take(size_t size) { return ask({.job = Job::kTake, .size = size}).code; }
};

US_PEER(LedgerForkUser) { serve_memory(channel); }
US_PEER(LedgerForkSharer) { ipc::serve_ipc(channel); }

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

// Takes memory and has a child that does nothing but live, until nobody can write to the pipe.
US_PEER(LedgerParentOfIdler) {
  const auto pipe = channel.receive<Pipe>();
  close(pipe.write_end);
  Holdings holdings;
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(holdings.take(20 * kMiB));
  EXPECT_SUCCESS(holdings.take_block(4 * kMiB));
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    (void)!read(pipe.read_end, &byte, 1);
    _exit(0);
  }
  channel.send(child);
  channel.wait_for_end();
}

TEST(LedgerFork, AChildsUseCountsOnceAndTheParentIsUntouched) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  User witness(LedgerForkUser);
  Holdings own;
  EXPECT_EQ(own.take(20 * kMiB), ACL_SUCCESS);
  EXPECT_EQ(own.take_block(2 * kMiB), ACL_SUCCESS);
  const Figures with_parent = less(empty, 22 * kMiB);
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    ForkedUser child;
    EXPECT_EQ(child.figures(), with_parent) << "what the parent has is the parent's";
    EXPECT_EQ(child.take(4 * kMiB), ACL_SUCCESS);
    EXPECT_EQ(child.figures(), less(with_parent, 4 * kMiB));
    EXPECT_EQ(figures(), less(with_parent, 4 * kMiB));
    EXPECT_EQ(witness.figures(), less(with_parent, 4 * kMiB));
    if (by_signal) {
      child.kill();
    } else {
      child.finish();
    }
    EXPECT_EQ(figures(), with_parent);
    EXPECT_EQ(witness.figures(), with_parent);
  }
  own.give_back_all();
  EXPECT_EQ(witness.figures(), empty);
}

TEST(LedgerFork, AChildStartsWithNothingOfItsParents) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  void* data = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&data, 2 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  const aclrtDrvMemHandle block = create_block(2 * kMiB);
  copy_in(data, pattern(kKiB, 1));
  const Figures held = figures();
  {
    Forked child([&](Channel& channel) {
      EXPECT_NE(aclrtFree(data), ACL_SUCCESS);
      EXPECT_NE(aclrtFreePhysical(block), ACL_SUCCESS);
      EXPECT_SUCCESS(aclrtSetDevice(0));
      EXPECT_EQ(figures(), held);
      EXPECT_SUCCESS(aclrtResetDeviceForce(0));
      channel.wait_for_end();
    });
  }
  EXPECT_EQ(figures(), held);
  EXPECT_TRUE(copy_out(data, kKiB) == pattern(kKiB, 1));
  EXPECT_SUCCESS(aclrtFree(data));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_EQ(figures(), empty);
}

TEST(LedgerFork, CapacityHoldsForAFamily) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  const size_t pieces = empty.huge_total / kPiece;
  std::deque<ForkedUser> children;
  for (int i = 0; i < 5; ++i) children.emplace_back();
  for (ForkedUser& child : children) child.channel().send(JobRequest{.job = Job::kTakeAll});
  size_t taken = 0;
  for (ForkedUser& child : children) taken += child.channel().receive<JobAnswer>().count;
  EXPECT_EQ(taken, pieces);
  Holdings own;
  EXPECT_EQ(own.take(kPiece), ACL_ERROR_RT_MEMORY_ALLOCATION);
  children.clear();
  EXPECT_EQ(figures(), empty);
  EXPECT_EQ(own.take_all(), pieces);
  own.give_back_all();
}

TEST(LedgerFork, AChildOfAChildCountsToo) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  Holdings own;
  EXPECT_EQ(own.take(kPiece), ACL_SUCCESS);
  Forked child([&](Channel& channel) {
    Holdings childs;
    EXPECT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(childs.take(kPiece), ACL_SUCCESS);
    {
      ForkedUser grandchild;
      EXPECT_EQ(grandchild.take(kPiece), ACL_SUCCESS);
      EXPECT_EQ(figures(), less(empty, 3 * kPiece));
      channel.send(true);
      (void)channel.receive<bool>();
    }
    EXPECT_EQ(figures(), less(empty, 2 * kPiece));
  });
  EXPECT_TRUE(child.channel().receive<bool>());
  EXPECT_EQ(figures(), less(empty, 3 * kPiece));
  child.channel().send(true);
  child.finish();
  EXPECT_EQ(figures(), less(empty, kPiece));
  own.give_back_all();
}

// What a dead process held is free, although a child of it lives on with all that it inherited.
TEST(LedgerFork, AnIdleChildKeepsNothingOfADeadParents) {
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  const Figures empty = figures_of(0);
  for (const bool by_signal : {false, true}) {
    SCOPED_TRACE(by_signal);
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    Peer parent(LedgerParentOfIdler);
    parent.send(Pipe{ends[0], ends[1]});
    const auto child = parent.receive<pid_t>();
    EXPECT_EQ(figures(), less(empty, 24 * kMiB));
    if (by_signal) {
      parent.kill();
    } else {
      parent.finish();
    }
    EXPECT_EQ(::kill(child, 0), 0) << "it lives";
    EXPECT_EQ(figures(), empty);
    Holdings own;
    EXPECT_EQ(own.take_all(), empty.huge_total / kPiece);
    own.give_back_all();
    close(ends[0]);
    close(ends[1]);
  }
}

TEST(LedgerFork, AChildSharesOnItsOwn) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS(US_SMALL_DEVICES);
  EXPECT_SUCCESS(aclrtSetDevice(0));
  ipc::Other importer(LedgerForkSharer);
  const ipc::ExportedBlock block(kMiB, ipc::kForListed);
  block.fill(1);
  EXPECT_EQ(ipc::allow(block.key(), {importer.id()}), ACL_SUCCESS);
  Forked child([&](Channel& channel) {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    EXPECT_NE(aclrtIpcMemClose(block.key().get()), ACL_SUCCESS) << "it is the parent's";
    const auto id = channel.receive<int32_t>();
    EXPECT_NE(ipc::allow(block.key(), {id}), ACL_SUCCESS);
    const ipc::ExportedBlock own(kMiB, ipc::kForListed);
    own.fill(2);
    EXPECT_EQ(ipc::allow(own.key(), {id}), ACL_SUCCESS);
    channel.send(own.key());
    (void)channel.receive<bool>();
    EXPECT_TRUE(own.has(3));
  });
  child.channel().send(importer.id());
  const auto key = child.channel().receive<ipc::Key>();
  void* const of_child = importer.attach(key);
  void* const of_parent = importer.attach(block.key());
  EXPECT_TRUE(importer.has(of_child, kMiB, 2));
  EXPECT_TRUE(importer.has(of_parent, kMiB, 1));
  importer.fill(of_child, kMiB, 3);
  child.channel().send(true);
  child.finish();
  EXPECT_TRUE(importer.has(of_child, kMiB, 3)) << "importers outlive the exporter";
  EXPECT_TRUE(importer.has(of_parent, kMiB, 1));
  EXPECT_EQ(importer.close(key), ACL_SUCCESS);
  EXPECT_EQ(importer.close(block.key()), ACL_SUCCESS);
}

}  // namespace
}  // namespace understudy_test::ledger
