// SPDX-License-Identifier: Apache-2.0
//
// What tests of sharing between processes start from: checked exports and imports, shared blocks,
// and other processes that make the calls a test asks them to make.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "rules/mapping_objects.h"
#include "rules/vmm_objects.h"
#include "support/peer.h"
#include "support/rule_test.h"

namespace understudy_test::share {

using mapping::Block;
using mapping::DeviceScope;
using mapping::FiguresStay;
using mapping::is_marked;
using mapping::kGranule;
using mapping::MappedBlock;
using mapping::Mapping;
using mapping::mark;
using mapping::Reservation;
using mapping::VirtualMemoryTest;
using vmm::on_bare_thread;
using vmm::untouched;

// Who may import: the processes that the exporter lists, or all others.
inline constexpr uint64_t kListed = ACL_RT_VMM_EXPORT_FLAG_DEFAULT;
inline constexpr uint64_t kEveryone = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
inline constexpr uint64_t kAccessRules[] = {kListed, kEveryone};

inline constexpr uint64_t kUntouchedToken = 0x5EA7ED5EA7ED5EA7;

// ---- The three steps, by either version of their functions ----

enum class Version : uint8_t { kV1, kV2 };
inline constexpr Version kVersions[] = {Version::kV1, Version::kV2};
inline Version other(Version version) {
  return version == Version::kV1 ? Version::kV2 : Version::kV1;
}

// A call that changes no figure, and that leaves a text with its name if it fails.
class CheckedCall {
 public:
  explicit CheckedCall(const char* function)
      : function_(function), figures_(vmm::figures_if_bound()) {
    (void)recent_error();
  }
  aclError returned(aclError code) const {
    if (code != ACL_SUCCESS) {
      EXPECT_TRUE(fails_with(code, code, function_));
    }
    EXPECT_TRUE(vmm::figures_if_bound() == figures_) << function_ << " changed memory figures";
    (void)recent_error();
    return code;
  }

 private:
  const char* const function_;
  const MemoryFigures figures_;
};

struct Exported {
  aclError code;
  uint64_t token;
};
inline Exported export_with(Version version, aclrtDrvMemHandle handle, uint64_t flags) {
  uint64_t token = kUntouchedToken;
  const bool v1 = version == Version::kV1;
  const CheckedCall call(v1 ? "aclrtMemExportToShareableHandle"
                            : "aclrtMemExportToShareableHandleV2");
  const aclError code = call.returned(
      v1 ? aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, flags, &token)
         : aclrtMemExportToShareableHandleV2(handle, flags, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT,
                                             &token));
  EXPECT_EQ(token == kUntouchedToken, code != ACL_SUCCESS);
  EXPECT_NE(token, 0u);
  return {code, token};
}

// Exports, which must succeed.
inline uint64_t token_of(aclrtDrvMemHandle handle, uint64_t flags = kEveryone,
                         Version version = Version::kV1) {
  const Exported exported = export_with(version, handle, flags);
  EXPECT_EQ(exported.code, ACL_SUCCESS);
  return exported.token;
}

// Process ids in a form that can be sent.
struct Ids {
  Ids(std::initializer_list<int32_t> listed) : count(listed.size()) {
    std::copy(listed.begin(), listed.end(), ids.begin());
  }
  Ids() = default;
  std::array<int32_t, 8> ids{};
  size_t count = 0;
};
inline aclError list_with(Version version, uint64_t token, Ids who) {
  const bool v1 = version == Version::kV1;
  const CheckedCall call(v1 ? "aclrtMemSetPidToShareableHandle"
                            : "aclrtMemSetPidToShareableHandleV2");
  return call.returned(v1 ? aclrtMemSetPidToShareableHandle(token, who.ids.data(), who.count)
                          : aclrtMemSetPidToShareableHandleV2(&token,
                                                              ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT,
                                                              who.ids.data(), who.count));
}
inline void list(uint64_t token, Ids who) {
  EXPECT_EQ(list_with(Version::kV1, token, who), ACL_SUCCESS);
}

