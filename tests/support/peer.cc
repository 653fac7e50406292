// SPDX-License-Identifier: Apache-2.0
#include "support/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/process_environment.h"

namespace understudy_test {

namespace {

constexpr const char* kPeerVariable = "UNDERSTUDY_TEST_PEER";
constexpr int kPeerDescriptor = 3;
constexpr std::chrono::minutes kPatience(1);

std::map<std::string, PeerBody>& peers() {
  static auto& registered = *new std::map<std::string, PeerBody>();
  return registered;
}

std::string name_of(PeerBody body) {
  for (const auto& [name, registered] : peers()) {
    if (registered == body) return name;
  }
  fprintf(stderr, "a peer was not declared with US_PEER\n");
  abort();
}

// Starts the peer; the test's end of the channel.
std::pair<pid_t, int> start(PeerBody body, std::initializer_list<Variable> environment) {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) abort();
  std::vector<std::string> arguments = {"/proc/self/exe"};
  std::vector<std::string> variables = environment_with(environment);
  variables.push_back(std::string(kPeerVariable) + "=" + name_of(body));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kPeerDescriptor);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                 pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    ADD_FAILURE() << "posix_spawn failed: " << strerror(failed);
    pid = -1;
  }
  return {pid, ends[0]};
}

}  // namespace

Channel::~Channel() { close(); }

void Channel::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void Channel::send_bytes(const void* bytes, size_t size) {
  if (::send(descriptor_, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size)) return;
  ADD_FAILURE() << "the other process takes nothing: " << strerror(errno);
}

bool Channel::becomes_readable(std::chrono::milliseconds time) const {
  pollfd readable{descriptor_, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&readable, 1, static_cast<int>(time.count()));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

bool Channel::receive_bytes(void* bytes, size_t size) {
  return becomes_readable(kPatience) &&
         recv(descriptor_, bytes, size, 0) == static_cast<ssize_t>(size);
}

void Channel::wait_for_end() {
  char ignored = 0;
  while (receive_bytes(&ignored, sizeof ignored)) {
  }
}

Peer::Peer(PeerBody body, std::initializer_list<Variable> environment)
    : channel_([&] {
        const auto [pid, descriptor] = start(body, environment);
        pid_ = pid;
        return descriptor;
      }()) {}

Peer::~Peer() {
  if (pid_ > 0) finish();
}

int Peer::wait() {
  int status = 0;
  while (waitpid(std::exchange(pid_, -1), &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void Peer::finish() {
  channel_.close();
  const int status = wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "the other process ended with wait status " << status;
}

void Peer::kill(int signal) {
  ::kill(pid_, signal);
  (void)wait();
}

PeerRegistration::PeerRegistration(const char* name, PeerBody body) {
  if (peers().emplace(name, body).second) return;
  fprintf(stderr, "two peers are called %s\n", name);
  abort();
}

bool ran_as_peer(int& exit_code) {
  const char* name = getenv(kPeerVariable);
  if (name == nullptr) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto found = peers().find(name);
  if (found == peers().end()) {
    fprintf(stderr, "there is no peer %s\n", name);
    abort();
  }
  const PeerBody body = found->second;
  unsetenv(kPeerVariable);  // a peer may have peers
  fcntl(kPeerDescriptor, F_SETFD, FD_CLOEXEC);
  Channel channel(kPeerDescriptor);
  body(channel);
  exit_code = testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
  return true;
}

}  // namespace understudy_test
