// SPDX-License-Identifier: Apache-2.0
//
// Who knows what processes share. Memory asks before it uses an extent again that others may have.
#pragma once

#include "base/virtual_range.h"
#include "memory/block.h"

namespace understudy {

class MemoryKeeper {
 public:
  // The program has no handle of an exported block any more, but it is still mapped.
  virtual void close(Block& block) = 0;
  // Nothing of this process refers to an exported block any more. True: its memory is no longer
  // shared, and this process's to use again. False: keep() is called when no reader is left either.
  virtual bool leave(Block& block) = 0;
  // Takes over the extent of a block that was left while others have it, or that was imported.
  virtual void keep(const Block& block) = 0;
  // The same two for a small allocation at an address: it was freed.
  virtual bool leave_slot(VirtualAddress address) = 0;

 protected:
  ~MemoryKeeper() = default;
};

}  // namespace understudy
