// SPDX-License-Identifier: Apache-2.0
//
// What does it cost to charge a device and to credit it again, where the figures are those of all
// processes? The baseline is a counter that they share, changed up and down, which knows neither
// what each of them has nor what to do when one of them dies.
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "server/server.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/other_process.h"
#include "support/private_server.h"
#include "support/report.h"

namespace {

using namespace bench;
using understudy::Capacity;
using understudy::Server;

constexpr unsigned kProcesses = 4;
constexpr unsigned kPairs = 2000;
constexpr unsigned kPairsAmongOthers = 100'000;  // long enough for the others to be there

struct Shared {
  alignas(64) std::atomic<uint64_t> counter{0};
  alignas(64) std::atomic<bool> busy{false};
};

std::unique_ptr<Server> join(const std::string& path) {
  understudy::ServerShape shape;
  shape.devices = 1;
  shape.memory = uint64_t{64} << 30;
  auto directory = understudy::platform::PrivateDirectory::open_or_make(path);
  if (!directory.ok()) fail("%s", directory.error().text());
  auto server = Server::join(std::move(directory.value()), shape, {0});
  if (!server.ok()) fail("%s", server.error().text());
  return std::move(server.value());
}

void charge_and_credit(Capacity& capacity) {
  const understudy::Charge charge{0, understudy::PageKind::kHuge, uint64_t{2} << 20};
  if (!capacity.charge(charge)) fail("a device with room refused a charge");
  capacity.credit(charge);
}

void count_up_and_down(std::atomic<uint64_t>& counter) {
  counter.fetch_add(512);
  counter.fetch_sub(512);
}

template <typename Body>
double time_of(unsigned pairs, Body body) {
  const Stopwatch time;
  for (unsigned i = 0; i < pairs; ++i) body();
  return time.nanoseconds() / pairs;
}

// A process that keeps the ledger or the counter busy.
void compete(const std::string& path, Shared& shared, const Line& line) {
  const std::unique_ptr<Server> server = join(path);
  Capacity& capacity = server->capacity();
  for (bool on_ledger = true; line.receive_or_end(&on_ledger, sizeof on_ledger);) {
    line.send(true);
    while (shared.busy.load(std::memory_order_relaxed)) {
      if (on_ledger) {
        charge_and_credit(capacity);
      } else {
        count_up_and_down(shared.counter);
      }
    }
    line.send(true);
  }
}

// Runs a measurement while the others are busy with the same.
double among_others(const std::vector<std::unique_ptr<OtherProcess>>& others, Shared& shared,
                    bool on_ledger, const std::function<double()>& measure) {
  shared.busy.store(true);
  for (const auto& other : others) other->line().send(on_ledger);
  for (const auto& other : others) (void)other->line().receive<bool>();
  const double result = measure();
  shared.busy.store(false);
  for (const auto& other : others) (void)other->line().receive<bool>();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const Report report("ledger", argc, argv);
  const unsigned repetitions = report.full_or_smoke(41U, 3U);
  const std::string& path = use_private_server();
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  auto& shared = *new (memory) Shared;
  {
    std::vector<std::unique_ptr<OtherProcess>> others;
    for (unsigned i = 1; i < kProcesses; ++i) {
      others.push_back(
          std::make_unique<OtherProcess>([&](const Line& line) { compete(path, shared, line); }));
    }
    const std::unique_ptr<Server> server = join(path);
    Capacity& capacity = server->capacity();
    const auto charge = [&](unsigned pairs) {
      return time_of(pairs, [&] { charge_and_credit(capacity); });
    };
    const auto count = [&](unsigned pairs) {
      return time_of(pairs, [&] { count_up_and_down(shared.counter); });
    };
    const auto busy = [&](bool on_ledger) {
      return among_others(others, shared, on_ledger, [&] {
        return on_ledger ? charge(kPairsAmongOthers) : count(kPairsAmongOthers);
      });
    };
    const std::vector<double> figures =
        medians(repetitions, {[&] { return charge(kPairs); }, [&] { return count(kPairs); },
                              [&] { return busy(true); }, [&] { return busy(false); }});
    report.add({"charge and credit, alone", kNanoseconds, figures[0], figures[1], {.at_most = 20}});
    report.add(
        {"the same, four processes", kNanoseconds, figures[2], figures[3], {.at_most = 300}});
  }
}
