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
#include "device/capacity.h"
#include "device/ledger.h"
#include "device/settings.h"
#include "memory/address_space.h"
#include "memory/device_memory.h"
#include "memory/host_memory.h"
#include "memory/physical_memory.h"
#include "memory/storage_set.h"
#include "memory/transfer.h"
#include "runtime/data_buffers.h"
#include "runtime/devices.h"
#include "runtime/initialization.h"
#include "runtime/thread_state.h"
#include "sharing/ipc_keys.h"
#include "sharing/sharing.h"
#include "stream/events.h"
#include "stream/streams.h"

namespace understudy {

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
    // In this order: whoever sees the sentinel armed sees the runtime that goes with it.
    return platform_forked() ? nullptr : current_.load(std::memory_order_acquire);
  }

  const Settings& settings() const { return settings_; }
  Capacity& capacity() { return capacity_; }
  StorageSet& storages() { return storages_; }
  PhysicalMemory& physical_memory() { return physical_; }
  AddressSpace& address_space() { return space_; }
  DeviceMemory& device_memory() { return device_memory_; }
  HostMemory& host_memory() { return host_memory_; }
  Transfer& transfer() { return transfer_; }
  Sharing& sharing() { return sharing_; }
  IpcKeys& ipc_keys() { return ipc_keys_; }
  const Ledger& ledger() const { return *ledger_; }
  Streams& streams() { return streams_; }
  Events& events() { return events_; }
  Devices& devices() { return devices_; }
  DataBuffers& data_buffers() { return data_buffers_; }
  Initialization& initialization() { return initialization_; }

  // Refuses what the product lacks.
  Result<void> require(Feature feature) const {
    if (settings_.product.has(feature)) [[likely]]
      return {};
    return missing_feature();
  }
  // The calling thread's context. Adopts the default device of aclInit where there is none.
  Result<ContextReference> current_context();
  // The device of that context, for those who need nothing else of it.
  Result<unsigned> current_device() {
    if (const ContextReference& context = thread_state().context; context.valid()) [[likely]]
      return context.device();
    US_TRY_ASSIGN(const ContextReference adopted, current_context());
    return adopted.device();
  }
  // Waits for the tasks of the calling thread's context; the error of one that failed.
  Result<void> wait_for_device(Deadline deadline = kNever);

  // The error texts of the process, where they are kept together (INIT-06).
  void add_error_text(std::string text);
  std::string take_error_texts();
  // Lets the options of aclInit take effect.
  void apply(const InitOptions& options);

 private:
  Runtime(Settings settings, std::unique_ptr<Ledger> ledger);
  static bool platform_forked();
  static Result<Runtime*> make_instance();
  static Result<Runtime*> make_instance_alone();
  Error missing_feature() const;

  static std::atomic<Runtime*> current_;

  const int32_t process_;  // whose runtime it is
  const Settings settings_;
  const std::unique_ptr<Ledger> ledger_;
  Capacity capacity_;
  StorageSet storages_;
  PhysicalMemory physical_;
  AddressSpace space_;
  DeviceMemory device_memory_;
  Sharing sharing_;
  IpcKeys ipc_keys_;
  HostMemory host_memory_;
  Transfer transfer_;
  Streams streams_;
  Events events_;
  Devices devices_;
  DataBuffers data_buffers_;
  Initialization initialization_;
  std::atomic<int64_t> default_device_{-1};  // -1: none
  std::atomic<ErrorTextScope> text_scope_{ErrorTextScope::kThread};
  Mutex texts_mutex_{LockRank::kErrorLog};
  ErrorTexts texts_ US_GUARDED_BY(texts_mutex_);
};

}  // namespace understudy
