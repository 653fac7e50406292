// SPDX-License-Identifier: Apache-2.0
//
// The runtime owns everything of the process. Made at the first call that needs it and never
// destroyed: calls arrive from static destructors and from threads that outlive main. A fork child
// starts with a new one and none of its parent's objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "device/settings.h"
#include "memory/address_space.h"
#include "memory/backing_pools.h"
#include "memory/device_memory.h"
#include "memory/host_memory.h"
#include "memory/physical_memory.h"
#include "memory/transfer.h"
#include "platform/fork_sentinel.h"
#include "runtime/allocators.h"
#include "runtime/data_buffers.h"
#include "runtime/devices.h"
#include "runtime/initialization.h"
#include "runtime/kernel_limits.h"
#include "runtime/notify_keys.h"
#include "runtime/operator_timeout.h"
#include "runtime/program_choices.h"
#include "runtime/snapshot.h"
#include "runtime/thread_state.h"
#include "server/server.h"
#include "sharing/ipc_keys.h"
#include "sharing/sharing.h"
#include "stream/cache_operations.h"
#include "stream/copies.h"
#include "stream/events.h"
#include "stream/memory_pools.h"
#include "stream/notifies.h"
#include "stream/prefetches.h"
#include "stream/ring_listener.h"
#include "stream/streams.h"

namespace understudy {

// The calling thread uses the context from now on.
void make_current(const ContextReference& context);

class Runtime {
 public:
  // The process's runtime. Fails while the configuration is wrong, and tries again then.
  static Result<Runtime*> instance() {
    Runtime* const runtime = existing();
    if (runtime != nullptr) [[likely]] {
      return runtime;
    }
    return make_instance();
  }

  // The same without making one: null before the first call that needs it.
  static Runtime* existing() {
    // In this order: a thread that sees the sentinel armed sees the runtime that goes with it. The
    // sentinel is armed before there is a runtime, and again in a child that has made its own.
    return platform::in_fork_child() ? nullptr : current_.load(std::memory_order_acquire);
  }

  const Settings& settings() const { return settings_; }
  Capacity& capacity() { return server_->capacity(); }
  BackingPools& backing_pools() { return pools_; }
  PhysicalMemory& physical_memory() { return physical_; }
  AddressSpace& address_space() { return space_; }
  DeviceMemory& device_memory() { return device_memory_; }
  HostMemory& host_memory() { return host_memory_; }
  Transfer& transfer() { return transfer_; }
  Sharing& sharing() { return sharing_; }
  IpcKeys& ipc_keys() { return ipc_keys_; }
  const Server& server() const { return *server_; }
  Streams& streams() { return streams_; }
  Copies& copies() { return copies_; }
  MemoryPools& memory_pools() { return memory_pools_; }
  ManagedMemory& managed_memory() { return space_.managed(); }
  Prefetches& prefetches() { return prefetches_; }
  CacheOperations& cache_operations() { return cache_operations_; }
  Events& events() { return events_; }
  Notifies& notifies() { return notifies_; }
  NotifyKeys& notify_keys() { return notify_keys_; }
  Devices& devices() { return devices_; }
  Snapshot& snapshot() { return snapshot_; }
  DataBuffers& data_buffers() { return data_buffers_; }
  Allocators& allocators() { return allocators_; }
  Initialization& initialization() { return initialization_; }
  ProgramChoices& choices() { return choices_; }
  KernelLimits& kernel_limits() { return kernel_limits_; }
  const KernelLimits& kernel_limits() const { return kernel_limits_; }
  OperatorTimeout& operator_timeout() { return operator_timeout_; }

  // Whether the product has a feature, of which nothing is to be told either.
  bool has_plainly(Feature feature) const { return plain_features_.has(feature); }
  // Refuses what the product lacks.
  Result<void> require(Feature feature) const { return require(feature, "this function"); }
  // The same for what an argument asks for.
  Result<void> require(Feature feature, const char* what) const {
    if (has_plainly(feature)) [[likely]]
      return {};
    return require_slowly(feature, what);
  }
  // The calling thread's context. Adopts the default device of aclInit where there is none.
  Result<ContextReference> current_context() {
    if (const ContextReference& context = thread_state().context; context.valid()) [[likely]]
      return context;
    return find_missing_context();
  }
  // The same for a program that asks whether there is one: to have none is no failure to advise on.
  Result<ContextReference> look_for_context();
  // The device of that context, for callers that need nothing else of it.
  Result<unsigned> current_device() {
    if (const ContextReference& context = thread_state().context; context.valid()) [[likely]]
      return context.device();
    US_TRY_ASSIGN(const ContextReference adopted, current_context());
    return adopted.device();
  }
  // Device memory in which the calling thread's context tells of overflows: of none, ever (OVF-03).
  Result<VirtualAddress> overflow_status();
  // Waits for the tasks of the calling thread's context; the error of one that failed.
  Result<void> wait_for_device(Deadline deadline = kNever);

  // The error texts of the thread, or of the process, where they are kept together (INIT-06).
  // Also before there is a runtime: then they are the thread's.
  static void add_error_text(const char* function, const Error& error);
  static std::string take_error_texts();
  static void note_success(const char* function) noexcept;
  // Lets the options of aclInit take effect.
  void apply(const InitOptions& options);

 private:
  // Calls change(texts) for the texts of the calling thread or of the process.
  template <typename Change>
  static void change_texts(Change change);
  Runtime(Settings settings, std::unique_ptr<Server> server);
  [[gnu::cold]] static Result<Runtime*> make_instance();
  static Result<Runtime*> make_instance_alone();
  [[gnu::cold]] Result<ContextReference> find_missing_context();
  // For a feature that is not there plainly.
  [[gnu::cold]] Result<void> require_slowly(Feature feature, const char* what) const;
  Error missing_feature(Feature feature, const char* what) const;

  static std::atomic<Runtime*> current_;

  const Settings settings_;
  const FeatureSet plain_features_;  // without those that advice is given about
  const std::unique_ptr<Server> server_;
  BackingPools pools_;
  PhysicalMemory physical_;
  AddressSpace space_;
  DeviceMemory device_memory_;
  Sharing sharing_;
  IpcKeys ipc_keys_;
  HostMemory host_memory_;
  Transfer transfer_;
  Streams streams_;
  MemoryPools memory_pools_;
  Copies copies_;
  CacheOperations cache_operations_;
  Prefetches prefetches_;
  Events events_;
  RingListener ring_listener_;
  Notifies notifies_;
  NotifyKeys notify_keys_;
  Devices devices_;
  Snapshot snapshot_;
  DataBuffers data_buffers_;
  Allocators allocators_;
  Initialization initialization_;
  ProgramChoices choices_;
  KernelLimits kernel_limits_;
  OperatorTimeout operator_timeout_;
  std::atomic<int64_t> default_device_{-1};  // -1: none
  std::atomic<ErrorTextScope> text_scope_{ErrorTextScope::kThread};
  Mutex texts_mutex_{LockRank::kErrorLog};
  ErrorTexts texts_ US_GUARDED_BY(texts_mutex_);
};

}  // namespace understudy