struct Imported {
  aclError code;
  aclrtDrvMemHandle handle;
};
// V2 has no device argument: there `device` must be the current one.
inline Imported import_with(Version version, uint64_t token, int32_t device) {
  aclrtDrvMemHandle handle = untouched();
  const bool v1 = version == Version::kV1;
  const CheckedCall call(v1 ? "aclrtMemImportFromShareableHandle"
                            : "aclrtMemImportFromShareableHandleV2");
  const aclError code =
      call.returned(v1 ? aclrtMemImportFromShareableHandle(token, device, &handle)
                       : aclrtMemImportFromShareableHandleV2(
                             &token, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &handle));
  EXPECT_EQ(handle == untouched(), code != ACL_SUCCESS);
  EXPECT_NE(handle, nullptr);
  return {code, handle};
}

// The code alone; what was imported is freed at once.
inline aclError try_import(Version version, uint64_t token, int32_t device) {
  const Imported imported = import_with(version, token, device);
  if (imported.code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtFreePhysical(imported.handle));
  }
  return imported.code;
}
inline aclError try_import_without_context(Version version, uint64_t token, int32_t device) {
  aclError code = ACL_SUCCESS;
  on_bare_thread([&] { code = try_import(version, token, device); });
  return code;
}

// ---- Steps for either process ----

inline void bind(int32_t device) { EXPECT_SUCCESS(aclrtSetDevice(device)); }
inline int32_t own_id() {
  int32_t id = 0;
  EXPECT_SUCCESS(aclrtDeviceGetBareTgid(&id));
  return id;
}
inline size_t huge_bytes_free() { return free_bytes(ACL_HBM_MEM_HUGE); }
inline aclError free_handle(aclrtDrvMemHandle handle) { return aclrtFreePhysical(handle); }
inline aclError unmap(void* start) { return aclrtUnmapMem(start); }
inline aclError release(void* start) { return aclrtReleaseMemAddress(start); }
inline void* map_anew(aclrtDrvMemHandle handle, size_t size) {
  void* const start = reserve(size);
  EXPECT_SUCCESS(aclrtMapMem(start, size, 0, handle, 0));
  return start;
}

// A block with a mapping of its own, in the process that created or imported it.
struct View {
  aclrtDrvMemHandle handle;
  void* start;
  size_t size;
};
inline View import_view(uint64_t token, size_t size, int32_t device) {
  const Imported imported = import_with(Version::kV1, token, device);
  EXPECT_EQ(imported.code, ACL_SUCCESS);
  return {imported.handle, map_anew(imported.handle, size), size};
}
inline void close_view(View view) {
  EXPECT_SUCCESS(aclrtUnmapMem(view.start));
  EXPECT_SUCCESS(aclrtFreePhysical(view.handle));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(view.start));
}

struct Offer {
  View view;
  uint64_t token;
};
inline Offer offer_block(size_t size, uint64_t flags, uint8_t seed) {
  const aclrtDrvMemHandle handle = create_block(size);
  const View view{handle, map_anew(handle, size), size};
  mark(view.start, size, seed);
  return {view, token_of(handle, flags)};
}

// ---- A process that makes the calls a test asks for ----

using Parcel = std::array<std::byte, 512>;
using AnyFunction = void (*)();

template <typename T>
void pack(std::byte*& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  memcpy(to, &value, sizeof value);
  to += sizeof value;
}
template <typename T>
T unpack(const std::byte*& from) {
  T value;
  memcpy(&value, from, sizeof value);
  from += sizeof value;
  return value;
}

// Both processes run the same program, so a function lies equally far from this one in both.
inline void origin() {}
template <typename Function>
intptr_t distance_to(Function* function) {
  return reinterpret_cast<intptr_t>(function) - reinterpret_cast<intptr_t>(&origin);
}
template <typename Function>
Function function_at(intptr_t distance) {
  return reinterpret_cast<Function>(reinterpret_cast<intptr_t>(&origin) + distance);
}

