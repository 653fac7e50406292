// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recording_state.h"

#include <algorithm>
#include <vector>

#include "platform/process_identity.h"
#include "tools/recording/chunk_file.h"

namespace understudy::command {

namespace {

class Fingerprint {
 public:
  void add(uint64_t number) {
    value_ = (value_ ^ number) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 32;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1;
};

bool is_gone(const platform::ProcessIdentity& process) {
  return platform::presence_of(process) == platform::Presence::kGone;
}

}  // namespace

Result<RecordingState> look_at_recording(const std::string& path) {
  US_TRY_ASSIGN(ChunkFile file, ChunkFile::open(path));
  Fingerprint fingerprint;
  fingerprint.add(file.facts().wall_clock);
  fingerprint.add(file.facts().lost);
  std::vector<platform::ProcessIdentity> processes;
  for (uint64_t index = 1; index < file.chunks(); ++index) {
    ChunkFacts chunk;
    if (!file.read_header(index, chunk)) continue;
    fingerprint.add(index);
    fingerprint.add(chunk.process_start);
    fingerprint.add(chunk.serial);
    fingerprint.add(chunk.state);
    fingerprint.add(chunk.open_since);
    // Full chunks stay as they are until they are written anew, with another serial.
    if (chunk.state == static_cast<uint32_t>(ChunkState::kOpen)) {
      fingerprint.add(file.read_records(chunk).size());
    }
    const platform::ProcessIdentity process{static_cast<int32_t>(chunk.process),
                                            chunk.process_start, chunk.process_namespace};
    if (processes.empty() || processes.back() != process) processes.push_back(process);
  }
  const bool has_ended =
      !processes.empty() && std::all_of(processes.begin(), processes.end(), is_gone);
  return RecordingState{fingerprint.value(), has_ended};
}

}  // namespace understudy::command
