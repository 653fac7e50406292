// SPDX-License-Identifier: Apache-2.0
//
// What the tests of memory keys share: exported blocks, and another process that does as it is
// told. A test file declares that process under a name of its own:
//
//   US_PEER(IpcExportOther) { serve_ipc(channel); }
//
//   Other other(IpcExportOther);
//   const Answer imported = other.import(key);
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/async_objects.h"
#include "support/peer.h"

namespace understudy_test::ipc {

inline constexpr size_t kKeySize = 65;
inline constexpr uint64_t kForListed = ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT;
inline constexpr uint64_t kForAll = ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
inline constexpr uint64_t kPlainImport = ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT;
inline constexpr uint64_t kPeerImport = ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS;

// Blocks within a page, of several pages, of a granule and beyond.
inline constexpr std::array<size_t, 6> kSharedSizes = {512,  4 * kKiB, 64 * kKiB,
                                                       kMiB, 2 * kMiB, 20 * kMiB};

// Plain data, so that it can be sent.
struct Key {
  std::array<char, kKeySize> text{};

  const char* get() const { return text.data(); }
  std::string name() const { return {text.data(), strnlen(text.data(), text.size())}; }
  friend bool operator==(const Key&, const Key&) = default;
};

// The code as it is. A refusal must have left a text that names the function.
inline aclError noted(const char* function, aclError code) {
  if (code != ACL_SUCCESS) {
    EXPECT_TRUE(fails_with(code, code, function));
  }
  return code;
}

inline Key export_key(void* data, size_t size, uint64_t flags = kForAll) {
  Key key{};
  key.text.fill('~');
  EXPECT_SUCCESS(aclrtIpcMemGetExportKey(data, size, key.text.data(), key.text.size(), flags));
  return key;
}

inline int32_t own_id() {
  int32_t id = -1;
  EXPECT_SUCCESS(aclrtDeviceGetBareTgid(&id));
  return id;
}

inline aclError allow(const Key& key, std::vector<int32_t> ids) {
  (void)recent_error();
  return noted("aclrtIpcMemSetImportPid",
               aclrtIpcMemSetImportPid(key.get(), ids.data(), ids.size()));
}

// An import in this process; closed at the end of the scope, or before with close().
class Import {
 public:
  explicit Import(const Key& key, uint64_t flags = kPlainImport) : key_(key) {
    EXPECT_SUCCESS(aclrtIpcMemImportByKey(&data_, key_.get(), flags));
    EXPECT_NE(data_, nullptr);
  }
  ~Import() {
    if (data_ != nullptr) close();
  }
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;

  void* data() const { return data_; }
  void close() {
    data_ = nullptr;
    EXPECT_SUCCESS(aclrtIpcMemClose(key_.get()));
  }

 private:
  const Key key_;
  void* data_ = nullptr;
};

// A block and its key. Both end with the scope, in the order of the documented flow.
class ExportedBlock {
 public:
  explicit ExportedBlock(size_t size, uint64_t flags = kForAll,
                         aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_FIRST)
      : block_(size, policy), key_(export_key(block_.data(), size, flags)) {}
  ~ExportedBlock() {
    if (is_open_) close();
  }
  ExportedBlock(const ExportedBlock&) = delete;
  ExportedBlock& operator=(const ExportedBlock&) = delete;

  const Key& key() const { return key_; }
  void* data() const { return block_.data(); }
  void* at(size_t offset) const { return block_.at(offset); }
  size_t size() const { return block_.size(); }

  void close() {
    is_open_ = false;
    EXPECT_SUCCESS(aclrtIpcMemClose(key_.get()));
  }
  // The key counts as closed from now on, whoever closed it.
  void give_up_key() { is_open_ = false; }
  void free() { block_.free(); }
  // The caller frees it from now on, or something else did.
  void* release() { return block_.release(); }

  void fill(uint8_t seed) const { copy_in(data(), pattern(size(), seed)); }
  bool has(uint8_t seed) const { return copy_out(data(), size()) == pattern(size(), seed); }

