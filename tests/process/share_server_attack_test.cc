// SPDX-License-Identifier: Apache-2.0
//
// Processes of the same user that connect to an exporter's share server and send nothing, half a
// request, garbage, or very many requests and descriptors. Real imports go on, and the exporter is
// left as it was.
// Covers: SHARE-28, SHARE-30, SHARE-31, SHARE-32.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "process/sharing_objects.h"
#include "support/server_directory.h"

namespace understudy_test::share {
namespace {

using std::chrono::steady_clock;
// What importers ask, and the beginning of what they hear, as in src/sharing/share_protocol.h.
struct ShareRequest {
  uint32_t protocol = 0x31537355;
  uint32_t wants_store = 0;
  uint64_t token = 0;
  uint32_t subject = 0;  // memory
  uint32_t reserved = 0;
};
enum class Verdict : uint32_t { kGranted, kUnknown, kNotListed, kBusy };
struct ShareAnswer {
  uint32_t protocol = 0;
  Verdict verdict = Verdict::kBusy;
  std::array<std::byte, 248> store{};
};

// An importer waits this long for an exporter before it gives up.
constexpr std::chrono::seconds kPatienceOfImporters(5);

// ---- The stranger's side ----

class Connection {
 public:
  // Not valid if the exporter has too many waiting already.
  explicit Connection(const std::string& path)
      : socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(std::exchange(socket_, -1));
    }
  }
  ~Connection() {
    if (valid()) close(socket_);
  }
  Connection(Connection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Connection& operator=(Connection&&) = delete;

  bool valid() const { return socket_ >= 0; }
  void send(const void* bytes, size_t size, const std::vector<int>& descriptors = {}) const {
    iovec piece{const_cast<void*>(bytes), size};
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    // The other side may have ended the connection, or not read what came before.
    (void)sendmsg(socket_, &message, MSG_NOSIGNAL);
  }
  // What comes until the exporter ends the connection, or its time is over.
  struct Reply {
    std::optional<ShareAnswer> answer;
    bool has_descriptors = false;
  };
  Reply receive() const {
    timeval limit{30, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    fcntl(socket_, F_SETFL, 0);
    Reply reply;
    ShareAnswer answer;
    iovec piece{&answer, sizeof answer};
    alignas(cmsghdr) std::array<char, 256> control{};
    msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "the exporter neither answers nor hangs up";
    if (got > 0 && answer.protocol == ShareRequest{}.protocol) reply.answer = answer;
    reply.has_descriptors = message.msg_controllen > 0;
    return reply;
  }
  pid_t listener() const {
    ucred credentials = {};
    socklen_t length = sizeof credentials;
    getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
    return credentials.pid;
  }

 private:
  int socket_;
};

// Where a process listens.
std::string socket_of(pid_t process) {
  for (const auto& entry : std::filesystem::directory_iterator(getenv(kServerVariable))) {
    if (!entry.is_socket()) continue;
    const Connection connection(entry.path());
    if (connection.valid() && connection.listener() == process) return entry.path();
  }
  ADD_FAILURE() << "process " << process << " has no socket";
  return "";
}

size_t descriptors_of(pid_t process) {
  const std::filesystem::directory_iterator entries("/proc/" + std::to_string(process) + "/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

// ---- Attacks ----

// Goes on until told to stop. `kept` stays open until then.
using Connections = std::vector<Connection>;
using Attack = void (*)(const std::string& path, std::atomic<bool>& ends, Connections& kept);

void connect_one_more(const std::string& path, Connections& kept) {
  Connection connection(path);
  if (connection.valid()) kept.push_back(std::move(connection));
}

void stay_silent(const std::string& path, std::atomic<bool>&, Connections& kept) {
  for (int i = 0; i < 40; ++i) connect_one_more(path, kept);
}

void stay_in_great_numbers(const std::string& path, std::atomic<bool>&, Connections& kept) {
  // As many as this process may have, or a thousand.
  const auto many = static_cast<size_t>(std::min(1000L, sysconf(_SC_OPEN_MAX) / 2));
  EXPECT_TRUE(comes_true([&] {
    connect_one_more(path, kept);
    return kept.size() == many;
  }));
}

// Messages of all lengths, one per connection, as fast as they are taken.
template <typename Body>
void talk_until(const std::string& path, const std::atomic<bool>& ends, Body body) {
  std::mt19937 random(8);
  while (!ends.load()) {
    const Connection connection(path);
    if (connection.valid()) body(connection, random);
  }
}

void send_half(const std::string& path, std::atomic<bool>& ends, Connections&) {
  talk_until(path, ends, [](const Connection& connection, std::mt19937& random) {
    const ShareRequest request;
    connection.send(&request, random() % sizeof request);
    (void)connection.receive();
  });
}

void send_too_much(const std::string& path, std::atomic<bool>& ends, Connections&) {
  const std::vector<char> bytes(150'000, 'U');
  talk_until(path, ends, [&](const Connection& connection, std::mt19937& random) {
    connection.send(bytes.data(), sizeof(ShareRequest) + 1 + random() % 140'000);
    (void)connection.receive();
  });
}

void send_garbage(const std::string& path, std::atomic<bool>& ends, Connections&) {
  talk_until(path, ends, [](const Connection& connection, std::mt19937& random) {
    std::array<uint32_t, sizeof(ShareRequest) / sizeof(uint32_t)> words;
    for (uint32_t& word : words) word = static_cast<uint32_t>(random());
    connection.send(words.data(), sizeof words);
    EXPECT_FALSE(connection.receive().answer) << "an answer to no request";
  });
}

void bring_descriptors(const std::string& path, std::atomic<bool>& ends, Connections&) {
  constexpr size_t kMost = 253;  // that one message can carry
  talk_until(path, ends, [](const Connection& connection, std::mt19937& random) {
    const ShareRequest request;
    const std::vector<int> some(1 + random() % kMost, STDERR_FILENO);
    connection.send(&request, random() % 2 == 0 ? sizeof request : 1, some);
    if (random() % 2 == 0) (void)connection.receive();
  });
}

void connect_and_go(const std::string& path, std::atomic<bool>& ends, Connections&) {
  talk_until(path, ends, [](const Connection&, std::mt19937&) {});
}

struct NamedAttack {
  const char* name;
  Attack attack;
};

std::string name_of_attack(const testing::TestParamInfo<NamedAttack>& attack) {
  return attack.param.name;
}

class ShareServer : public testing::Test {
 protected:
  // Two ways of being let in, which both have to work.
  void SetUp() override {
    listed_ = exporter_.call(offer_block, kGranule, kListed, uint8_t{1});
    open_ = exporter_.call(offer_block, kGranule, kEveryone, uint8_t{2});
    exporter_.call(list, listed_.token, Ids{importer_.id()});
    path_ = socket_of(exporter_.pid());
  }
  void TearDown() override {
    for (const Offer& offer : {listed_, open_}) {
      EXPECT_TRUE(exporter_.call(is_marked, offer.view.start, kGranule,
                                 offer.token == open_.token ? uint8_t{2} : uint8_t{1}));
      exporter_.call(close_view, offer.view);
    }
  }

  // Real imports; the longest that one took.
  std::chrono::duration<double> import_often(int rounds) {
    steady_clock::duration longest{};
    for (int i = 0; i < rounds && !HasFailure(); ++i) {
      const auto begin = steady_clock::now();
      EXPECT_EQ(importer_.import(listed_.token), ACL_SUCCESS) << "listed, in round " << i;
      EXPECT_EQ(importer_.import(open_.token), ACL_SUCCESS) << "open, in round " << i;
      EXPECT_EQ(unlisted_.import(listed_.token), ACL_ERROR_RT_NO_PERMISSION) << i;
      longest = std::max(longest, steady_clock::now() - begin);
    }
    return longest;
  }

  Remote exporter_;
  Remote importer_;
  Remote unlisted_;
  Offer listed_{};
  Offer open_{};
  std::string path_;
};

class ShareServerAttack : public ShareServer, public testing::WithParamInterface<NamedAttack> {};

TEST_P(ShareServerAttack, SHARE_31_SHARE_32_ImportsGoOn) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  import_often(1);
  const size_t before = descriptors_of(exporter_.pid());

  std::atomic<bool> ends{false};
  Connections kept;
  std::thread attacker([&] { GetParam().attack(path_, ends, kept); });
  const std::chrono::duration<double> longest = import_often(200);
  EXPECT_LT(longest, kPatienceOfImporters);
  ends.store(true);
  attacker.join();
  std::cout << GetParam().name << ": the longest round of imports took " << longest.count()
            << " s, " << kept.size() << " strangers stayed\n";
  import_often(20);  // with those who stayed
  // Who stays and says nothing is sent away in time, not only when it goes by itself.
  EXPECT_TRUE(comes_true([&] { return descriptors_of(exporter_.pid()) <= before; }))
      << descriptors_of(exporter_.pid()) << " descriptors, before " << before;
  kept.clear();
  import_often(20);
  EXPECT_TRUE(comes_true([&] { return descriptors_of(exporter_.pid()) <= before; }))
      << descriptors_of(exporter_.pid()) << " descriptors, before " << before;
}

INSTANTIATE_TEST_SUITE_P(, ShareServerAttack,
                         testing::Values(NamedAttack{"StaySilent", stay_silent},
                                         NamedAttack{"StayInGreatNumbers", stay_in_great_numbers},
                                         NamedAttack{"SendHalf", send_half},
                                         NamedAttack{"SendTooMuch", send_too_much},
                                         NamedAttack{"SendGarbage", send_garbage},
                                         NamedAttack{"BringDescriptors", bring_descriptors},
                                         NamedAttack{"ConnectAndGo", connect_and_go}),
                         name_of_attack);

// ---- Requests that look right ----

TEST_F(ShareServer, SHARE_28_SHARE_30_GuessedTokensGetNothing) {
  std::mt19937_64 random(28);
  std::vector<uint64_t> guesses = {0, 1, ~uint64_t{0}};
  for (int bit = 0; bit < 64; ++bit) guesses.push_back(open_.token ^ uint64_t{1} << bit);
  for (int i = 0; i < 200; ++i) guesses.push_back(random());
  for (const uint64_t guess : guesses) {
    const Connection connection(path_);
    ASSERT_TRUE(connection.valid());
    const ShareRequest request{.wants_store = 1, .token = guess};
    connection.send(&request, sizeof request);
    const Connection::Reply reply = connection.receive();
    ASSERT_TRUE(reply.answer);
    EXPECT_EQ(reply.answer->verdict, Verdict::kUnknown) << std::hex << guess;
    EXPECT_FALSE(reply.has_descriptors);
  }
  // Right, but this process is not listed.
  const Connection connection(path_);
  const ShareRequest request{.wants_store = 1, .token = listed_.token};
  connection.send(&request, sizeof request);
  const Connection::Reply reply = connection.receive();
  ASSERT_TRUE(reply.answer);
  EXPECT_EQ(reply.answer->verdict, Verdict::kNotListed);
  EXPECT_FALSE(reply.has_descriptors);
}

// As when many processes import at the same moment, and the exporter has no time for a while.
TEST_F(ShareServer, SHARE_32_EveryoneWhoWaitsIsAnswered) {
  constexpr int kConnections = 100;
  Connections connections;
  exporter_.peer().signal(SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(exporter_.peer().pid(), &status, WUNTRACED), exporter_.peer().pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  for (int i = 0; i < kConnections; ++i) connect_one_more(path_, connections);
  const ShareRequest request{.wants_store = 0, .token = open_.token};
  for (const Connection& connection : connections) connection.send(&request, sizeof request);
  exporter_.peer().signal(SIGCONT);
  int answered = 0;
  for (const Connection& connection : connections) {
    const Connection::Reply reply = connection.receive();
    answered += reply.answer && reply.answer->verdict == Verdict::kGranted ? 1 : 0;
  }
  EXPECT_EQ(connections.size(), static_cast<size_t>(kConnections));
  EXPECT_EQ(answered, kConnections);
}

}  // namespace
}  // namespace understudy_test::share
