// SPDX-License-Identifier: Apache-2.0
//
// How many of some processes live, by one question that costs the same however many they are. Each
// of them attaches a segment of System V shared memory, which holds nothing but a mark. The kernel
// counts the attachments (shmctl(2), shm_nattch) and takes one back when its process ends or
// executes another program, however that happens, before any other process can see it ended. That
// takes no descriptor, and pid namespaces make no difference; a process of another IPC namespace
// cannot attach. Fork children do not inherit the attachment. The segment ends with the last one.
//
// Any thread may call anything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace understudy::platform {

class Attachment {
 public:
  // Tells a segment from others: their numbers mean something else in other namespaces, and later.
  using Mark = std::array<uint64_t, 2>;

  // Attaches a new segment. Nothing if the host has none.
  static std::optional<Attachment> make(const Mark& mark);
  // Attaches a segment that another process made. Nothing if there is none of this mark here.
  static std::optional<Attachment> join(int32_t segment, const Mark& mark);
  Attachment(Attachment&& other) noexcept
      : segment_(other.segment_), memory_(std::exchange(other.memory_, nullptr)) {}
  Attachment& operator=(Attachment&& other) noexcept {
    std::swap(segment_, other.segment_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Attachment();

  int32_t segment() const { return segment_; }
  // How many attachments the segment has. Nothing if the host does not tell any more.
  std::optional<uint64_t> count() const;

 private:
  Attachment(int32_t segment, void* memory) : segment_(segment), memory_(memory) {}
  static std::optional<Attachment> attach(int32_t segment, int flags);

  int32_t segment_;
  void* memory_;
};

}  // namespace understudy::platform
