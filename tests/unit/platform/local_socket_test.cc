// SPDX-License-Identifier: Apache-2.0
#include "platform/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/platform/planned_fault.h"
#include "unit/temporary_directory.h"

namespace understudy::platform {
namespace {

using Bytes = std::array<std::byte, 16>;

Deadline patience() { return Clock::now() + std::chrono::seconds(60); }

int64_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

Bytes text(char fill) {
  Bytes bytes;
  bytes.fill(static_cast<std::byte>(fill));
  return bytes;
}

class LocalSocket : public testing::Test {
 protected:
  struct Pair {
    UnsharedFd client;
    UnsharedFd server;
  };

  LocalSocket()
      : directory_(value_of(PrivateDirectory::open_or_make(temporary_.path()))),
        listener_(value_of(listen_at(directory_, "socket"))) {}

  UnsharedFd connect() { return value_of(connect_to(directory_, "socket", patience())); }
  UnsharedFd accept() const {
    Watched knock{listener_.get()};
    wait_for_any({&knock, 1}, patience());
    return value_of(accept_from(listener_.get()));
  }
  Pair pair() {
    UnsharedFd client = connect();
    return {std::move(client), accept()};
  }
  static Received receive(int socket, Bytes& bytes) {
    Message message{.bytes = bytes, .descriptors = {}};
    return receive_message(socket, message);
  }
  // As a stranger would, with as many descriptors as it likes.
  static bool send_raw(int socket, size_t size, size_t descriptors) {
    std::vector<std::byte> bytes(size);
    iovec piece{bytes.data(), bytes.size()};
    std::vector<char> control(CMSG_SPACE(descriptors * sizeof(int)));
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    auto* const numbers = reinterpret_cast<int*>(CMSG_DATA(header));
    std::fill(numbers, numbers + descriptors, socket);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }

