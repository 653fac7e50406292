// SPDX-License-Identifier: Apache-2.0
//
// A second process, made by fork before anything else is done, and a line to it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <type_traits>

namespace bench {

// One end of a line between two processes.
class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}

  template <typename T>
  void send(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    send_bytes(&value, sizeof value);
  }
  // The benchmark ends if the other process did.
  template <typename T>
  T receive() const {
    T value{};
    receive_bytes(&value, sizeof value);
    return value;
  }
  // False at the end of the line.
  bool receive_or_end(void* bytes, size_t size) const;

 private:
  void send_bytes(const void* bytes, size_t size) const;
  void receive_bytes(void* bytes, size_t size) const;

  int socket_;
};

class OtherProcess {
 public:
  // Runs the body in it, to the end of the line.
  explicit OtherProcess(const std::function<void(const Line&)>& body);
  ~OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  const Line& line() const { return line_; }
  pid_t id() const { return id_; }

 private:
  int start(const std::function<void(const Line&)>& body);

  pid_t id_ = -1;
  int socket_ = -1;
  Line line_;
};

}  // namespace bench
