// SPDX-License-Identifier: Apache-2.0
//
// What a test program does besides testing when `understudy conformance` runs it, on this or any
// other libascendcl.so. The command and the program agree on four variables:
//
//   UNDERSTUDY_TEST_RECORD=FILE     every test and every failure is a line of JSON in FILE, written
//                                   as it happens: the last line tells which test ended a process
//   UNDERSTUDY_TEST_FOREIGN=PRODUCT the library is not Understudy. Its configuration means nothing
//                                   there: tests of other products or switches do not apply, and
//                                   two failures with different codes are recorded, not failed
//   UNDERSTUDY_TEST_SOC=NAME        the chip of a foreign library
//   UNDERSTUDY_TEST_DESCRIBE=FILE   no tests: the library's own answers about itself, into FILE
//
// Processes that a test starts (US_FRESH_PROCESS, Peer) inherit them and write to the same file.
// Without these variables all of this does nothing, and tests assert exact codes. Functions may be
// called by any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acl/acl_base.h"
#include "support/fresh_process.h"

namespace understudy_test {

// For main: writes the records of this process, if they are wanted.
void record_tests();
// For main: true if only a description was wanted, and it is written.
bool described_library(int& exit_code);

// True if the library is foreign and failed as it should, with another code; that is recorded.
bool is_recorded_difference(aclError expected, aclError actual, const char* call);
// True if texts may be anybody's: only ERR-03 is about them.
bool may_lack_text();
// Why a test that needs these variables does not apply to a foreign library, if it does not.
std::optional<std::string> why_not_applicable(const std::vector<Variable>& variables);

}  // namespace understudy_test
