// SPDX-License-Identifier: Apache-2.0
//
// The share server of another process answers this one; that of this process watches others.
#include "sharing/share_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "unit/platform/planned_fault.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::Received;

Deadline patience() { return Clock::now() + std::chrono::seconds(60); }

// Answers with what it was asked, and by whom.
struct Echo {
  ShareServerEvents events() {
    return {.request =
                [this](const ShareRequest& request, const platform::SocketPeer& peer,
                       ShareAnswer& answer) {
                  answer.verdict = ShareVerdict::kGranted;
                  answer.backing.size = request.token;
                  answer.backing.inode = static_cast<uint64_t>(peer.process.id);
                  return request.wants_file != 0 ? descriptors : std::vector<int>();
                },
            .process_ended =
                [this](ProcessTag process) {
                  if (busy-- > 0) return false;
                  ended.set_value(process);
                  return true;
                },
            .chores =
                [this] {
                  if (busy-- > 0) return false;
                  chores.set_value();
                  return true;
                }};
  }

  std::vector<int> descriptors;
  std::promise<ProcessTag> ended;
  std::promise<void> chores;
  int busy = 0;  // so many times there is something in the way
};

class ShareServerTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts a thread if its parent had several";
#endif
  }
  // A process that others can connect to. body(echo, line) goes first.
  template <typename Body>
  auto host(Body body) {
    return [this, body](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      Echo echo;
      ShareServer share_server(*joined, echo.events());
      EXPECT_TRUE(is_ok(share_server.listen()));
      EXPECT_TRUE(is_ok(share_server.listen()));  // once is enough
      line.say(joined->slots().own_slot());
      body(echo, line);
      line.hear();
    };
  }
  auto plain_host() {
    return host([](Echo&, const Line&) {});
  }

  platform::UnsharedFd connect(uint64_t slot) const {
    return value_of(platform::connect_to(
        *joined_->directory(), ProcessSlots::socket_name(static_cast<unsigned>(slot)).c_str(),
        patience()));
  }
  static Received receive(const platform::UnsharedFd& socket, platform::Message& message) {
    platform::Watched readable{socket.get()};
    platform::wait_for_any({&readable, 1}, patience());
    return platform::receive_message(socket.get(), message);
  }
  // The other side ends the connection without an answer.
  static bool is_sent_away(const platform::UnsharedFd& socket) {
    ShareAnswer answer;
    platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
    return receive(socket, message) == Received::kClosed;
  }
  static std::optional<ShareAnswer> hear_answer(const platform::UnsharedFd& socket) {
    ShareAnswer answer;
    platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
    if (receive(socket, message) != Received::kMessage) return std::nullopt;
    return answer;
  }
  static std::optional<ShareAnswer> ask(const platform::UnsharedFd& socket, ShareRequest request) {
    EXPECT_TRUE(platform::send_message(socket.get(), bytes_of(request)));
    return hear_answer(socket);
  }

  TestServer server_;
  std::unique_ptr<Server> joined_ = server_.join();
};

TEST_F(ShareServerTest, AnswersAndEndsTheConnection) {
  OtherProcess other(plain_host());
  const uint64_t slot = other.hear_word();
  for (const uint64_t token : {uint64_t{1}, UINT64_MAX}) {
    const platform::UnsharedFd socket = connect(slot);
    const std::optional<ShareAnswer> answer = ask(socket, {.token = token});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->protocol, kShareProtocol);
    EXPECT_EQ(answer->verdict, ShareVerdict::kGranted);
    EXPECT_EQ(answer->backing.size, token);
    EXPECT_EQ(answer->backing.inode, static_cast<uint64_t>(getpid()));
    EXPECT_TRUE(is_sent_away(socket));
  }
}

