// SPDX-License-Identifier: Apache-2.0
#include "sharing/exported_backing_files.h"

#include <algorithm>

namespace understudy {

BackingFileRecord ExportedBackingFiles::describe(const BackingFile& backing) {
  const platform::FileIdentity identity = backing.file().identity();
  return {.size = backing.size(),
          .file_system = identity.file_system,
          .inode = identity.inode,
          .states_file_system = backing.states_file().identity().file_system,
          .states_inode = backing.states_file().identity().inode,
          .descriptor = backing.file().descriptor(),
          .states_descriptor = backing.states_file().descriptor(),
          .file_kind = static_cast<uint8_t>(backing.kind()),
          .fresh_byte = backing.fresh_byte()};
}

uint16_t ExportedBackingFiles::number_of(BackingFile& backing) {
  MutexLock lock(mutex_);
  const auto found = std::find(files_.begin(), files_.end(), &backing);
  const auto number = static_cast<uint16_t>(found - files_.begin());
  if (found != files_.end()) return number;
  files_.push_back(&backing);
  server_.slots().publish_backing_file(number, describe(backing));
  return number;
}

BackingFile* ExportedBackingFiles::at(uint16_t number) const {
  MutexLock lock(mutex_);
  return number < files_.size() ? files_[number] : nullptr;
}

}  // namespace understudy
