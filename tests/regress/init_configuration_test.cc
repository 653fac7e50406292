// SPDX-License-Identifier: Apache-2.0
//
// Faults once found in how aclInit reads and remembers its configuration.
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

// A file that is removed with the object.
class JsonFile {
 public:
  explicit JsonFile(const std::string& text)
      : path_(testing::TempDir() + "understudy-" + std::to_string(getpid()) + ".json") {
    std::ofstream(path_) << text;
  }
  ~JsonFile() { unlink(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(InitConfiguration, DeepNestingIsRefusedAndNotFollowed) {
  US_FRESH_PROCESS();
  constexpr size_t kDepth = 300000;
  const JsonFile file("{\"a\":" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}");
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclInit(file.path()));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(InitConfiguration, SpecialFilesAreRefusedAtOnce) {
  US_FRESH_PROCESS();
  EXPECT_FAILS(ACL_ERROR_INVALID_FILE, aclInit("/dev/zero"));
}

aclError refuse(const char*, size_t, void*) { return 123; }

TEST(InitConfiguration, AnInitThatACallbackRefusedIsForgotten) {
  US_FRESH_PROCESS();
  const JsonFile file("{\"err_msg_mode\":\"0\"}");
  ASSERT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, refuse, nullptr));
  EXPECT_FAILS(123, aclInit(file.path()));
  ASSERT_SUCCESS(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, refuse));
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

}  // namespace
}  // namespace understudy_test