TEST_F(ShareServerTest, SendsDescriptorsThatItsClientNames) {
  OtherProcess other(host([](Echo& echo, const Line& line) {
    echo.descriptors = {open("/dev/null", O_RDWR), open("/dev/zero", O_RDWR)};
    line.say();
  }));
  const uint64_t slot = other.hear_word();
  other.hear_word();
  const platform::UnsharedFd socket = connect(slot);
  ShareRequest request{.wants_file = 1};
  ASSERT_TRUE(platform::send_message(socket.get(), bytes_of(request)));
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  ASSERT_EQ(receive(socket, message), Received::kMessage);
  char byte = 'x';
  EXPECT_EQ(read(message.descriptors[0].get(), &byte, 1), 0);
  EXPECT_EQ(read(message.descriptors[1].get(), &byte, 1), 1);
  EXPECT_EQ(byte, 0);
}

TEST_F(ShareServerTest, DescriptorThatCannotBeSentIsAnAnswerToo) {
  OtherProcess other(host([](Echo& echo, const Line& line) {
    echo.descriptors = {-1};
    line.say();
  }));
  const uint64_t slot = other.hear_word();
  other.hear_word();
  const std::optional<ShareAnswer> answer = ask(connect(slot), {.wants_file = 1});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->verdict, ShareVerdict::kBusy);
}

TEST_F(ShareServerTest, StrangersAreSentAwayAndTheNextOneIsServed) {
  OtherProcess other(plain_host());
  const uint64_t slot = other.hear_word();
  {
    const platform::UnsharedFd socket = connect(slot);
    EXPECT_FALSE(ask(socket, {.protocol = kShareProtocol + 1}));
  }
  for (const size_t size : {size_t{1}, sizeof(ShareRequest) - 1, sizeof(ShareRequest) + 1}) {
    const platform::UnsharedFd socket = connect(slot);
    ASSERT_TRUE(platform::send_message(socket.get(), std::vector<std::byte>(size)));
    EXPECT_TRUE(is_sent_away(socket)) << size;
  }
  (void)connect(slot);  // and gone
  EXPECT_TRUE(ask(connect(slot), {.token = 1}));
}

TEST_F(ShareServerTest, ManyWhoSayNothingKeepNobodyOut) {
  OtherProcess other(plain_host());
  const uint64_t slot = other.hear_word();
  std::vector<platform::UnsharedFd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect(slot));
  EXPECT_TRUE(ask(connect(slot), {.token = 1}));
  // The oldest had to go.
  EXPECT_TRUE(is_sent_away(silent.front()));
  EXPECT_TRUE(ask(silent.back(), {.token = 2}));
}

TEST_F(ShareServerTest, WantOfDescriptorsPasses) {
  OtherProcess other(host([](Echo&, const Line& line) {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlimit none = limit;
    none.rlim_cur = 3;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    line.say();
    line.hear_word();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }));
  const uint64_t slot = other.hear_word();
  other.hear_word();
  const platform::UnsharedFd socket = connect(slot);
  ShareRequest request{.token = 5};
  ASSERT_TRUE(platform::send_message(socket.get(), bytes_of(request)));
  other.say();
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  EXPECT_EQ(receive(socket, message), Received::kMessage);
}

TEST_F(ShareServerTest, WhoCannotBeLookedAtIsToldThatItIsBusy) {
  OtherProcess other(host([](Echo&, const Line& line) {
    // A descriptor for whoever comes in, and none to see who that is.
    const int next = dup(STDIN_FILENO);
    close(next);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = static_cast<rlim_t>(next) + 1;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    line.say();
  }));
  const uint64_t slot = other.hear_word();
  other.hear_word();
  // Whoever has not said yet what it wants may have to make room for the next.
  std::optional<ShareAnswer> answer;
  for (const Deadline end = patience(); !answer && !has_passed(end);) {
    const platform::UnsharedFd socket = connect(slot);
    ShareRequest request{.token = 1};
    if (platform::send_message(socket.get(), bytes_of(request))) answer = hear_answer(socket);
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->verdict, ShareVerdict::kBusy);
}

