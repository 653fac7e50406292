// SPDX-License-Identifier: Apache-2.0
#include "platform/loaded_library.h"

#include <link.h>

#include <string_view>

#include "platform/fork_sentinel.h"
#include "platform/memory_map.h"

namespace understudy::platform {

namespace {

const char kInThisLibrary = 0;

bool has_published_name(std::string_view path) {
  constexpr std::string_view kReplaced = " (deleted)";  // the file was replaced after it was loaded
  if (path.ends_with(kReplaced)) path.remove_suffix(kReplaced.size());
  return path.ends_with("/libascendcl.so") || path.ends_with("/libacl_rt.so");
}

// The linker tells at once where the kernel lists every mapping, thousands of them in a program
// with many libraries. But it lists the libraries of the caller's namespace alone.
bool has_linker_namespaces() {
#if __GLIBC_PREREQ(2, 35)
  return _r_debug.r_version > 1;
#else
  return true;  // it does not tell
#endif
}

// A fork child has the linker's lock as it was in its parent, where another thread may have had it.
bool may_ask_linker() { return !in_fork_child() && !has_linker_namespaces(); }

bool is_this_library(const dl_phdr_info& library) {
  for (unsigned i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    const VirtualRange range{library.dlpi_addr + part.p_vaddr, part.p_memsz};
    if (part.p_type == PT_LOAD && range.contains(to_address(&kInThisLibrary))) return true;
  }
  return false;
}

// The name that a library has for itself; null if it has none. It may be loaded by a link of
// another name.
const char* own_name(const dl_phdr_info& library) {
  for (unsigned i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    if (part.p_type != PT_DYNAMIC) continue;
    VirtualAddress names = 0;
    std::optional<uint64_t> offset;
    const auto* entry = static_cast<const ElfW(Dyn)*>(to_pointer(library.dlpi_addr + part.p_vaddr));
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SONAME) offset = entry->d_un.d_val;
    }
    if (names == 0 || !offset) return nullptr;
    // The linker has made an address of it, but for the library that the kernel brings along.
    if (names < library.dlpi_addr) names += library.dlpi_addr;
    return static_cast<const char*>(to_pointer(names + *offset));
  }
  return nullptr;
}

int is_second_copy(dl_phdr_info* library, size_t, void*) {
  const char* const name = own_name(*library);
  const bool is_copy = has_published_name(library->dlpi_name) ||
                       (name != nullptr && std::string_view(name) == "libascendcl.so");
  return is_copy && !is_this_library(*library) ? 1 : 0;
}

}  // namespace

std::optional<LibraryCopies> second_copy_of_this_library() {
  if (may_ask_linker() && dl_iterate_phdr(is_second_copy, nullptr) == 0) return {};
  const std::vector<MapEntry> map = memory_map();
  const MapEntry* own = nullptr;
  for (const MapEntry& entry : map) {
    if (entry.range.contains(to_address(&kInThisLibrary))) own = &entry;
  }
  if (own == nullptr || !has_published_name(own->path)) return std::nullopt;  // in the program
  for (const MapEntry& entry : map) {
    if (has_published_name(entry.path) && entry.file_identity != own->file_identity) {
      return LibraryCopies{own->path, entry.path};
    }
  }
  return std::nullopt;
}

}  // namespace understudy::platform