template <typename Result, typename... Arguments>
void run_order(AnyFunction function, [[maybe_unused]] const std::byte* arguments,
               [[maybe_unused]] std::byte* result) {
  const auto call = reinterpret_cast<Result (*)(Arguments...)>(function);
  const std::tuple<Arguments...> unpacked{unpack<Arguments>(arguments)...};  // in this order
  if constexpr (std::is_void_v<Result>) {
    std::apply(call, unpacked);
  } else {
    pack(result, std::apply(call, unpacked));
  }
}

struct Order {
  intptr_t runner;
  intptr_t function;
  Parcel arguments;
};

// Not US_PEER: several files of one program include this.
inline void serves_share_calls(Channel& channel) {
  Order order;
  while (channel.receive_bytes(&order, sizeof order)) {
    Parcel result{};
    const auto run = function_at<decltype(&run_order<void>)>(order.runner);
    run(function_at<AnyFunction>(order.function), order.arguments.data(), result.data());
    channel.send(result);
  }
  int32_t device = 0;
  if (aclrtGetDevice(&device) == ACL_SUCCESS) aclrtResetDeviceForce(device);
}
inline const PeerRegistration serves_share_calls_registration("ServesShareCalls",
                                                              serves_share_calls);

inline constexpr int32_t kNoDevice = -1;

class Remote {
 public:
  explicit Remote(int32_t device = 0, std::initializer_list<Variable> environment = {})
      : peer_(serves_share_calls, environment) {
    if (device != kNoDevice) call(bind, device);
  }

  // Any function of this program, run in the other process.
  template <typename Result, typename... Arguments>
  Result call(Result (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
    start(function, arguments...);
    return result<Result>();
  }
  // The same in two steps, for what several processes are to do at once.
  template <typename Result, typename... Arguments>
  void start(Result (*function)(Arguments...), std::type_identity_t<Arguments>... arguments) {
    static_assert((sizeof(Arguments) + ... + 0) <= sizeof(Parcel));
    Order order{distance_to(&run_order<Result, Arguments...>), distance_to(function), {}};
    [[maybe_unused]] std::byte* to = order.arguments.data();
    (pack(to, arguments), ...);
    peer_.send(order);
  }
  template <typename Result>
  Result result() {
    const Parcel parcel = peer_.receive<Parcel>();
    if constexpr (!std::is_void_v<Result>) {
      static_assert(sizeof(Result) <= sizeof(Parcel));
      const std::byte* from = parcel.data();
      return unpack<Result>(from);
    }
  }

  aclError import(uint64_t token, Version version = Version::kV1, int32_t device = 0) {
    return call(try_import, version, token, device);
  }
  int32_t id() { return call(own_id); }
  pid_t pid() const { return peer_.pid(); }
  Peer& peer() { return peer_; }
  void kill() { peer_.kill(); }
  void finish() { peer_.finish(); }

 private:
  Peer peer_;
};

// A block that another process imported and mapped, given back with its scope.
class RemoteView {
 public:
  RemoteView(Remote& process, uint64_t token, size_t size = kGranule, int32_t device = 0)
      : process_(process), view_(process.call(import_view, token, size, device)) {}
  ~RemoteView() {
    if (open_) close();
  }
  RemoteView(const RemoteView&) = delete;
  RemoteView& operator=(const RemoteView&) = delete;

  aclrtDrvMemHandle handle() const { return view_.handle; }
  void* start() const { return view_.start; }
  void write(uint8_t seed) { process_.call(mark, view_.start, view_.size, seed); }
  bool shows(uint8_t seed) { return process_.call(is_marked, view_.start, view_.size, seed); }
  void close() { process_.call(close_view, give_up()); }
  // From here on the process gives it back, or its end does.
  View give_up() {
    open_ = false;
    return view_;
  }

 private:
  Remote& process_;
  const View view_;
  bool open_ = true;
};

}  // namespace understudy_test::share