 private:
  DeviceBlock block_;
  const Key key_;
  bool is_open_ = true;
};

// Whether any kind of access gets at the bytes, or the library calls them device memory.
inline bool is_in_reach(void* start, size_t size) {
  std::vector<uint8_t> bytes(size, 0xEE);
  bool reached =
      aclrtMemcpy(start, size, bytes.data(), size, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS;
  reached |= aclrtMemcpy(bytes.data(), size, start, size, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS;
  reached |= aclrtMemset(start, size, 0xEE, size) == ACL_SUCCESS;
  (void)recent_error();
  return reached;
}

// ---- The other process ----

enum class Order : uint8_t {
  kId,
  kAllocate,
  kExport,
  kAllow,
  kImport,
  kClose,
  kFree,
  kFill,
  kCheck,
  kIsInReach,
  kIsDeviceMemory,
  kFreeBytes,
  kFetch,
  kStore,
  kPeerStatus,
  kEnablePeer,
};

struct Request {
  Order order = Order::kId;
  Key key{};
  void* data = nullptr;
  size_t size = 0;
  uint64_t flags = 0;
  int32_t number = 0;  // a process id, a device or a seed
};

struct Answer {
  aclError code = ACL_SUCCESS;
  void* data = nullptr;
  Key key{};
  size_t size = 0;
  int32_t number = 0;
  bool yes = false;
};

// A copy between the block and memory of the current device, on a stream and with its direction
// named: what the reference permits between devices.
inline aclError copy_on_stream(void* to, const void* from, size_t size) {
  const TestStream stream;
  const aclError code =
      aclrtMemcpyAsync(to, size, from, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get());
  return code != ACL_SUCCESS ? code : finish(stream.get());
}

inline void obey(const Request& request, Answer& answer) {
  void* const data = request.data;
  const size_t size = request.size;
  const auto seed = static_cast<uint8_t>(request.number);
  (void)recent_error();
  switch (request.order) {
    case Order::kId:
      answer.number = own_id();
      break;
    case Order::kAllocate:
      answer.code =
          noted("aclrtMalloc", aclrtMalloc(&answer.data, size, ACL_MEM_MALLOC_HUGE_FIRST));
      break;
    case Order::kExport:
      answer.key = export_key(data, size, request.flags);
      break;
    case Order::kAllow:
      answer.code = allow(request.key, {request.number});
      break;
    case Order::kImport:
      answer.data = untouched_address();
      answer.code = noted("aclrtIpcMemImportByKey",
                          aclrtIpcMemImportByKey(&answer.data, request.key.get(), request.flags));
      EXPECT_EQ(answer.code != ACL_SUCCESS, answer.data == untouched_address());
      break;
    case Order::kClose:
      answer.code = noted("aclrtIpcMemClose", aclrtIpcMemClose(request.key.get()));
      break;
    case Order::kFree:
      answer.code = noted("aclrtFree", aclrtFree(data));
      break;
    case Order::kFill:
      copy_in(data, pattern(size, seed));
      break;
    case Order::kCheck:
      answer.yes = copy_out(data, size) == pattern(size, seed);
      break;
    case Order::kIsInReach:
      answer.yes = is_in_reach(data, size);
      break;
    case Order::kIsDeviceMemory:
      answer.yes = pointer_attributes(data).location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
      break;
    case Order::kFreeBytes:
      answer.size = free_bytes();
      break;
    case Order::kFetch: {
      const DeviceBlock own(size);
      answer.code = copy_on_stream(own.data(), data, size);
      answer.yes = copy_out(own.data(), size) == pattern(size, seed);
      break;
    }
    case Order::kStore: {
      const DeviceBlock own(size);
      copy_in(own.data(), pattern(size, seed));
      answer.code = copy_on_stream(data, own.data(), size);
      break;
    }
    case Order::kPeerStatus:
      EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(1, 0, &answer.number));
      break;
    case Order::kEnablePeer:
      answer.code = aclrtDeviceEnablePeerAccess(request.number, 0);
      break;
  }
}

// The body of the other process: one answer to every request, until the test lets go.
inline void serve_ipc(Channel& channel) {
  const auto device = channel.receive<int32_t>();
  ASSERT_SUCCESS(aclrtSetDevice(device));
  for (Request request; channel.receive_bytes(&request, sizeof request);) {
    Answer answer;
    obey(request, answer);
    channel.send(answer);
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(device));
}

class Other {
 public:
  explicit Other(PeerBody body, int32_t device = 0,
                 std::initializer_list<Variable> environment = {})
      : peer_(body, environment) {
    peer_.send(device);
  }

  Answer ask(const Request& request) {
    peer_.send(request);
    return peer_.receive<Answer>();
  }
  int32_t id() { return ask({.order = Order::kId}).number; }
  Answer import(const Key& key, uint64_t flags = kPlainImport) {
    return ask({.order = Order::kImport, .key = key, .flags = flags});
  }
  // An import that has to succeed.
  void* attach(const Key& key, uint64_t flags = kPlainImport) {
    const Answer answer = import(key, flags);
    EXPECT_EQ(answer.code, ACL_SUCCESS);
    return answer.data;
  }
  aclError close(const Key& key) { return ask({.order = Order::kClose, .key = key}).code; }
  aclError allow(const Key& key, int32_t id) {
    return ask({.order = Order::kAllow, .key = key, .number = id}).code;
  }
  aclError free(void* data) { return ask({.order = Order::kFree, .data = data}).code; }
  void* allocate(size_t size) {
    const Answer answer = ask({.order = Order::kAllocate, .size = size});
    EXPECT_EQ(answer.code, ACL_SUCCESS);
    return answer.data;
  }
  Key export_block(void* data, size_t size, uint64_t flags = kForAll) {
    return ask({.order = Order::kExport, .data = data, .size = size, .flags = flags}).key;
  }
  void fill(void* data, size_t size, uint8_t seed) {
    ask({.order = Order::kFill, .data = data, .size = size, .number = seed});
  }
  bool has(void* data, size_t size, uint8_t seed) {
    return ask({.order = Order::kCheck, .data = data, .size = size, .number = seed}).yes;
  }
  bool is_in_reach(void* data, size_t size = 16) {
    return ask({.order = Order::kIsInReach, .data = data, .size = size}).yes;
  }
  bool is_device_memory(void* data) {
    return ask({.order = Order::kIsDeviceMemory, .data = data}).yes;
  }
  size_t free_bytes() { return ask({.order = Order::kFreeBytes}).size; }
  Peer& peer() { return peer_; }

 private:
  Peer peer_;
};

// Memory figures end as they began, in this process and so for the whole server.
using IpcTest = HostMemoryTest;

}  // namespace understudy_test::ipc
