// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/size_text.h"
#include "platform/system_number.h"

namespace understudy {

namespace {

// By the keys of the configuration, each with its value.
std::array<std::string, 6> parts_of(const ServerShape& shape) {
  const auto size = [](const char* key, uint64_t bytes) {
    return std::string(key) + " " + SizeText(bytes).c_str();
  };
  return {std::string("product ") + shape.product.data(),
          "devices " + std::to_string(shape.devices),
          size("memory", shape.memory),
          size("normal_memory", shape.normal_memory),
          size("idle_usage", shape.idle_usage.total()),
          shape.host_window == ServerShape::kUnlimited
              ? "host_p2p_memory none"
              : size("host_p2p_memory", shape.host_window)};
}

// What of a shape is not as in another one.
std::string difference(const ServerShape& shape, const ServerShape& other) {
  const auto others = parts_of(other);
  std::string text;
  for (size_t i = 0; const std::string& part : parts_of(shape)) {
    if (part != others[i++]) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

}  // namespace

Server::Server(LedgerFile file, std::vector<int32_t> numbers)
    : file_(std::move(file)),
      slots_(file_),
      shares_(file_, slots_),
      events_(file_, slots_),
      notifies_(file_, slots_),
      figures_(slots_),
      capacity_(file_, slots_, std::move(numbers)) {}

Result<std::unique_ptr<Server>> Server::join(platform::PrivateDirectory directory,
                                             const ServerShape& shape,
                                             const std::vector<int32_t>& numbers) {
  const std::string path = directory.path();
  std::optional<platform::PrivateDirectory> found(std::move(directory));
  const Deadline deadline = ledger_deadline();
  // What is left of an ended server may be removed under this process, again and again.
  do {
    if (!found) {
      Result<platform::PrivateDirectory> made = platform::PrivateDirectory::open_or_make(path);
      if (!made.ok() && platform::means_absent(made.error())) continue;
      if (!made.ok()) return made.error();
      found.emplace(std::move(made.value()));
    }
    Result<std::unique_ptr<Server>> opened = open(std::move(*found), numbers);
    found.reset();
    if (!opened.ok() && platform::means_absent(opened.error())) continue;
    if (!opened.ok()) return opened.error();
    US_TRY_ASSIGN(const bool entered, opened.value()->enter(shape, deadline));
    if (entered) return opened;
  } while (!has_passed(deadline));
  return Error::format(ErrorCode::kConnection,
                       "the server at %s has been removed again and again for %d seconds",
                       path.c_str(), static_cast<int>(kLedgerPatience.count()));
}

Result<std::unique_ptr<Server>> Server::open(platform::PrivateDirectory directory,
                                             const std::vector<int32_t>& numbers) {
  US_TRY_ASSIGN(LedgerFile file, LedgerFile::open(std::move(directory)));
  return std::unique_ptr<Server>(new Server(std::move(file), numbers));
}

Result<std::unique_ptr<Server>> Server::make_private(const ServerShape& shape,
                                                     std::vector<int32_t> numbers) {
  US_TRY_ASSIGN(LedgerFile file, LedgerFile::make_private());
  US_TRY(file.begin(shape));
  std::unique_ptr<Server> server(new Server(std::move(file), std::move(numbers)));
  US_TRY(server->slots_.take(ledger_deadline()));
  return server;
}

Result<bool> Server::enter(const ServerShape& shape, Deadline deadline) {
  const std::optional<LedgerFile::ByteGuard> joining = file_.lock(kJoinByte, deadline);
  if (!joining) {
    return Error::format(ErrorCode::kConnection,
                         "another process has been joining the server at %s for %d seconds",
                         file_.path().c_str(), static_cast<int>(kLedgerPatience.count()));
  }
  if (file_.is_removed()) return false;
  if (!slots_.has_live_process()) {
    // What is left of earlier processes has no owner.
    US_TRY(file_.begin(shape));
  } else if (!file_.is_valid()) {
    return Error::format(ErrorCode::kNoPermission,
                         "%s is not of version %u and in use by live processes",
                         file_.path().c_str(), kLedgerVersion);
  } else if (this->shape() != shape) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "the live server at %s has %s; this process is configured for %s",
                         directory()->path().c_str(), difference(this->shape(), shape).c_str(),
                         difference(shape, this->shape()).c_str());
  }
  US_TRY(slots_.take(deadline));
  return true;
}

}  // namespace understudy
