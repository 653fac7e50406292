// SPDX-License-Identifier: Apache-2.0
//
// Hazard pointers: how a reader keeps a mapping, and the bytes behind it, from being taken away
// while it copies, without writing to anything that other readers write to. A reader publishes the
// mapping in a hazard pointer of its own thread; the thread that ends a mapping scans them all and
// leaves the mapping on the retire list while one of them names it.
//
// One registry per process, never destroyed. A thread's record is claimed at its first pin and
// free for another thread after its end. What the threads of its parent pin is nothing to a fork
// child: their records stay taken, and no scan looks at them.
#pragma once

namespace understudy {

// One of the calling thread's hazard pointers (there are kSlotsPerThread), for its lifetime.
class HazardPin {
 public:
  static constexpr unsigned kSlotsPerThread = 4;

  HazardPin();
  ~HazardPin();
  HazardPin(const HazardPin&) = delete;
  HazardPin& operator=(const HazardPin&) = delete;

  // Replaces what this pin holds. The caller then makes sure that the mapping was still entered.
  void publish(const void* mapping);
  void clear();

 private:
  unsigned slot_;
};

// From now on the calling thread's pins need no memory.
void prepare_pins();

// Whether any thread of this process pins it at this moment.
bool is_pinned(const void* mapping);
// Whether any thread pins something that lies in [begin, end).
bool is_any_pinned(const void* begin, const void* end);
// Waits until no thread does. REQUIRES: the caller pins nothing there itself.
void wait_until_unpinned(const void* begin, const void* end);

}  // namespace understudy
