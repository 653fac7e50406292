// SPDX-License-Identifier: Apache-2.0
//
// The timeline page's document of a recording that may grow (recording/page_document.h), made anew
// by a thread of its own when it is asked for and the recording has changed. A file that is not
// there yet is waited for; one that cannot be read any more leaves the last document.
#pragma once

#include <memory>
#include <string>

#include "platform/unique_fd.h"

namespace understudy::command {

struct LiveDocument {
  std::shared_ptr<const std::string> bytes;  // null: there is no memory for one
  std::string etag;                          // another one if the bytes are others
};

class LiveDocumentMaker {
 public:
  // Throws std::system_error if there can be no thread or descriptor.
  explicit LiveDocumentMaker(const std::string& path);
  // Does not wait for a document that is made at this moment: that takes seconds, and ends nothing
  // but this process.
  ~LiveDocumentMaker();
  LiveDocumentMaker(const LiveDocumentMaker&) = delete;
  LiveDocumentMaker& operator=(const LiveDocumentMaker&) = delete;

  // Has the recording looked at. `news` becomes readable when that is done.
  void ask();
  int news() const;
  LiveDocument latest() const;

 private:
  class Maker;
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace understudy::command
