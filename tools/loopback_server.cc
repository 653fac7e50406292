// SPDX-License-Identifier: Apache-2.0
#include "tools/loopback_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

namespace understudy::command {

namespace {

using platform::UniqueFd;

constexpr size_t kMostConnections = 32;
constexpr auto kRequestLimit = std::chrono::seconds(10);   // until a request is whole
constexpr auto kProgressLimit = std::chrono::seconds(30);  // until a client takes more of an answer
constexpr int kLookForLimits = 1000;                       // milliseconds

// Nothing of an answer is kept or shown elsewhere; the page needs what is in it, and this server.
constexpr std::string_view kSafety =
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n";

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

Error cannot_listen(unsigned port, int number) {
  return Error::system(ErrorCode::kOutOfResources, number, "cannot listen on 127.0.0.1 port %u: %s",
                       port, strerror(number));
}

bool is_for_later(ssize_t moved) {
  return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace

Result<LoopbackServer> LoopbackServer::listen(uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return cannot_listen(port, errno);
  // A port that was used a minute ago may be used again.
  const int yes = 1;
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (bind(socket.get(), any, size) != 0 || ::listen(socket.get(), kMostConnections) != 0 ||
      getsockname(socket.get(), any, &size) != 0) {
    return cannot_listen(port, errno);
  }
  return LoopbackServer(std::move(socket), ntohs(address.sin_port));
}

void LoopbackServer::serve(int stop, int news, const Handler& handler) {
  while (true) {
    const bool has_room = connections_.size() < kMostConnections;
    std::vector<pollfd> watched = {
        {stop, POLLIN, 0}, {news, POLLIN, 0}, {has_room ? socket_.get() : -1, POLLIN, 0}};
    for (const Connection& each : connections_) {
      const short events = each.state == Connection::kReads    ? POLLIN
                           : each.state == Connection::kWrites ? POLLOUT
                                                               : POLLRDHUP;
      watched.push_back({each.socket.get(), events, 0});
    }
    if (poll(watched.data(), watched.size(), connections_.empty() ? -1 : kLookForLimits) < 0 &&
        errno != EINTR) {
      return;
    }
    if (watched[0].revents != 0) return;
    const auto now = Clock::now();
    auto found = watched.begin() + 3;
    for (auto each = connections_.begin(); each != connections_.end(); ++found) {
      const bool is_over = each->state != Connection::kWaits && now > each->limit;
      const bool stays = !is_over && (found->revents == 0 || go_on(*each, handler));
      each = stays ? std::next(each) : connections_.erase(each);
    }
    if (watched[1].revents != 0) {
      eventfd_t count = 0;
      (void)eventfd_read(news, &count);
      for (Connection& each : connections_) {
        if (each.state == Connection::kWaits) answer(each, handler, Asked::kAgain);
      }
    }
    if (watched[2].revents != 0) accept_connection();
  }
}

void LoopbackServer::accept_connection() {
  UniqueFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return;
  Connection& added = connections_.emplace_back();
  added.socket = std::move(socket);
  added.limit = Clock::now() + kRequestLimit;
}

bool LoopbackServer::go_on(Connection& connection, const Handler& handler) {
  switch (connection.state) {
    case Connection::kReads:
      return read(connection, handler);
    case Connection::kWrites:
      return write(connection);
    default:
      return false;  // it has gone away
  }
}

bool LoopbackServer::read(Connection& connection, const Handler& handler) {
  char part[4096];
  const ssize_t size = recv(connection.socket.get(), part, sizeof part, 0);
  if (size <= 0) return is_for_later(size);
  connection.received.append(part, static_cast<size_t>(size));
  switch (parse_request(connection.received, connection.request)) {
    case RequestState::kIncomplete:
      break;
    case RequestState::kComplete:
      answer(connection, handler, Asked::kAtOnce);
      break;
    case RequestState::kWrong:
      begin_answer(connection, HttpAnswer::of_text(400, "This is no request.\n"));
      break;
  }
  return true;
}

bool LoopbackServer::write(Connection& connection) {
  const size_t head = connection.head.size();
  const std::string_view left =
      connection.sent < head ? std::string_view(connection.head).substr(connection.sent)
                             : std::string_view(*connection.body).substr(connection.sent - head);
  const ssize_t size = send(connection.socket.get(), left.data(), left.size(), MSG_NOSIGNAL);
  if (size < 0) return is_for_later(size);
  connection.sent += static_cast<size_t>(size);
  connection.limit = Clock::now() + kProgressLimit;
  return connection.sent < head + connection.body->size();
}

bool LoopbackServer::is_own_host(const std::string& host) const {
  const std::string port = ":" + std::to_string(port_);
  return host == "127.0.0.1" + port || host == "localhost" + port;
}

void LoopbackServer::answer(Connection& connection, const Handler& handler, Asked asked) {
  const HttpRequest& request = connection.request;
  if (!is_own_host(request.host)) {
    return begin_answer(connection, HttpAnswer::of_text(403, "This server is of another name.\n"));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return begin_answer(connection, HttpAnswer::of_text(405, "Only GET and HEAD are known.\n"));
  }
  const std::optional<HttpAnswer> found = handler(request, asked);
  if (found) {
    begin_answer(connection, *found);
  } else {
    connection.state = Connection::kWaits;
  }
}

void LoopbackServer::begin_answer(Connection& connection, const HttpAnswer& answer) {
  const bool is_known = !answer.etag.empty() && answer.etag == connection.request.if_none_match;
  const int status = is_known ? 304 : answer.status;
  const bool has_body = !is_known && connection.request.method != "HEAD";
  connection.head = "HTTP/1.1 " + std::to_string(status) + " " + reason(status) + "\r\n";
  connection.head.append(kSafety);
  if (!answer.etag.empty()) connection.head += "ETag: " + answer.etag + "\r\n";
  if (status == 405) connection.head += "Allow: GET, HEAD\r\n";
  if (!is_known) {
    connection.head += "Content-Type: " + answer.type + "\r\n";
    connection.head += "Content-Length: " + std::to_string(answer.body->size()) + "\r\n";
  }
  connection.head += "\r\n";
  connection.body = has_body ? answer.body : std::make_shared<const std::string>();
  connection.state = Connection::kWrites;
  connection.limit = Clock::now() + kProgressLimit;
}

}  // namespace understudy::command
