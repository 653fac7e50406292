// SPDX-License-Identifier: Apache-2.0
//
// The attendant of another process answers this one; that of this process watches others.
#include "sharing/attendant.h"

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
class Echo final : public AttendantClient {
 public:
  std::vector<int> answer(const ShareRequest& request, const platform::SocketPeer& peer,
                          ShareAnswer& answer) override {
    answer.verdict = ShareVerdict::kGranted;
    answer.store.size = request.token;
    answer.store.inode = static_cast<uint64_t>(peer.process.id);
    return request.wants_store != 0 ? descriptors : std::vector<int>();
  }
  void note_end(ProcessTag process) override { ended.set_value(process); }

  std::vector<int> descriptors;
  std::promise<ProcessTag> ended;
};

class AttendantTest : public testing::Test {
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
      const std::unique_ptr<Ledger> ledger = server_.join();
      Echo echo;
      Attendant attendant(*ledger, echo);
      EXPECT_TRUE(is_ok(attendant.listen()));
      EXPECT_TRUE(is_ok(attendant.listen()));  // once is enough
      line.say(ledger->own_slot());
      body(echo, line);
      line.hear();
    };
  }
  auto plain_host() {
    return host([](Echo&, const Line&) {});
  }

  platform::UnsharedFd connect(uint64_t slot) const {
    return value_of(platform::connect_to(*ledger_->directory(),
                                         Ledger::socket_name(static_cast<unsigned>(slot)).c_str(),
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
  std::unique_ptr<Ledger> ledger_ = server_.join();
};

TEST_F(AttendantTest, AnswersAndEndsTheConnection) {
  OtherProcess other(plain_host());
  const uint64_t slot = other.hear_word();
  for (const uint64_t token : {uint64_t{1}, UINT64_MAX}) {
    const platform::UnsharedFd socket = connect(slot);
    const std::optional<ShareAnswer> answer = ask(socket, {.token = token});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->protocol, kShareProtocol);
    EXPECT_EQ(answer->verdict, ShareVerdict::kGranted);
    EXPECT_EQ(answer->store.size, token);
    EXPECT_EQ(answer->store.inode, static_cast<uint64_t>(getpid()));
    EXPECT_TRUE(is_sent_away(socket));
  }
}

TEST_F(AttendantTest, SendsDescriptorsThatItsClientNames) {
  OtherProcess other(host([](Echo& echo, const Line& line) {
    echo.descriptors = {open("/dev/null", O_RDWR), open("/dev/zero", O_RDWR)};
    line.say();
  }));
  const uint64_t slot = other.hear_word();
  other.hear_word();
  const platform::UnsharedFd socket = connect(slot);
  ShareRequest request{.wants_store = 1};
  ASSERT_TRUE(platform::send_message(socket.get(), bytes_of(request)));
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  ASSERT_EQ(receive(socket, message), Received::kMessage);
  char byte = 'x';
  EXPECT_EQ(read(message.descriptors[0].get(), &byte, 1), 0);
  EXPECT_EQ(read(message.descriptors[1].get(), &byte, 1), 1);
  EXPECT_EQ(byte, 0);
}

TEST_F(AttendantTest, DescriptorThatCannotBeSentIsAnAnswerToo) {
  OtherProcess other(host([](Echo& echo, const Line& line) {
    echo.descriptors = {-1};
    line.say();
  }));
  const uint64_t slot = other.hear_word();
  other.hear_word();
  const std::optional<ShareAnswer> answer = ask(connect(slot), {.wants_store = 1});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->verdict, ShareVerdict::kBusy);
}

TEST_F(AttendantTest, StrangersAreSentAwayAndTheNextOneIsServed) {
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

TEST_F(AttendantTest, ManyWhoSayNothingKeepNobodyOut) {
  OtherProcess other(plain_host());
  const uint64_t slot = other.hear_word();
  std::vector<platform::UnsharedFd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect(slot));
  EXPECT_TRUE(ask(connect(slot), {.token = 1}));
  // The oldest had to go.
  EXPECT_TRUE(is_sent_away(silent.front()));
  EXPECT_TRUE(ask(silent.back(), {.token = 2}));
}

