// SPDX-License-Identifier: Apache-2.0
#include "support/other_process.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "support/fail.h"

namespace bench {

bool Line::receive_or_end(void* bytes, size_t size) const {
  const ssize_t got = recv(socket_, bytes, size, MSG_WAITALL);
  require(got >= 0, "recv");
  return got == static_cast<ssize_t>(size);
}

void Line::receive_bytes(void* bytes, size_t size) const {
  if (!receive_or_end(bytes, size)) fail("the other process has ended");
}

void Line::send_bytes(const void* bytes, size_t size) const {
  require(::send(socket_, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "send");
}

OtherProcess::OtherProcess(const std::function<void(const Line&)>& body) : line_(start(body)) {}

int OtherProcess::start(const std::function<void(const Line&)>& body) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  fflush(stdout);
  id_ = fork();
  require(id_ >= 0, "fork");
  if (id_ == 0) {
    close(ends[0]);
    body(Line(ends[1]));
    _exit(0);
  }
  close(ends[1]);
  socket_ = ends[0];
  return socket_;
}

OtherProcess::~OtherProcess() {
  // Processes that were made later have this end, too: closing it alone would not end the line.
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
  waitpid(id_, nullptr, 0);
}

}  // namespace bench
