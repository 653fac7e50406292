// SPDX-License-Identifier: Apache-2.0
//
// Names that are nearly those of a setting.
#include <cstdlib>
#include <fstream>
#include <string>

#include "process/log_objects.h"

namespace understudy_test::logged {
namespace {

TEST(UnknownKey, InTheFileNamesTheNearest) {
  US_FRESH_PROCESS();
  const OwnFile config("config");
  std::ofstream(config.path()) << "memroy = \"1G\"\n";
  setenv("UNDERSTUDY_CONFIG", config.path().c_str(), 1);
  EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(recent_error(), "aclrtSetDevice: " + config.path() +
                                " has the unknown configuration key memroy; the nearest key is "
                                "memory\n");
}

TEST(UnknownVariable, IsNamedOnceWithTheNearestSetting) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMROY", "1G"});
  const std::string told = stderr_of([] {
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    in_child([] { EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS); });
  });
  EXPECT_EQ(told,
            "understudy: UNDERSTUDY_MEMROY is not a setting; did you mean UNDERSTUDY_MEMORY?\n");
}

}  // namespace
}  // namespace understudy_test::logged
