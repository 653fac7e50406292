// SPDX-License-Identifier: Apache-2.0
#include "sharing/share_client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/pause.h"
#include "platform/system_number.h"
#include "platform/thread.h"
#include "sharing/share_lookup.h"

namespace understudy {

namespace {

constexpr std::chrono::milliseconds kLook(50);

Error does_not_answer(int32_t process) {
  return Error::format(ErrorCode::kConnection,
                       "process %d, which exported it, has not answered for %d seconds", process,
                       static_cast<int>(kLedgerPatience.count()));
}

OpenedBackingFile files_of(const BackingFileRecord& record, platform::UniqueFd file,
                           platform::UniqueFd states) {
  const auto kind = static_cast<platform::FileKind>(record.file_kind);
  const uint64_t granules = record.size / kGranule;
  return {record, platform::MemoryFile::adopt(std::move(file), kind, record.size),
          platform::MemoryFile::adopt(std::move(states), platform::FileKind::kShared,
                                      granules * sizeof(uint32_t))};
}

}  // namespace

Result<std::optional<OpenedBackingFile>> ShareClient::obtain(ShareToken token,
                                                             const ShareView& view, bool wants_file,
                                                             Deadline deadline) const {
  if (view.description.open_to_all) {
    Result<OpenedBackingFile> opened = open_directly(view);
    if (opened.ok()) return std::optional<OpenedBackingFile>(std::move(opened.value()));
  }
  return ask_exporter(token, view, wants_file, deadline);
}

// The quick way, without the exporter's help: its descriptors can be opened by other processes of
// the user.
Result<OpenedBackingFile> ShareClient::open_directly(const ShareView& view) const {
  const std::optional<BackingFileRecord> published =
      server_.slots().backing_file(view.owner, view.description.backing);
  if (!published) return unknown_share();
  const BackingFileRecord& record = *published;
  const int32_t process = server_.slots().process_id(view.owner);
  const uint64_t granules = record.size / kGranule;
  US_TRY_ASSIGN(platform::MemoryFile file,
                platform::MemoryFile::open_of_process(
                    process, record.descriptor, {record.file_system, record.inode},
                    static_cast<platform::FileKind>(record.file_kind), record.size));
  US_TRY_ASSIGN(
      platform::MemoryFile states,
      platform::MemoryFile::open_of_process(
          process, record.states_descriptor, {record.states_file_system, record.states_inode},
          platform::FileKind::kShared, granules * sizeof(uint32_t)));
  return OpenedBackingFile{record, std::move(file), std::move(states)};
}

Result<std::optional<OpenedBackingFile>> ShareClient::ask_exporter(ShareToken token,
                                                                   const ShareView& view,
                                                                   bool wants_file,
                                                                   Deadline deadline) const {
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  const ShareRequest request{.wants_file = wants_file ? 1U : 0U, .token = token.word()};
  US_TRY(ask(view.owner, request, answer, message, deadline));
  if (!wants_file) return std::optional<OpenedBackingFile>();
  auto& [file, states] = message.descriptors;
  if (!file.valid() || !states.valid()) return unknown_share();
  return std::optional(files_of(answer.backing, std::move(file), std::move(states)));
}

Result<void> ShareClient::ask_for_notify(ShareToken token, ProcessTag exporter,
                                         Deadline deadline) const {
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  return ask(exporter, {.token = token.word(), .subject = ShareSubject::kNotify}, answer, message,
             deadline);
}

Result<void> ShareClient::ask(ProcessTag exporter, const ShareRequest& request, ShareAnswer& answer,
                              platform::Message& message, Deadline deadline) const {
  const int32_t process = server_.slots().process_id(exporter);
  US_TRY(exchange(exporter, request, message, deadline));
  switch (answer.protocol == kShareProtocol ? answer.verdict : ShareVerdict::kBusy) {
    case ShareVerdict::kGranted:
      return {};
    case ShareVerdict::kUnknown:
      return unknown_share();
    case ShareVerdict::kNotListed:
      return Error::format(ErrorCode::kNoPermission,
                           "process %d did not list this process among those that may import",
                           process);
    case ShareVerdict::kBusy:
      break;
  }
  return Error::format(ErrorCode::kConnection,
                       "process %d cannot hand over what it exported at the moment", process);
}

// Asks until there is an answer: an exporter whom very many ask sends some of them away.
Result<void> ShareClient::exchange(ProcessTag exporter, ShareRequest request,
                                   platform::Message& answer, Deadline deadline) const {
  if (server_.directory() == nullptr) return unknown_share();
  const int32_t process = server_.slots().process_id(exporter);
  const std::string name = ProcessSlots::socket_name(exporter.slot());
  while (true) {
    const Result<platform::UnsharedFd> socket =
        platform::connect_to(*server_.directory(), name.c_str(), deadline);
    if (!socket.ok()) {
      // Its socket goes when it is about to end.
      const bool has_left =
          platform::means_nobody_there(socket.error()) || !server_.slots().is_alive(exporter);
      return has_left ? unknown_share() : socket.error();
    }
    const int connection = socket.value().get();
    if (platform::send_message(connection, bytes_of(request)) &&
        receive_answer(connection, exporter, answer, deadline)) {
      return {};
    }
    if (!server_.slots().is_alive(exporter)) return unknown_share();
    if (has_passed(deadline)) return does_not_answer(process);
    nap();
  }
}

bool ShareClient::receive_answer(int connection, ProcessTag exporter, platform::Message& answer,
                                 Deadline deadline) const {
  // The answer takes less time than to fall asleep and to be woken, if the exporter has a processor
  // to itself.
  const bool may_spin = platform::usable_processors() > 1;
  const Deadline spin_end = Clock::now() + std::chrono::microseconds(may_spin ? 100 : 0);
  while (true) {
    const bool spins = !has_passed(spin_end);
    if (!spins) {
      platform::Watched readable{connection};
      platform::wait_for_any({&readable, 1}, std::min(deadline, Clock::now() + kLook));
    }
    const platform::Received received = platform::receive_message(connection, answer);
    if (received == platform::Received::kMessage) return true;
    if (received != platform::Received::kNothingYet || has_passed(deadline)) return false;
    // A child of it may keep the connection open.
    if (!spins && !server_.slots().is_alive(exporter)) return false;
  }
}

}  // namespace understudy
