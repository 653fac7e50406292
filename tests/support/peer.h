// SPDX-License-Identifier: Apache-2.0
//
// Other processes for a test, real ones: this very binary, started anew, running one function.
//
//   US_PEER(ImportsOnce) {                       // in the other process; `channel` leads back
//     const auto token = channel.receive<uint64_t>();
//     aclrtDrvMemHandle handle = nullptr;
//     ASSERT_SUCCESS(aclrtSetDevice(0));         // a failure here fails the test
//     channel.send(aclrtMemImportFromShareableHandle(token, 0, &handle));
//     channel.wait_for_end();                    // until the test lets go of the peer
//   }
//
//   TEST(SHARE_32, AnyOtherProcessSucceedsWithTheWhitelistOff) {
//     ...
//     Peer peer(ImportsOnce);
//     peer.send(token);
//     EXPECT_EQ(peer.receive<aclError>(), ACL_SUCCESS);
//     peer.finish();                             // or ~Peer, or peer.kill() for kill -9
//   }
//
// A peer sees the same software NPUs as the test, unless its environment says otherwise. It dies
// with the test. Nothing here waits longer than a minute.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "support/fresh_process.h"

namespace understudy_test {

// One end of a connection between two processes. What is sent arrives whole and in order.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  template <typename T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    send_bytes(&value, sizeof value);
  }
  // If the other side is gone or silent for a minute: a failure of the test, and T{}.
  template <typename T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!receive_bytes(&value, sizeof value)) {
      ADD_FAILURE() << "the other process sent nothing of the size that was waited for";
      return T{};
    }
    return value;
  }
  // Whether something can be received in that time; also true if the other side has ended.
  bool becomes_readable(std::chrono::milliseconds time) const;
  // False if the other side ended instead.
  bool receive_bytes(void* bytes, size_t size);
  void send_bytes(const void* bytes, size_t size);
  // Until the other side lets go.
  void wait_for_end();
  void close();

 private:
  int descriptor_;
};

using PeerBody = void (*)(Channel& channel);

class Peer {
 public:
  explicit Peer(PeerBody body, std::initializer_list<Variable> environment = {});
  // Lets the peer end, as finish() does.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  pid_t pid() const { return pid_; }
  template <typename T>
  void send(const T& value) {
    channel_.send(value);
  }
  template <typename T>
  T receive() {
    return channel_.receive<T>();
  }
  Channel& channel() { return channel_; }

  // Lets go of it and waits for its end; a failure in it is one of the test.
  void finish();
  // Ends it at once and waits until it is gone.
  void kill(int signal = SIGKILL);
  void signal(int signal) const { ::kill(pid_, signal); }

 private:
  int wait();

  pid_t pid_ = -1;
  Channel channel_;
};

// For main: runs the peer that this process is to be. False if it is none.
bool ran_as_peer(int& exit_code);

struct PeerRegistration {
  PeerRegistration(const char* name, PeerBody body);
};

}  // namespace understudy_test

// Names are unique in a test program.
#define US_PEER(name)                                                           \
  static void name(::understudy_test::Channel& channel);                        \
  static const ::understudy_test::PeerRegistration us_peer_##name(#name, name); \
  static void name([[maybe_unused]] ::understudy_test::Channel& channel)
