// SPDX-License-Identifier: Apache-2.0
//
// Messages between processes of one machine, over sockets that are files of a private directory.
// A message arrives whole or not at all and may carry descriptors. Nothing here waits past its
// deadline, and no descriptor is left open in fork children.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/deadline.h"
#include "base/result.h"
#include "platform/memory_file.h"
#include "platform/private_directory.h"
#include "platform/process_identity.h"
#include "platform/unique_fd.h"
#include "platform/unshared_fd.h"

namespace understudy::platform {

inline constexpr size_t kMostDescriptors = 2;  // in a message

struct Message {
  std::span<std::byte> bytes;
  std::array<UniqueFd, kMostDescriptors> descriptors;
};

enum class Received : uint8_t {
  kMessage,
  kNothingYet,
  kClosed,     // the other side is gone
  kMalformed,  // of another length, or with more descriptors than there may be
};

// Replaces a socket of that name. Fails if anything else has it, which stays as it is.
Result<UnsharedFd> listen_at(const PrivateDirectory& directory, const char* name);
// Not valid if no client waits. Fails if there is no descriptor for one that does.
Result<UnsharedFd> accept_from(int listener);
// Fails at once if no process listens there any more.
Result<UnsharedFd> connect_to(const PrivateDirectory& directory, const char* name,
                              Deadline deadline);

// False if the other side is gone or does not read.
bool send_message(int socket, std::span<const std::byte> bytes,
                  std::span<const int> descriptors = {});
// Takes a message of exactly the length of `message.bytes`, if one is there.
Received receive_message(int socket, Message& message);

struct SocketPeer {
  uint32_t user = 0;
  ProcessIdentity process;  // as seen from here; id 0 if it cannot be
};
// Who is at the other end: the process that connected.
Result<SocketPeer> peer_of(int socket);
bool is_own_user(uint32_t user);

// Something to wait for: a descriptor with something to read, or hung up.
struct Watched {
  int descriptor = -1;
  bool ready = false;
};
// Until one of them is ready or the deadline.
void wait_for_any(std::span<Watched> watched, Deadline deadline);

// Wakes a thread in wait_for_any.
class WakeSignal {
 public:
  static Result<WakeSignal> make();
  int descriptor() const { return waiting_.get(); }
  void raise() const;
  void clear() const;

 private:
  WakeSignal(UnsharedFd waiting, UnsharedFd raising)
      : waiting_(std::move(waiting)),
        raising_(std::move(raising)),
        waiting_identity_(identity_of_file(waiting_.get())),
        raising_identity_(identity_of_file(raising_.get())) {}

  // A pair of sockets, whose identities tell whether the program has closed them: nothing may be
  // written to a file that has their number by now.
  UnsharedFd waiting_;
  UnsharedFd raising_;
  FileIdentity waiting_identity_;
  FileIdentity raising_identity_;
};

}  // namespace understudy::platform
