// SPDX-License-Identifier: Apache-2.0
//
// The capacity of devices that no other process has.
#pragma once

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "server/server.h"

namespace understudy {

class LocalCapacity {
 public:
  // `normal` and `huge` are the sizes of the pools of each device.
  LocalCapacity(unsigned devices, uint64_t normal, uint64_t huge, IdleUsage idle = {},
                uint64_t host_window = ServerShape::kUnlimited) {
    ServerShape shape;
    shape.devices = devices;
    shape.memory = normal + huge;
    shape.normal_memory = normal;
    shape.idle_usage = idle;
    shape.host_window = host_window;
    std::vector<int32_t> numbers(devices);
    std::iota(numbers.begin(), numbers.end(), 0);
    server_ = std::move(Server::make_private(shape, std::move(numbers)).value());
  }

  Server& server() { return *server_; }
  operator Capacity&() { return server_->capacity(); }  // NOLINT: implicit

  bool charge(const Charge& charge) { return server_->capacity().charge(charge); }
  void credit(const Charge& charge) { server_->capacity().credit(charge); }
  PoolFigures figures(unsigned device, PageKind kind) const {
    return server_->capacity().figures(device, kind);
  }
  std::vector<ModuleUsage> usage(unsigned device) const {
    return server_->capacity().usage(device);
  }

 private:
  std::unique_ptr<Server> server_;
};

}  // namespace understudy
