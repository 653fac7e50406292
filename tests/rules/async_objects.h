// SPDX-License-Identifier: Apache-2.0
//
// What the tests of work on streams share: calls made while a stream is held, ends that come in
// finite time, stream handles that must be refused, and memory of every class.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"
#include "rules/stream_objects.h"

namespace understudy_test {

// ---- Ends in finite time ----

inline constexpr int32_t kPatience = 60000;  // milliseconds, used up by a mistake only

// Waits for the stream. One that never ends is emptied, so that the test can end.
inline aclError finish(aclrtStream stream) {
  const aclError code = aclrtSynchronizeStreamWithTimeout(stream, kPatience);
  if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) {
    EXPECT_SUCCESS(aclrtStreamAbort(stream));
  }
  return code;
}

// The code of a call that must not wait for the stream in the gate. It is made on another thread of
// the same context: if it waits after all, the gate is opened for it.
template <typename Call>
aclError while_held(Gate& gate, Call call) {
  aclrtContext context = nullptr;
  EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
  std::future<aclError> code = std::async(std::launch::async, [&] {
    EXPECT_SUCCESS(aclrtSetCurrentContext(context));
    return call();
  });
  if (code.wait_for(std::chrono::milliseconds(kPatience)) != std::future_status::ready) {
    ADD_FAILURE() << "the call waited for the stream";
    gate.open();
  }
  return code.get();
}

// The code of a call that has to wait for the stream in the gate, which opens meanwhile.
template <typename Call>
aclError while_opening(Gate& gate, Call call) {
  std::thread opener([&gate] { gate.open(); });
  const aclError code = call();
  opener.join();
  return code;
}

// The stream stands still, however long one waits for it.
inline void expect_held(aclrtStream stream) {
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 2), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
}

inline bool names_address(std::string text, const void* start) {
  std::array<char, 24> digits{};
  snprintf(digits.data(), digits.size(), "%" PRIx64, number(start));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find(digits.data()) != std::string::npos;
}

// A task has failed on the stream: one synchronisation says so, with the range to blame.
inline void expect_task_failed(aclrtStream stream, const void* start = nullptr) {
  (void)recent_error();
  EXPECT_EQ(finish(stream), ACL_ERROR_RT_SYS_DMA);
  const std::string text = recent_error();
  if (start != nullptr) {
    EXPECT_TRUE(names_address(text, start)) << start << " is not in: " << text;
  }
  EXPECT_SUCCESS(finish(stream));
}

// Where it is not said whether the call or its task fails. Nothing may be waiting on the stream.
inline void expect_fails_sooner_or_later(aclError code, aclrtStream stream) {
  const aclError later = finish(stream);
  EXPECT_TRUE(code != ACL_SUCCESS || later != ACL_SUCCESS);
  (void)recent_error();
}

// ---- Handles that are no stream of the current context ----

// A further context of device 0 with streams of its own; it does not stay current.
class OtherContext {
 public:
  OtherContext() {
    aclrtContext current = nullptr;
    EXPECT_SUCCESS(aclrtGetCurrentContext(&current));
    EXPECT_SUCCESS(aclrtCreateContext(&context_, 0));
    EXPECT_SUCCESS(aclrtCreateStream(&stream_));
    EXPECT_SUCCESS(aclrtCtxGetCurrentDefaultStream(&default_stream_));
    EXPECT_SUCCESS(aclrtSetCurrentContext(current));
  }
  ~OtherContext() { EXPECT_SUCCESS(aclrtDestroyContext(context_)); }
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;

  aclrtStream stream() const { return stream_; }
  aclrtStream default_stream() const { return default_stream_; }

 private:
  aclrtContext context_ = nullptr;
  aclrtStream stream_ = nullptr;
  aclrtStream default_stream_ = nullptr;
};

// Made behind every other stream of a test, so that no later one can get the destroyed handle.
class BadStreams {
 public:
  BadStreams() {
    TestStream ended;
    destroyed_ = ended.get();
    ended.destroy();
  }

  aclrtStream destroyed() const { return destroyed_; }

  // GEN-05 and GEN-06. The call takes a stream and returns its code.
  template <typename Call>
  void expect_refused(const char* function, Call call) {
    const struct {
      const char* name;
      aclrtStream stream;
      aclError code;
    } cases[] = {
        {"stream of another context", other_.stream(), ACL_ERROR_RT_STREAM_CONTEXT},
        {"default stream of another context", other_.default_stream(), ACL_ERROR_RT_STREAM_CONTEXT},
        {"destroyed stream", destroyed_, ACL_ERROR_RT_INVALID_HANDLE},
        {"event", event_.get(), ACL_ERROR_RT_INVALID_HANDLE},
        {"variable", &variable_, ACL_ERROR_RT_INVALID_HANDLE},
        {"number", address(0x5EA7ED00), ACL_ERROR_RT_INVALID_HANDLE},
    };
    for (const auto& bad : cases) {
      SCOPED_TRACE(bad.name);
      (void)recent_error();
      EXPECT_TRUE(fails_with(bad.code, call(bad.stream), function));
    }
  }

