// SPDX-License-Identifier: Apache-2.0
//
// The thread that attends to other processes: it answers those who want to import, and notices the
// end of those from whom this process has imported. Started when it is first needed; sleeps while
// there is nothing to do. Whoever connects has a few seconds to say what it wants, and of many who
// do not, the oldest is sent away: nobody can keep it from its work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "device/ledger.h"
#include "platform/local_socket.h"
#include "sharing/share_protocol.h"

namespace understudy {

// Who knows the answers. Called on the attendant's thread.
class AttendantClient {
 public:
  // Fills the answer; the descriptors to send with it, or none.
  virtual std::vector<int> answer(const ShareRequest& request, const platform::SocketPeer& peer,
                                  ShareAnswer& answer) = 0;
  // A process of the server that was watched has ended.
  virtual void note_end(ProcessTag process) = 0;

 protected:
  ~AttendantClient() = default;
};

class Attendant {
 public:
  Attendant(Ledger& ledger, AttendantClient& client) : ledger_(ledger), client_(client) {}
  ~Attendant();

  // From now on others can connect to this process.
  Result<void> listen();
  // note_end() is called when the process has ended.
  Result<void> watch(ProcessTag process, const platform::ProcessIdentity& identity);
  void forget(ProcessTag process);

 private:
  struct Guest {
    platform::UnsharedFd socket;
    Deadline deadline;
  };
  struct Watch {
    ProcessTag process;
    platform::UnsharedFd descriptor;  // not valid: look from time to time
  };

  Result<void> start_locked() US_REQUIRES(mutex_);
  void run();
  bool is_ending();
  // Until something happens.
  void wait();
  void admit_guests();
  Result<platform::UnsharedFd> accept();
  bool is_awaited();
  void serve_guests();
  // True: the guest has what it came for, or never will.
  bool serve(const Guest& guest);
  void look_after_watched();

  Ledger& ledger_;
  AttendantClient& client_;
  std::vector<Guest> guests_;       // oldest first; the thread's own
  std::optional<Deadline> closed_;  // nobody is admitted until then, for want of descriptors

  Mutex mutex_{LockRank::kAttendant};
  bool started_ US_GUARDED_BY(mutex_) = false;
  bool ends_ US_GUARDED_BY(mutex_) = false;
  platform::UnsharedFd listener_ US_GUARDED_BY(mutex_);
  std::vector<Watch> watched_ US_GUARDED_BY(mutex_);
  std::optional<platform::WakeSignal> wake_;  // constant once started
  std::atomic<uint32_t> running_{0};          // to sleep on until the thread has ended
};

}  // namespace understudy
