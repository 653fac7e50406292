// SPDX-License-Identifier: Apache-2.0
//
// The backing files of this process that others may need, by number. A backing file is published in
// the process's slot of the ledger when something of it is exported for the first time; those past
// the room there are known to the share server alone. Any thread may call anything.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "memory/backing_file.h"
#include "server/server.h"

namespace understudy {

class ExportedBackingFiles {
 public:
  explicit ExportedBackingFiles(Server& server) : server_(server) {}

  // The number of a backing file, which it keeps.
  uint16_t number_of(BackingFile& backing);
  // Null if there is none of that number.
  BackingFile* at(uint16_t number) const;
  static BackingFileRecord describe(const BackingFile& backing);

 private:
  Server& server_;
  mutable Mutex mutex_{LockRank::kExportedBackingFiles};
  std::vector<BackingFile*> files_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