 private:
  OtherContext other_;
  TestEvent event_;
  uint64_t variable_[8] = {};
  aclrtStream destroyed_ = nullptr;
};

// ---- Memory of every class of the copy table ----

enum class Side : uint8_t { kHost, kDevice, kUnregistered };

struct Spot {
  const char* name;
  Side side;
  void* start;

  void put(const std::vector<uint8_t>& bytes) const {
    if (side == Side::kDevice) {
      copy_in(start, bytes);
    } else {
      store(start, bytes);
    }
  }
  bool has(const std::vector<uint8_t>& bytes) const {
    if (side == Side::kDevice) return copy_out(start, bytes.size()) == bytes;
    return holds(start, bytes);
  }
};

// A page of each kind of memory, two of those with which a pair must be possible.
class Spots {
 public:
  static constexpr size_t kSize = kPage;

  Spots() {
    void* at_device = nullptr;
    EXPECT_SUCCESS(
        aclrtHostRegister(registered_.data(), kSize, ACL_HOST_REGISTER_MAPPED, &at_device));
  }
  ~Spots() { EXPECT_SUCCESS(aclrtHostUnregister(registered_.data())); }
  Spots(const Spots&) = delete;
  Spots& operator=(const Spots&) = delete;

  std::vector<Spot> all() {
    return {{"allocated host memory", Side::kHost, locked_.data()},
            {"registered host memory", Side::kHost, registered_.data()},
            {"mapped host block", Side::kHost, host_block_.data()},
            {"mapped block of a host node", Side::kHost, node_block_.data()},
            {"allocated device memory", Side::kDevice, allocated_.data()},
            {"mapped device block", Side::kDevice, mapped_.data()},
            {"heap", Side::kUnregistered, heap_.data()},
            {"own pages", Side::kUnregistered, own_.data()}};
  }

 private:
  HostBlock locked_{kSize};
  OwnMemory registered_{kSize};
  LiveMapping host_block_{kGranule, host_property()};
  LiveMapping node_block_{kGranule,
                          block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0)};
  DeviceBlock allocated_{kSize};
  LiveMapping mapped_;
  std::vector<uint8_t> heap_ = std::vector<uint8_t>(kSize);
  OwnMemory own_{kSize};
};

// ---- The two functions that copy on a stream ----

struct AsyncCopy {
  const char* name;
  aclError (*call)(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind kind,
                   aclrtStream stream);

  friend std::ostream& operator<<(std::ostream& out, const AsyncCopy& function) {
    return out << function.name;
  }
};

inline constexpr AsyncCopy kAsyncCopy = {"aclrtMemcpyAsync", aclrtMemcpyAsync};
inline constexpr AsyncCopy kAsyncCopyWithCondition = {"aclrtMemcpyAsyncWithCondition",
                                                      aclrtMemcpyAsyncWithCondition};
inline constexpr std::array kAsyncCopies = {kAsyncCopy, kAsyncCopyWithCondition};

inline void expect_copy_refused(const AsyncCopy& function, aclError code, void* to, size_t room,
                                const void* from, size_t count, aclrtMemcpyKind kind,
                                aclrtStream stream) {
  (void)recent_error();
  EXPECT_TRUE(fails_with(code, function.call(to, room, from, count, kind, stream), function.name))
      << "kind " << kind;
}

class AsyncCopyTest : public HostMemoryTest, public testing::WithParamInterface<AsyncCopy> {
 protected:
  static aclError copy(void* to, const void* from, size_t count, aclrtMemcpyKind kind,
                       aclrtStream stream) {
    return GetParam().call(to, count, from, count, kind, stream);
  }
  static aclError copy(const Spot& to, const Spot& from, aclrtMemcpyKind kind, aclrtStream stream) {
    return copy(to.start, from.start, Spots::kSize, kind, stream);
  }
  static void expect_refused(aclError code, void* to, size_t room, const void* from, size_t count,
                             aclrtMemcpyKind kind, aclrtStream stream) {
    expect_copy_refused(GetParam(), code, to, room, from, count, kind, stream);
  }
};

inline auto each_async_copy() { return testing::ValuesIn(kAsyncCopies); }
inline std::string name_of_async_copy(const testing::TestParamInfo<AsyncCopy>& info) {
  return info.param.name;
}

}  // namespace understudy_test
