// SPDX-License-Identifier: Apache-2.0
//
// The thread that attends to other processes: it answers those that want to import, and notices the
// end of those from which this process has imported. It also does the chores that could not be done
// at once. Started when it is first needed; sleeps while there is nothing to do. A process that
// connects has a few seconds to say what it wants, and of many that do not, the oldest is sent
// away: none can keep the thread from its work. Of the protocol, share_client.h is the other side.
// Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "platform/local_socket.h"
#include "server/server.h"
#include "sharing/share_protocol.h"

namespace understudy {

// What the thread calls. None of them waits for another process.
struct ShareServerEvents {
  // Fills the answer; the descriptors to send with it, or none.
  std::function<std::vector<int>(const ShareRequest& request, const platform::SocketPeer& peer,
                                 ShareAnswer& answer)>
      request;
  // A process that was watched has ended. False: tell it again in a moment.
  std::function<bool(ProcessTag process)> process_ended;
  // After wake(). False: there is more to do in a moment.
  std::function<bool()> chores;
};

class ShareServer {
 public:
  ShareServer(Server& server, ShareServerEvents events)
      : server_(server), events_(std::move(events)) {}
  ~ShareServer() { stop(); }
  ShareServer(const ShareServer&) = delete;
  ShareServer& operator=(const ShareServer&) = delete;

  // From now on others can connect to this process.
  Result<void> listen();
  // Events tell when the process has ended.
  Result<void> watch(ProcessTag process, const platform::ProcessIdentity& identity);
  void forget(ProcessTag process) noexcept;
  // There are chores. Nothing happens if no thread was started yet.
  void wake() noexcept;
  // Removes the socket's file; otherwise it goes with the slot of the process.
  void withdraw();
  // Ends the thread. Events are called no more.
  void stop();

 private:
  struct Connection {
    platform::UnsharedFd socket;
    Deadline deadline;
  };
  struct Watch {
    ProcessTag process;
    platform::UnsharedFd descriptor;  // not valid: look from time to time
    bool has_ended = false;
  };

  Result<void> start_locked() US_REQUIRES(mutex_);
  void run();
  bool is_ending();
  // Until something happens.
  void wait();
  void accept_connections();
  Result<platform::UnsharedFd> accept();
  bool is_awaited();
  void serve_connections();
  // True: the connection has what it came for, or never will.
  bool serve(const Connection& connection);
  void look_after_watched();
  void do_chores();
  // Something is to be tried again, later each time.
  void try_again_later();

  Server& server_;
  const ShareServerEvents events_;
  // The thread's own.
  std::vector<Connection> connections_;  // oldest first
  std::optional<Deadline> closed_;       // no one is admitted until then, for want of descriptors
  std::optional<Deadline> again_;        // when to try again what did not work
  std::chrono::milliseconds pause_{0};   // before that

  std::atomic<bool> has_chores_{false};

  Mutex mutex_{LockRank::kShareServer};
  bool started_ US_GUARDED_BY(mutex_) = false;
  bool ends_ US_GUARDED_BY(mutex_) = false;
  platform::UnsharedFd listener_ US_GUARDED_BY(mutex_);
  std::vector<Watch> watched_ US_GUARDED_BY(mutex_);
  std::optional<platform::WakeSignal> wake_ US_GUARDED_BY(mutex_);
  std::atomic<uint32_t> running_{0};  // to sleep on until the thread has ended
};

}  // namespace understudy