  TemporaryDirectory temporary_;
  PrivateDirectory directory_;
  UnsharedFd listener_;
};

TEST_F(LocalSocket, MessagesGoBothWaysAndStayWhole) {
  const Pair pair = this->pair();
  Bytes got;
  EXPECT_EQ(receive(pair.server.get(), got), Received::kNothingYet);
  ASSERT_TRUE(send_message(pair.client.get(), text('a')));
  ASSERT_TRUE(send_message(pair.client.get(), text('b')));
  EXPECT_EQ(receive(pair.server.get(), got), Received::kMessage);
  EXPECT_EQ(got, text('a'));
  EXPECT_EQ(receive(pair.server.get(), got), Received::kMessage);
  EXPECT_EQ(got, text('b'));
  ASSERT_TRUE(send_message(pair.server.get(), text('c')));
  EXPECT_EQ(receive(pair.client.get(), got), Received::kMessage);
  EXPECT_EQ(got, text('c'));
}

TEST_F(LocalSocket, NobodyWantsIn) { EXPECT_FALSE(value_of(accept_from(listener_.get())).valid()); }

TEST_F(LocalSocket, DescriptorsArriveAsDescriptorsOfTheSameFiles) {
  const Pair pair = this->pair();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd in(ends[0]);
  const UniqueFd out(ends[1]);
  ASSERT_TRUE(send_message(pair.client.get(), text('a'), ends));
  Bytes got;
  Message message{.bytes = got, .descriptors = {}};
  ASSERT_EQ(receive_message(pair.server.get(), message), Received::kMessage);
  const auto& [their_in, their_out] = message.descriptors;
  ASSERT_TRUE(their_in.valid() && their_out.valid());
  EXPECT_NE(their_in.get(), in.get());
  EXPECT_NE(fcntl(their_in.get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(their_out.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(in.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_F(LocalSocket, OneDescriptorComesAlone) {
  const Pair pair = this->pair();
  const int one = pair.client.get();
  ASSERT_TRUE(send_message(pair.client.get(), text('a'), {&one, 1}));
  Bytes got;
  Message message{.bytes = got, .descriptors = {}};
  ASSERT_EQ(receive_message(pair.server.get(), message), Received::kMessage);
  EXPECT_TRUE(message.descriptors[0].valid());
  EXPECT_FALSE(message.descriptors[1].valid());
}

TEST_F(LocalSocket, MessageOfAnotherLengthIsMalformedAndGoneAfterwards) {
  const Pair pair = this->pair();
  for (const size_t size : {size_t{1}, sizeof(Bytes) - 1, sizeof(Bytes) + 1, size_t{4096}}) {
    const std::vector<std::byte> bytes(size);
    ASSERT_TRUE(send_message(pair.client.get(), bytes));
    Bytes got;
    EXPECT_EQ(receive(pair.server.get(), got), Received::kMalformed) << size;
    ASSERT_TRUE(send_message(pair.client.get(), text('a')));
    EXPECT_EQ(receive(pair.server.get(), got), Received::kMessage) << size;
  }
}

TEST_F(LocalSocket, TooManyDescriptorsAreMalformedAndNoneStaysOpen) {
  const Pair pair = this->pair();
  const int64_t before = open_descriptors();
  for (const size_t count : {kMostDescriptors + 1, kMostDescriptors + 2, size_t{100}}) {
    ASSERT_TRUE(send_raw(pair.client.get(), sizeof(Bytes), count));
    Bytes got;
    EXPECT_EQ(receive(pair.server.get(), got), Received::kMalformed) << count;
    EXPECT_EQ(open_descriptors(), before) << count;
  }
}

TEST_F(LocalSocket, DescriptorsOfAMalformedMessageDoNotStayOpen) {
  const Pair pair = this->pair();
  const int64_t before = open_descriptors();
  ASSERT_TRUE(send_raw(pair.client.get(), 3, kMostDescriptors));
  Bytes got;
  EXPECT_EQ(receive(pair.server.get(), got), Received::kMalformed);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(LocalSocket, ReceiverWithoutRoomForDescriptorsGetsAMalformedMessage) {
  OtherProcess child([&](const Line&) {
    // The descriptor of the directory is the parent's alone.
    const PrivateDirectory own = value_of(PrivateDirectory::open_or_make(temporary_.path()));
    const UnsharedFd listener = value_of(listen_at(own, "full"));
    const UnsharedFd client = value_of(connect_to(own, "full", patience()));
    const UnsharedFd server = value_of(accept_from(listener.get()));
    ASSERT_TRUE(send_raw(client.get(), sizeof(Bytes), kMostDescriptors));
    const rlimit none{3, 3};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    Bytes got;
    EXPECT_EQ(receive(server.get(), got), Received::kMalformed);
    EXPECT_TRUE(fails_with(accept_from(listener.get()), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fails_with(peer_of(server.get()), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fails_with(connect_to(own, "full", patience()), ErrorCode::kConnection));
  });
  EXPECT_TRUE(child.ended_well());
}

TEST_F(LocalSocket, OtherSideThatIsGoneIsNoticed) {
  Pair pair = this->pair();
  ASSERT_TRUE(send_message(pair.client.get(), text('a')));
  pair.client = UnsharedFd();
  // What it said before is still heard.
  Bytes got;
  EXPECT_EQ(receive(pair.server.get(), got), Received::kMessage);
  EXPECT_EQ(receive(pair.server.get(), got), Received::kClosed);
  EXPECT_FALSE(send_message(pair.server.get(), text('b')));
}

TEST_F(LocalSocket, OtherSideThatDoesNotReadIsGivenUp) {
  const Pair pair = this->pair();
  int sent = 0;
  while (send_message(pair.client.get(), text('a'))) ASSERT_LT(++sent, 1'000'000);
  EXPECT_GT(sent, 0);
}

TEST_F(LocalSocket, NobodyListensIsAnErrorAtOnce) {
  EXPECT_TRUE(fails_with(connect_to(directory_, "nothing", kNever), ErrorCode::kConnection));
  listener_ = UnsharedFd();
  const Result<UnsharedFd> refused = connect_to(directory_, "socket", kNever);
  ASSERT_TRUE(fails_with(refused, ErrorCode::kConnection));
  EXPECT_EQ(refused.error().system_number(), ECONNREFUSED);
}

TEST_F(LocalSocket, TooManyWhoWaitAreToldSoAtTheDeadline) {
  std::vector<UnsharedFd> waiting;
  while (true) {
    Result<UnsharedFd> next =
        connect_to(directory_, "socket", Clock::now() + std::chrono::milliseconds(20));
    if (!next.ok()) {
      EXPECT_EQ(next.error().system_number(), ETIMEDOUT);
      break;
    }
    waiting.push_back(std::move(next.value()));
    ASSERT_LT(waiting.size(), 1000u);
  }
  EXPECT_GE(waiting.size(), 64u);
}

TEST_F(LocalSocket, ListenerReplacesTheSocketOfItsName) {
  const UnsharedFd later = value_of(listen_at(directory_, "socket"));
  const UnsharedFd client = connect();
  EXPECT_FALSE(value_of(accept_from(listener_.get())).valid());
  EXPECT_TRUE(value_of(accept_from(later.get())).valid());
}

TEST_F(LocalSocket, ListenerLeavesWhatIsNoSocket) {
  namespace fs = std::filesystem;
  std::ofstream(temporary_.at("notes")) << "mine";
  fs::create_symlink(temporary_.at("socket"), temporary_.at("link"));
  fs::create_symlink("nowhere", temporary_.at("dangling"));
  fs::create_directory(temporary_.at("folder"));
  for (const char* const name : {"notes", "link", "dangling", "folder"}) {
    const Result<UnsharedFd> failed = listen_at(directory_, name);
    ASSERT_TRUE(fails_with(failed, ErrorCode::kConnection)) << name;
    EXPECT_EQ(
        failed.error().text(),
        temporary_.at(name) + " is not a socket, and this process must listen there; remove it");
    EXPECT_TRUE(fs::exists(fs::symlink_status(temporary_.at(name)))) << name;
    directory_.remove_socket(name);
    EXPECT_TRUE(fs::exists(fs::symlink_status(temporary_.at(name)))) << name;
  }
  EXPECT_EQ(fs::file_size(temporary_.at("notes")), 4u);
  EXPECT_TRUE(is_ok(connect_to(directory_, "socket", patience())));
}

TEST_F(LocalSocket, DirectoryOfAnyLengthIsGoodEnough) {
  const std::string path = temporary_.at(std::string(200, 'd') + "/" + std::string(200, 'e'));
  const PrivateDirectory deep = value_of(PrivateDirectory::open_or_make(path));
  const UnsharedFd listener = value_of(listen_at(deep, "socket"));
  EXPECT_TRUE(is_ok(connect_to(deep, "socket", patience())));
}

TEST_F(LocalSocket, PeerIsTheProcessThatConnected) {
  OtherProcess child([&](const Line& line) {
    const PrivateDirectory own = value_of(PrivateDirectory::open_or_make(temporary_.path()));
    const UnsharedFd socket = value_of(connect_to(own, "socket", patience()));
    line.say(own_identity().birth);
    line.hear_word();
  });
  const uint64_t birth = child.hear_word();
  const UnsharedFd socket = accept();
  const SocketPeer peer = value_of(peer_of(socket.get()));
  EXPECT_EQ(peer.process, (ProcessIdentity{child.id(), birth}));
  EXPECT_TRUE(is_own_user(peer.user));
  EXPECT_FALSE(is_own_user(peer.user + 1));
  child.say();
  EXPECT_TRUE(child.ended_well());
  // A process that has ended is nobody.
  EXPECT_EQ(value_of(peer_of(socket.get())).process, ProcessIdentity{});
  EXPECT_TRUE(fails_with(peer_of(-1), ErrorCode::kConnection));
}

TEST_F(LocalSocket, ForkChildrenHaveNoneOfItsDescriptors) {
  const Pair pair = this->pair();
  OtherProcess child([&](const Line&) {
    EXPECT_EQ(fcntl(listener_.get(), F_GETFD), -1) << "the listener";
    EXPECT_EQ(fcntl(pair.client.get(), F_GETFD), -1) << "the side that connected";
    EXPECT_EQ(fcntl(pair.server.get(), F_GETFD), -1) << "the side that was accepted";
  });
  EXPECT_TRUE(child.ended_well());
}

TEST_F(LocalSocket, FaultsOfTheHostAreErrors) {
  const Pair pair = this->pair();
  ASSERT_TRUE(send_message(pair.client.get(), text('a')));
  {
    const PlannedFault fault(SystemCall::kConnect, 1, EACCES);
    const Result<UnsharedFd> failed = connect_to(directory_, "socket", patience());
    ASSERT_TRUE(fails_with(failed, ErrorCode::kConnection));
    EXPECT_EQ(failed.error().system_number(), EACCES);
  }
  {
    const PlannedFault fault(SystemCall::kConnect, 1, EADDRINUSE);
    EXPECT_TRUE(fails_with(listen_at(directory_, "socket"), ErrorCode::kConnection));
    // The listener before it is left alone.
    EXPECT_TRUE(is_ok(connect_to(directory_, "socket", patience())));
  }
  {
    const PlannedFault fault(SystemCall::kSend, 1, EPIPE);
    EXPECT_FALSE(send_message(pair.client.get(), text('b')));
  }
  Bytes got;
  {
    const PlannedFault fault(SystemCall::kReceive, 1, ECONNRESET);
    EXPECT_EQ(receive(pair.server.get(), got), Received::kClosed);
  }
  EXPECT_EQ(receive(pair.server.get(), got), Received::kMessage);
  EXPECT_EQ(got, text('a'));
}

// A program that closes all descriptors, and opens files that get their numbers.
TEST(WakeSignal, WritesNothingIntoAFileThatHasItsNumberByNow) {
  const WakeSignal signal = value_of(WakeSignal::make());
  MemoryFile file = value_of(MemoryFile::create(FileKind::kShared, "test", kNormalPage));
  std::array<int, 2> kept{dup(signal.descriptor()), dup(signal.descriptor() + 1)};
  for (int i = 0; i < 2; ++i) ASSERT_GE(dup2(file.descriptor(), signal.descriptor() + i), 0);
  signal.raise();
  signal.clear();
  uint64_t first = 0;
  EXPECT_EQ(pread(file.descriptor(), &first, sizeof first, 0), 8);
  EXPECT_EQ(first, 0u);
  for (int i = 0; i < 2; ++i) dup2(kept[static_cast<size_t>(i)], signal.descriptor() + i);
  for (const int each : kept) close(each);
}

TEST(WaitForAny, TellsWhoIsReady) {
  const WakeSignal first = value_of(WakeSignal::make());
  const WakeSignal second = value_of(WakeSignal::make());
  std::array<Watched, 3> watched{Watched{first.descriptor()}, Watched{second.descriptor()},
                                 Watched{-1}};
  const Deadline deadline = Clock::now() + std::chrono::milliseconds(10);
  wait_for_any(watched, deadline);
  EXPECT_GE(Clock::now(), deadline);
  EXPECT_FALSE(watched[0].ready || watched[1].ready || watched[2].ready);
  second.raise();
  second.raise();
  wait_for_any(watched, kNever);
  EXPECT_FALSE(watched[0].ready);
  EXPECT_TRUE(watched[1].ready);
  second.clear();
  wait_for_any(watched, Clock::now());
  EXPECT_FALSE(watched[1].ready);
}

}  // namespace
}  // namespace understudy::platform
