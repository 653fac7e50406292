// SPDX-License-Identifier: Apache-2.0
#include "support/allocators.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "support/fail.h"

namespace bench {

namespace {

constexpr const char* kTunables = "GLIBC_TUNABLES";
constexpr const char* kRoom = "glibc.rtld.optional_static_tls";

struct Library {
  const char* name;
  const char* file;
  const char* allocate;
  const char* release;
};
constexpr Library kLibraries[] = {
    {"mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free"},
    {"jemalloc", "libjemalloc.so.2", "malloc", "free"},
};

// jemalloc's thread-local variables must lie in the block that glibc lays out when a thread starts
// and that has 512 bytes to spare for libraries loaded later; jemalloc needs 2.6 KiB. Only a new
// start can change that. Returns where that was tried before or cannot be done.
void restart_with_room(char** argv) {
  const char* const tunables = getenv(kTunables);
  std::string text = tunables != nullptr ? tunables : "";
  if (text.find(kRoom) != std::string::npos) return;
  if (!text.empty()) text += ':';
  text += std::string(kRoom) + "=16384";
  require(setenv(kTunables, text.c_str(), 1) == 0, "setenv");
  execv("/proc/self/exe", argv);
}

template <typename Function>
Function symbol(void* library, const char* name) {
  void* const address = dlsym(library, name);
  if (address == nullptr) fail("%s", dlerror());
  return reinterpret_cast<Function>(address);
}

}  // namespace

Allocators load_allocators(char** argv) {
  Allocators allocators{.found = {{"glibc", malloc, free}}, .absent = {}};
  for (const Library& library : kLibraries) {
    void* const handle = dlopen(library.file, RTLD_LOCAL | RTLD_NOW);
    if (handle == nullptr) {
      const std::string reason = dlerror();
      if (reason.find("static TLS") != std::string::npos) restart_with_room(argv);
      allocators.absent.push_back("without " + std::string(library.name) + ": " + reason);
      continue;
    }
    allocators.found.push_back({library.name,
                                symbol<decltype(Allocator::allocate)>(handle, library.allocate),
                                symbol<decltype(Allocator::release)>(handle, library.release)});
  }
  return allocators;
}

}  // namespace bench
