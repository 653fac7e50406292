// SPDX-License-Identifier: Apache-2.0
#include "platform/local_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/no_cancel.h"
#include "base/pause.h"
#include "platform/fault_plan.h"

namespace understudy::platform {

namespace {

constexpr int kBacklog = 128;
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

// A path of any length fits, because it begins at the directory's descriptor.
sockaddr_un address_of(const PrivateDirectory& directory, const char* name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory.descriptor(),
           name);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Error socket_failure(int number, const char* what, const PrivateDirectory& directory,
                     const char* name) {
  return Error::system(ErrorCode::kConnection, number, "the host cannot %s %s/%s (errno %d)", what,
                       directory.path().c_str(), name, number);
}

Error name_is_taken(const PrivateDirectory& directory, const char* name) {
  return Error::system(ErrorCode::kConnection, EADDRINUSE,
                       "%.120s/%s is not a socket, and this process must listen there; remove it",
                       directory.path().c_str(), name);
}

// Room for the descriptors of a message, and for the one too many that shows a wrong one.
struct ControlBuffer {
  static constexpr size_t kMost = kMostDescriptors + 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMost * sizeof(int))> bytes{};
};

}  // namespace

Result<UnsharedFd> listen_at(const PrivateDirectory& directory, const char* name) {
  int number = planned_fault(SystemCall::kConnect);
  UnsharedFd socket;
  if (number == 0) {
    socket = UnsharedFd(UniqueFd(::socket(AF_UNIX, kSocketType, 0)));
    if (!socket.valid()) number = errno;
  }
  if (number == 0) {
    directory.remove_socket(name);
    const sockaddr_un address = address_of(directory, name);
    if (bind(socket.get(), generic(address), sizeof address) != 0 ||
        listen(socket.get(), kBacklog) != 0) {
      number = errno;
      if (number == EADDRINUSE) return name_is_taken(directory, name);
    }
  }
  if (number != 0) return socket_failure(number, "listen at", directory, name);
  return socket;
}

Result<UnsharedFd> accept_from(int listener) {
  const NoCancel no_cancel;
  UnsharedFd connection(
      UniqueFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (connection.valid() ||
      (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)) {
    return connection;
  }
  return Error::system(ErrorCode::kOutOfResources, errno,
                       "the host has no descriptor for another connection (errno %d)", errno);
}

Result<UnsharedFd> connect_to(const PrivateDirectory& directory, const char* name,
                              Deadline deadline) {
  const NoCancel no_cancel;
  int number = planned_fault(SystemCall::kConnect);
  UnsharedFd socket;
  if (number == 0) {
    socket = UnsharedFd(UniqueFd(::socket(AF_UNIX, kSocketType, 0)));
    if (!socket.valid()) number = errno;
  }
  const sockaddr_un address = address_of(directory, name);
  while (number == 0 && connect(socket.get(), generic(address), sizeof address) != 0) {
    // Busy: many want in at once.
    if (errno != EAGAIN && errno != EINTR) {
      number = errno;
    } else if (has_passed(deadline)) {
      number = ETIMEDOUT;
    } else {
      nap();
    }
  }
  if (number != 0) return socket_failure(number, "connect to", directory, name);
  return socket;
}

bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  if (planned_fault(SystemCall::kSend) != 0) return false;
  const NoCancel no_cancel;
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  ControlBuffer control;
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Received receive_message(int socket, Message& wanted) {
  if (planned_fault(SystemCall::kReceive) != 0) return Received::kClosed;
  const NoCancel no_cancel;
  iovec piece{wanted.bytes.data(), wanted.bytes.size()};
  ControlBuffer control;
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Received::kNothingYet : Received::kClosed;
  // Whatever came is ours to close.
  bool fits = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  size_t taken = 0;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      memcpy(&descriptor, CMSG_DATA(each) + i * sizeof(int), sizeof descriptor);
      UniqueFd owned(descriptor);
      if (taken < wanted.descriptors.size()) {
        wanted.descriptors[taken++] = std::move(owned);
      } else {
        fits = false;
      }
    }
  }
  if (got == 0) return Received::kClosed;
  return fits && got == static_cast<ssize_t>(wanted.bytes.size()) ? Received::kMessage
                                                                  : Received::kMalformed;
}

Result<SocketPeer> peer_of(int socket) {
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Error::system(ErrorCode::kConnection, errno, "no process is at the other end (errno %d)",
                         errno);
  }
  // A number that was given to another process since then is found out by the caller's comparison:
  // the later process was not there when it could have been named.
  US_TRY_ASSIGN(const std::optional<ProcessIdentity> process, identity_of_process(credentials.pid));
  return SocketPeer{credentials.uid, process.value_or(ProcessIdentity{})};
}

bool is_own_user(uint32_t user) { return user == geteuid(); }

void wait_for_any(std::span<Watched> watched, Deadline deadline) {
  std::vector<pollfd> polled;
  polled.reserve(watched.size());
  for (const Watched& each : watched) polled.push_back({each.descriptor, POLLIN, 0});
  int limit = -1;
  if (deadline != kNever) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    limit = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }
  const NoCancel no_cancel;
  if (poll(polled.data(), polled.size(), limit) < 0) {
    for (Watched& each : watched) each.ready = false;
    nap();  // more than it may wait for: look again soon, but not without end
    return;
  }
  bool is_closed = false;
  for (size_t i = 0; i < watched.size(); ++i) {
    watched[i].ready = polled[i].revents != 0;
    is_closed |= (polled[i].revents & POLLNVAL) != 0;
  }
  if (is_closed) nap();  // by the program: it stays so
}

Result<WakeSignal> WakeSignal::make() {
  std::array<int, 2> pair{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
    return Error::system(ErrorCode::kOutOfResources, errno,
                         "the host cannot make a pair of sockets (errno %d)", errno);
  }
  return WakeSignal(UnsharedFd(UniqueFd(pair[0])), UnsharedFd(UniqueFd(pair[1])));
}

void WakeSignal::raise() const {
  if (identity_of_file(raising_.get()) != raising_identity_) return;
  const NoCancel no_cancel;
  const char one = 1;
  // A full socket wakes as well.
  [[maybe_unused]] const ssize_t sent = send(raising_.get(), &one, sizeof one, MSG_NOSIGNAL);
}

void WakeSignal::clear() const {
  if (identity_of_file(waiting_.get()) != waiting_identity_) return;
  const NoCancel no_cancel;
  std::array<char, 64> raised;
  while (recv(waiting_.get(), raised.data(), raised.size(), 0) > 0) {
  }
}

}  // namespace understudy::platform
