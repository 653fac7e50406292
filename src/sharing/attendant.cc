// SPDX-License-Identifier: Apache-2.0
#include "sharing/attendant.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/pause.h"
#include "platform/futex.h"
#include "platform/host_facts.h"
#include "platform/thread.h"

namespace understudy {

namespace {

constexpr size_t kMostGuests = 256;
constexpr std::chrono::seconds kGuestTime(5);
constexpr std::chrono::milliseconds kLookTime(500);  // where nobody tells us of an end
constexpr std::chrono::milliseconds kClosedTime(20);

// The file of the socket goes when the process ends as it should; otherwise with its slot.
struct SocketFile {
  std::atomic<const platform::PrivateDirectory*> directory{nullptr};
  std::atomic<unsigned> slot{0};
  std::atomic<int32_t> process{0};
};
SocketFile socket_file;

void remove_socket_file() {
  const platform::PrivateDirectory* const directory = socket_file.directory.load();
  if (directory == nullptr || socket_file.process.load() != platform::process_id()) return;
  directory->remove(Ledger::socket_name(socket_file.slot.load()).c_str());
}

}  // namespace

Attendant::~Attendant() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
    if (started_) wake_->raise();
  }
  while (running_.load() != 0) platform::sleep_on(running_, 1, kNever);
  if (socket_file.directory.load() == ledger_.directory()) socket_file.directory.store(nullptr);
}

Result<void> Attendant::start_locked() {
  if (started_) return {};
  if (!wake_) {
    US_TRY_ASSIGN(platform::WakeSignal wake, platform::WakeSignal::make());
    wake_.emplace(std::move(wake));
  }
  running_.store(1);
  Result<void> started = platform::start_thread(
      "us-attendant", [](void* self) { static_cast<Attendant*>(self)->run(); }, this);
  if (!started.ok()) {
    running_.store(0);
    return started;
  }
  started_ = true;
  return {};
}

Result<void> Attendant::listen() {
  MutexLock lock(mutex_);
  if (listener_.valid() || ledger_.directory() == nullptr) return {};
  US_TRY(start_locked());
  const std::string name = Ledger::socket_name(ledger_.own_slot());
  US_TRY_ASSIGN(listener_, platform::listen_at(*ledger_.directory(), name.c_str()));
  static const bool registered = [] { return std::atexit(remove_socket_file) == 0; }();
  (void)registered;
  socket_file.slot.store(ledger_.own_slot());
  socket_file.process.store(platform::process_id());
  socket_file.directory.store(ledger_.directory());
  wake_->raise();
  return {};
}

Result<void> Attendant::watch(ProcessTag process, const platform::ProcessIdentity& identity) {
  MutexLock lock(mutex_);
  US_TRY(start_locked());
  // In another namespace the number may mean another process, or none.
  const Result<std::optional<platform::ProcessIdentity>> found =
      platform::identity_of_process(identity.id);
  platform::UnsharedFd descriptor;
  if (found.ok() && found.value() == identity) {
    descriptor = platform::UnsharedFd(platform::open_process(identity.id));
  }
  watched_.push_back({process, std::move(descriptor)});
  wake_->raise();
  return {};
}

void Attendant::forget(ProcessTag process) {
  MutexLock lock(mutex_);
  std::erase_if(watched_, [&](const Watch& each) { return each.process == process; });
}

void Attendant::run() {
  while (true) {
    try {
      wait();
      if (is_ending()) break;
      admit_guests();
      serve_guests();
      look_after_watched();
    } catch (const std::bad_alloc&) {
      nap();  // whoever asked asks again, or gives up
    }
  }
  guests_.clear();
  // Whoever waits for this may end the attendant at once: the last thing that is done with it.
  std::atomic<uint32_t>& running = running_;
  running.store(0);
  platform::wake_all(running);
}

bool Attendant::is_ending() {
  MutexLock lock(mutex_);
  return ends_;
}

void Attendant::wait() {
  std::vector<platform::Watched> watched;
  Deadline deadline = guests_.empty() ? kNever : guests_.front().deadline;
  {
    MutexLock lock(mutex_);
    watched.push_back({wake_->descriptor()});
    if (closed_) {
      deadline = std::min(deadline, *closed_);
    } else if (listener_.valid()) {
      watched.push_back({listener_.get()});
    }
    for (const Watch& each : watched_) {
      if (each.descriptor.valid()) {
        watched.push_back({each.descriptor.get()});
      } else {
        deadline = std::min(deadline, Clock::now() + kLookTime);
      }
    }
  }
  for (const Guest& guest : guests_) watched.push_back({guest.socket.get()});
  platform::wait_for_any(watched, deadline);
  if (watched.front().ready) wake_->clear();
}

void Attendant::admit_guests() {
  closed_.reset();
  while (true) {
    Result<platform::UnsharedFd> accepted = accept();
    if (!accepted.ok()) {
      if (!is_awaited()) return;
      // One guest less is the way out, if there is one.
      if (guests_.empty()) {
        closed_ = Clock::now() + kClosedTime;
        return;
      }
      guests_.erase(guests_.begin());
      continue;
    }
    if (!accepted.value().valid()) return;
    Guest guest{std::move(accepted.value()), Clock::now() + kGuestTime};
    if (serve(guest)) continue;
    if (guests_.size() == kMostGuests) guests_.erase(guests_.begin());
    guests_.push_back(std::move(guest));
  }
}

// Whether someone wants in.
bool Attendant::is_awaited() {
  MutexLock lock(mutex_);
  platform::Watched listener{listener_.get()};
  platform::wait_for_any({&listener, 1}, Clock::now());
  return listener.ready;
}

Result<platform::UnsharedFd> Attendant::accept() {
  MutexLock lock(mutex_);
  if (!listener_.valid()) return platform::UnsharedFd();
  return platform::accept_from(listener_.get());
}

void Attendant::serve_guests() {
  std::erase_if(guests_,
                [&](const Guest& guest) { return serve(guest) || has_passed(guest.deadline); });
}

bool Attendant::serve(const Guest& guest) {
  ShareRequest request;
  platform::Message message{.bytes = bytes_of(request), .descriptors = {}};
  switch (platform::receive_message(guest.socket.get(), message)) {
    case platform::Received::kNothingYet:
      return false;
    case platform::Received::kMessage:
      break;
    case platform::Received::kClosed:
    case platform::Received::kMalformed:
      return true;
  }
  if (request.protocol != kShareProtocol) return true;
  ShareAnswer answer;
  std::vector<int> descriptors;
  if (const Result<platform::SocketPeer> peer = platform::peer_of(guest.socket.get()); peer.ok()) {
    if (!platform::is_own_user(peer.value().user)) return true;
    descriptors = client_.answer(request, peer.value(), answer);
  } else {
    answer.verdict = ShareVerdict::kBusy;
  }
  if (!platform::send_message(guest.socket.get(), bytes_of(answer), descriptors)) {
    answer = {.verdict = ShareVerdict::kBusy, .store = {}};
    (void)platform::send_message(guest.socket.get(), bytes_of(answer));
  }
  return true;
}

void Attendant::look_after_watched() {
  std::vector<ProcessTag> ended;
  {
    MutexLock lock(mutex_);
    for (Watch& each : watched_) {
      if (!ledger_.is_alive(each.process)) {
        ended.push_back(each.process);
      } else if (each.descriptor.valid() && platform::has_ended(each.descriptor.get())) {
        // In another namespace the number means another process.
        each.descriptor = {};
      }
    }
  }
  for (const ProcessTag process : ended) {
    forget(process);
    client_.note_end(process);
  }
}

}  // namespace understudy
