// SPDX-License-Identifier: Apache-2.0
//
// A libascendcl.so of any origin and file name, and what a test program needs to run on it. Nothing
// of it is loaded into this process: a library may crash, hang or end its process when it is
// loaded.
#pragma once

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace understudy::command {

// One sentence for the user.
struct LibraryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What it says about itself; a text is empty where it says nothing.
struct LibraryDescription {
  std::string file;             // behind all links
  std::string runtime_version;  // aclrtGetVersion
  std::string package_version;  // aclsysGetCANNVersion of CANN
  std::string soc;              // aclrtGetSocName
  std::string product;          // of the configuration, by the SoC
  int devices = -1;             // -1: it does not tell
  int init_code = 0;            // what aclInit answered
  bool is_understudy = false;
};

class LibraryUnderTest {
 public:
  // `directory` gets links by the names that programs look for, and outlives this object. Libraries
  // beside the given one are found as well. Throws LibraryError if there is no such file.
  LibraryUnderTest(const std::filesystem::path& library, std::filesystem::path directory);

  // Starts the program on the library and asks. Throws LibraryError if it cannot be loaded.
  LibraryDescription describe(const std::string& program,
                              std::chrono::milliseconds time_limit) const;

  // For tests on it. Of our own configuration nothing is left. `foreign` has what tests must know
  // of a library that is not Understudy, else it is null.
  std::vector<std::string> environment(const LibraryDescription* foreign) const;

 private:
  std::filesystem::path library_;
  std::filesystem::path directory_;
};

}  // namespace understudy::command
