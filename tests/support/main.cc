// SPDX-License-Identifier: Apache-2.0
//
// main of the test programs that see what a user sees: each has software NPUs of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "support/conformance.h"
#include "support/peer.h"
#include "support/server_directory.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int exit_code = 0;
  if (understudy_test::described_library(exit_code)) return exit_code;
  understudy_test::record_tests();
  if (understudy_test::ran_as_peer(exit_code)) return exit_code;
  std::optional<understudy_test::ServerDirectory> directory;
  if (getenv(understudy_test::kServerVariable) == nullptr) {
    directory.emplace();
    setenv(understudy_test::kServerVariable, directory->path().c_str(), 1);
  }
  return RUN_ALL_TESTS();
}
