// SPDX-License-Identifier: Apache-2.0
#include "tools/live_document.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "tools/recording/page_document.h"
#include "tools/recording/recording.h"
#include "tools/recording/recording_state.h"

namespace understudy::command {

namespace {

LiveDocument document_of(Recording recording, const std::string& note, const std::string& etag) {
  recording.notes.push_back(note);
  return {std::make_shared<const std::string>(page_document(recording)), etag};
}

}  // namespace

// Used by one thread.
class LiveDocumentMaker::Maker {
 public:
  explicit Maker(const std::string& path) : path_(path) {}

  // Nothing if the last one is still right.
  std::optional<LiveDocument> make();

 private:
  const std::string path_;
  bool is_first_ = true;
  std::optional<RecordingState> state_;
};

std::optional<LiveDocument> LiveDocumentMaker::Maker::make() {
  const bool is_first = std::exchange(is_first_, false);
  const Result<RecordingState> state = look_at_recording(path_);
  if (!state.ok()) {
    if (!is_first) return std::nullopt;
    return document_of({}, "live: waiting for a recording in " + path_, "\"waiting\"");
  }
  if (state_ == state.value()) return std::nullopt;
  Result<Recording> recording = read_recording(path_);
  if (!recording.ok()) return std::nullopt;
  state_ = state.value();
  char etag[32];
  snprintf(etag, sizeof etag, "\"%" PRIx64 "%s\"", state_->fingerprint,
           state_->has_ended ? ".end" : "");
  return document_of(std::move(recording.value()),
                     state_->has_ended ? "live: all recorded programs have ended"
                                       : "live: this page follows the program that is recorded",
                     etag);
}

struct LiveDocumentMaker::Shared {
  explicit Shared(const std::string& path) : maker(path), news(eventfd(0, EFD_CLOEXEC)) {}

  Maker maker;
  const platform::UniqueFd news;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_wanted = false;
  bool has_ended = false;
  LiveDocument latest;
};

LiveDocumentMaker::LiveDocumentMaker(const std::string& path)
    : shared_(std::make_shared<Shared>(path)) {
  if (!shared_->news.valid()) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  std::thread(work, shared_).detach();
}

LiveDocumentMaker::~LiveDocumentMaker() {
  const std::lock_guard lock(shared_->mutex);
  shared_->has_ended = true;
  shared_->changed.notify_one();
}

void LiveDocumentMaker::ask() {
  const std::lock_guard lock(shared_->mutex);
  shared_->is_wanted = true;
  shared_->changed.notify_one();
}

int LiveDocumentMaker::news() const { return shared_->news.get(); }

LiveDocument LiveDocumentMaker::latest() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->latest;
}

void LiveDocumentMaker::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->is_wanted || shared->has_ended; });
    if (shared->has_ended) return;
    shared->is_wanted = false;
    lock.unlock();
    std::optional<LiveDocument> made;
    try {
      made = shared->maker.make();
    } catch (const std::bad_alloc&) {
      // The last one stays; there may be memory the next time.
    }
    lock.lock();
    if (made) shared->latest = std::move(*made);
    (void)eventfd_write(shared->news.get(), 1);
  }
}

}  // namespace understudy::command