TEST_F(ShareServerTest, ThreadThatCannotBeStartedIsAnErrorAndTriedAgain) {
  OtherProcess other([&](const Line&) {
    const std::unique_ptr<Server> joined = server_.join();
    Echo echo;
    ShareServer share_server(*joined, echo.events());
    {
      const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
      EXPECT_FALSE(share_server.listen().ok());
    }
    {
      const platform::PlannedFault fault(platform::SystemCall::kConnect, 1, EADDRINUSE);
      EXPECT_TRUE(fails_with(share_server.listen(), ErrorCode::kConnection));
    }
    EXPECT_TRUE(is_ok(share_server.listen()));
  });
  EXPECT_TRUE(other.ended_well());
}

// ---- Watching others: in this process, after its children were made ----

class ShareServerWatch : public testing::Test {
 protected:
  auto member() {
    return [this](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      line.say(joined->slots().own_tag().word());
      line.hear();
    };
  }
  static ProcessTag tag_of(const OtherProcess& process) { return ProcessTag(process.hear_word()); }
  static platform::ProcessIdentity identity_of(const OtherProcess& process) {
    return value_of(platform::identity_of_process(process.id())).value();
  }

  TestServer server_;
  std::unique_ptr<Server> joined_ = server_.join();
  Echo echo_;
  std::future<ProcessTag> ended_ = echo_.ended.get_future();
};

TEST_F(ShareServerWatch, NoticesTheEndOfAProcess) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag, identity_of(other))));
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(ShareServerWatch, NoticesAnEndThatCameBeforeAndOneItCannotWaitFor) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  other.kill();
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag, {})));
  EXPECT_EQ(ended_.get(), tag);
}

// As a process of another namespace is seen, whose number means another one here, or none.
TEST_F(ShareServerWatch, NoticesTheEndOfAProcessWhoseNumberMeansNothingHere) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  platform::ProcessIdentity stranger = identity_of(other);
  ++stranger.birth;
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag, stranger)));
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(ShareServerWatch, EndOfAnotherProcessOfTheSameNumberIsNoEnd) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  OtherProcess namesake([](const Line& line) { line.hear(); });
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag, identity_of(namesake))));
  namesake.kill();
  EXPECT_EQ(ended_.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(ShareServerWatch, ForgottenProcessEndsUnnoticed) {
  OtherProcess forgotten(member());
  const ProcessTag tag = tag_of(forgotten);
  OtherProcess other(member());
  const ProcessTag other_tag = tag_of(other);
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag, identity_of(forgotten))));
  ASSERT_TRUE(is_ok(share_server.watch(other_tag, identity_of(other))));
  share_server.forget(tag);
  forgotten.kill();
  other.kill();
  // Noted once, or the promise would complain.
  EXPECT_EQ(ended_.get(), other_tag);
}

TEST_F(ShareServerWatch, EndThatCannotBeSeenToIsToldAgain) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  echo_.busy = 3;
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag, identity_of(other))));
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(ShareServerWatch, ChoresAreDoneUntilNoneIsLeft) {
  OtherProcess other(member());
  echo_.busy = 3;
  ShareServer share_server(*joined_, echo_.events());
  share_server.wake();  // nothing happens, there is no thread
  ASSERT_TRUE(is_ok(share_server.watch(tag_of(other), identity_of(other))));
  share_server.wake();
  echo_.chores.get_future().wait();
}

TEST_F(ShareServerWatch, EndsWhileItWatches) {
  OtherProcess other(member());
  ShareServer share_server(*joined_, echo_.events());
  ASSERT_TRUE(is_ok(share_server.watch(tag_of(other), identity_of(other))));
}

TEST_F(ShareServerWatch, NeedsNoThreadUntilItHasWork) {
  const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
  const std::unique_ptr<Server> alone =
      value_of(Server::make_private(TestServer::shape(), TestServer::numbers()));
  ShareServer share_server(*alone, echo_.events());
  EXPECT_TRUE(is_ok(share_server.listen()));  // nobody can come
  EXPECT_FALSE(share_server.watch(ProcessTag(1, 1), {}).ok());
}

}  // namespace
}  // namespace understudy