TEST_F(AttendantTest, WantOfDescriptorsPasses) {
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

TEST_F(AttendantTest, WhoCannotBeLookedAtIsToldThatItIsBusy) {
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

TEST_F(AttendantTest, ThreadThatCannotBeStartedIsAnErrorAndTriedAgain) {
  OtherProcess other([&](const Line&) {
    const std::unique_ptr<Ledger> ledger = server_.join();
    Echo echo;
    Attendant attendant(*ledger, echo);
    {
      const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
      EXPECT_FALSE(attendant.listen().ok());
    }
    {
      const platform::PlannedFault fault(platform::SystemCall::kConnect, 1, EADDRINUSE);
      EXPECT_TRUE(fails_with(attendant.listen(), ErrorCode::kConnection));
    }
    EXPECT_TRUE(is_ok(attendant.listen()));
  });
  EXPECT_TRUE(other.ended_well());
}

// ---- Watching others: in this process, after its children were made ----

class AttendantWatch : public testing::Test {
 protected:
  auto member() {
    return [this](const Line& line) {
      const std::unique_ptr<Ledger> ledger = server_.join();
      line.say(ledger->own_tag().word());
      line.hear();
    };
  }
  static ProcessTag tag_of(const OtherProcess& process) { return ProcessTag(process.hear_word()); }
  static platform::ProcessIdentity identity_of(const OtherProcess& process) {
    return value_of(platform::identity_of_process(process.id())).value();
  }

  TestServer server_;
  std::unique_ptr<Ledger> ledger_ = server_.join();
  Echo echo_;
  std::future<ProcessTag> ended_ = echo_.ended.get_future();
};

TEST_F(AttendantWatch, NoticesTheEndOfAProcess) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  Attendant attendant(*ledger_, echo_);
  ASSERT_TRUE(is_ok(attendant.watch(tag, identity_of(other))));
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(AttendantWatch, NoticesAnEndThatCameBeforeAndOneItCannotWaitFor) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  other.kill();
  Attendant attendant(*ledger_, echo_);
  ASSERT_TRUE(is_ok(attendant.watch(tag, {})));
  EXPECT_EQ(ended_.get(), tag);
}

// As a process of another namespace is seen, whose number means another one here, or none.
TEST_F(AttendantWatch, NoticesTheEndOfAProcessWhoseNumberMeansNothingHere) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  platform::ProcessIdentity stranger = identity_of(other);
  ++stranger.birth;
  Attendant attendant(*ledger_, echo_);
  ASSERT_TRUE(is_ok(attendant.watch(tag, stranger)));
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(AttendantWatch, EndOfAnotherProcessOfTheSameNumberIsNoEnd) {
  OtherProcess other(member());
  const ProcessTag tag = tag_of(other);
  OtherProcess namesake([](const Line& line) { line.hear(); });
  Attendant attendant(*ledger_, echo_);
  ASSERT_TRUE(is_ok(attendant.watch(tag, identity_of(namesake))));
  namesake.kill();
  EXPECT_EQ(ended_.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  other.kill();
  EXPECT_EQ(ended_.get(), tag);
}

TEST_F(AttendantWatch, ForgottenProcessEndsUnnoticed) {
  OtherProcess forgotten(member());
  const ProcessTag tag = tag_of(forgotten);
  OtherProcess other(member());
  const ProcessTag other_tag = tag_of(other);
  Attendant attendant(*ledger_, echo_);
  ASSERT_TRUE(is_ok(attendant.watch(tag, identity_of(forgotten))));
  ASSERT_TRUE(is_ok(attendant.watch(other_tag, identity_of(other))));
  attendant.forget(tag);
  forgotten.kill();
  other.kill();
  // Noted once, or the promise would complain.
  EXPECT_EQ(ended_.get(), other_tag);
}

TEST_F(AttendantWatch, EndsWhileItWatches) {
  OtherProcess other(member());
  Attendant attendant(*ledger_, echo_);
  ASSERT_TRUE(is_ok(attendant.watch(tag_of(other), identity_of(other))));
}

TEST_F(AttendantWatch, NeedsNoThreadUntilItHasWork) {
  const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
  const std::unique_ptr<Ledger> alone = value_of(Ledger::make_private(TestServer::shape()));
  Attendant attendant(*alone, echo_);
  EXPECT_TRUE(is_ok(attendant.listen()));  // nobody can come
  EXPECT_FALSE(attendant.watch(ProcessTag(1, 1), {}).ok());
}

}  // namespace
}  // namespace understudy
