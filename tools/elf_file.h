// SPDX-License-Identifier: Apache-2.0
//
// What an ELF file of this machine says to the dynamic loader. It is read, never executed: asking
// about a program must not run it. Everything in it may be wrong; nothing in it is trusted.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace understudy::command {

struct ElfFile {
  std::string path;
  std::string interpreter;  // the loader of a program; empty for libraries
  bool is_dynamic = false;
  std::string name;  // by which others need it (SONAME)
  std::vector<std::string> needed;
  std::optional<std::string> rpath;
  std::optional<std::string> runpath;
  bool searches_defaults = true;

  // Nothing if it cannot be read or is none that a process of this machine could load.
  static std::optional<ElfFile> read(const std::string& path);
};

// Whether a library defines a dynamic symbol of this name.
bool defines_symbol(const std::string& path, const std::string& symbol);

}  // namespace understudy::command
