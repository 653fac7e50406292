// SPDX-License-Identifier: Apache-2.0
#include "sharing/share_server.h"

#include <algorithm>
#include <new>

#include "base/pause.h"
#include "platform/futex.h"
#include "platform/host_facts.h"
#include "platform/thread.h"

namespace understudy {

namespace {

constexpr size_t kMostConnections = 256;
constexpr std::chrono::seconds kConnectionTime(5);
constexpr std::chrono::milliseconds kLookTime(500);  // where the kernel does not tell us of an end
constexpr std::chrono::milliseconds kClosedTime(20);

// Until what did not work is tried again.
constexpr std::chrono::milliseconds kFirstPause(20);
constexpr std::chrono::milliseconds kLongestPause(320);

}  // namespace

void ShareServer::stop() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
    if (wake_) wake_->raise();
  }
  while (running_.load() != 0) platform::sleep_on(running_, 1, kNever);
  withdraw();
}

void ShareServer::withdraw() {
  MutexLock lock(mutex_);
  // A slot that was lost may be another process's by now.
  if (!listener_.valid() || !server_.slots().has_own_slot()) return;
  server_.directory()->remove_socket(ProcessSlots::socket_name(server_.slots().own_slot()).c_str());
}

Result<void> ShareServer::start_locked() {
  if (started_) return {};
  if (!wake_) {
    US_TRY_ASSIGN(platform::WakeSignal wake, platform::WakeSignal::make());
    wake_.emplace(std::move(wake));
  }
  running_.store(1);
  Result<void> started = platform::start_thread(
      "us-share", [](void* self) { static_cast<ShareServer*>(self)->run(); }, this);
  if (!started.ok()) {
    running_.store(0);
    return started;
  }
  started_ = true;
  return {};
}

Result<void> ShareServer::listen() {
  MutexLock lock(mutex_);
  if (listener_.valid() || server_.directory() == nullptr) return {};
  US_TRY(start_locked());
  const std::string name = ProcessSlots::socket_name(server_.slots().own_slot());
  US_TRY_ASSIGN(listener_, platform::listen_at(*server_.directory(), name.c_str()));
  wake_->raise();
  return {};
}

Result<void> ShareServer::watch(ProcessTag process, const platform::ProcessIdentity& identity) {
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

void ShareServer::forget(ProcessTag process) noexcept {
  MutexLock lock(mutex_);
  std::erase_if(watched_, [&](const Watch& each) { return each.process == process; });
}

void ShareServer::wake() noexcept {
  if (has_chores_.exchange(true)) return;  // it looks again by itself
  MutexLock lock(mutex_);
  if (started_) wake_->raise();
}

void ShareServer::run() {
  while (true) {
    try {
      wait();
      if (is_ending()) break;
      accept_connections();
      serve_connections();
      again_.reset();
      do_chores();
      look_after_watched();
      if (!again_) pause_ = {};
    } catch (const std::bad_alloc&) {
      nap();  // the client asks again, or gives up
    }
  }
  connections_.clear();
  // The thread that waits for this may end the share server at once: the last thing done with it.
  std::atomic<uint32_t>& running = running_;
  running.store(0);
  platform::wake_all(running);
}

bool ShareServer::is_ending() {
  MutexLock lock(mutex_);
  return ends_;
}

void ShareServer::wait() {
  std::vector<platform::Watched> watched;
  Deadline deadline = connections_.empty() ? kNever : connections_.front().deadline;
  if (again_) deadline = std::min(deadline, *again_);
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
      } else if (!each.has_ended) {
        deadline = std::min(deadline, Clock::now() + kLookTime);
      }
    }
  }
  for (const Connection& connection : connections_) watched.push_back({connection.socket.get()});
  platform::wait_for_any(watched, deadline);
  if (!watched.front().ready) return;
  MutexLock lock(mutex_);
  wake_->clear();
}

void ShareServer::try_again_later() {
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  again_ = Clock::now() + pause_;
}

void ShareServer::do_chores() {
  if (!has_chores_.exchange(false)) return;
  if (events_.chores()) return;
  has_chores_.store(true);
  try_again_later();
}

void ShareServer::accept_connections() {
  closed_.reset();
  while (true) {
    Result<platform::UnsharedFd> accepted = accept();
    if (!accepted.ok()) {
      if (!is_awaited()) return;
      // One connection less is the way out, if there is one.
      if (connections_.empty()) {
        closed_ = Clock::now() + kClosedTime;
        return;
      }
      connections_.erase(connections_.begin());
      continue;
    }
    if (!accepted.value().valid()) return;
    Connection connection{std::move(accepted.value()), Clock::now() + kConnectionTime};
    if (serve(connection)) continue;
    if (connections_.size() == kMostConnections) connections_.erase(connections_.begin());
    connections_.push_back(std::move(connection));
  }
}

// Whether someone wants in.
bool ShareServer::is_awaited() {
  MutexLock lock(mutex_);
  platform::Watched listener{listener_.get()};
  platform::wait_for_any({&listener, 1}, Clock::now());
  return listener.ready;
}

Result<platform::UnsharedFd> ShareServer::accept() {
  MutexLock lock(mutex_);
  if (!listener_.valid()) return platform::UnsharedFd();
  return platform::accept_from(listener_.get());
}

void ShareServer::serve_connections() {
  std::erase_if(connections_, [&](const Connection& connection) {
    return serve(connection) || has_passed(connection.deadline);
  });
}

bool ShareServer::serve(const Connection& connection) {
  ShareRequest request;
  platform::Message message{.bytes = bytes_of(request), .descriptors = {}};
  switch (platform::receive_message(connection.socket.get(), message)) {
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
  if (const Result<platform::SocketPeer> peer = platform::peer_of(connection.socket.get());
      peer.ok()) {
    if (!platform::is_own_user(peer.value().user)) return true;
    descriptors = events_.request(request, peer.value(), answer);
  } else {
    answer.verdict = ShareVerdict::kBusy;
  }
  if (!platform::send_message(connection.socket.get(), bytes_of(answer), descriptors)) {
    answer = {.verdict = ShareVerdict::kBusy, .backing = {}};
    (void)platform::send_message(connection.socket.get(), bytes_of(answer));
  }
  return true;
}

void ShareServer::look_after_watched() {
  std::vector<ProcessTag> ended;
  {
    MutexLock lock(mutex_);
    for (Watch& each : watched_) {
      if (!each.has_ended && !server_.slots().is_alive(each.process)) {
        each.has_ended = true;
        each.descriptor = {};
      }
      if (each.has_ended) {
        ended.push_back(each.process);
      } else if (each.descriptor.valid() && platform::has_ended(each.descriptor.get())) {
        // In another namespace the number means another process.
        each.descriptor = {};
      }
    }
  }
  for (const ProcessTag process : ended) {
    if (events_.process_ended(process)) {
      forget(process);
    } else {
      try_again_later();
    }
  }
}

}  // namespace understudy
