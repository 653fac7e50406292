// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server for browsers of this machine: it listens on 127.0.0.1 alone, answers a
// request per connection, and has bounds for how many there are, how long a request is and how slow
// a client may be. One thread: a handler does not wait, but says that its answer is to come.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "platform/unique_fd.h"
#include "tools/http_request.h"

namespace understudy::command {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // shared by all who get it
  std::string etag;                         // empty: none

  static HttpAnswer of_text(int status, const char* text) {
    return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(text), ""};
  }
};

class LoopbackServer {
 public:
  // Asked for the answer of a request: at once, and, if there is none yet, whenever there is news.
  enum class Asked : unsigned char { kAtOnce, kAgain };
  using Handler = std::function<std::optional<HttpAnswer>(const HttpRequest&, Asked)>;

  // 0: any port that is free.
  static Result<LoopbackServer> listen(uint16_t port);

  uint16_t port() const { return port_; }
  // Serves until `stop` becomes readable. `news` is an eventfd(2). A request that does not name
  // this server as its host never reaches the handler: another site's name may lead here.
  void serve(int stop, int news, const Handler& handler);

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    platform::UniqueFd socket;
    Clock::time_point limit;
    enum { kReads, kWaits, kWrites } state = kReads;
    std::string received;
    HttpRequest request;
    std::string head;
    std::shared_ptr<const std::string> body;
    size_t sent = 0;
  };

  LoopbackServer(platform::UniqueFd socket, uint16_t port)
      : socket_(std::move(socket)), port_(port) {}

  bool is_own_host(const std::string& host) const;
  void accept_connection();
  // These are false if the connection is to be closed.
  bool go_on(Connection& connection, const Handler& handler);
  bool read(Connection& connection, const Handler& handler);
  bool write(Connection& connection);
  void answer(Connection& connection, const Handler& handler, Asked asked);
  void begin_answer(Connection& connection, const HttpAnswer& answer);

  platform::UniqueFd socket_;
  uint16_t port_;
  std::list<Connection> connections_;
};

}  // namespace understudy::command
