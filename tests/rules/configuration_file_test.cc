// SPDX-License-Identifier: Apache-2.0
//
// The configuration file that UNDERSTUDY_CONFIG names: its keys, its errors, and the variables that
// override it. A test's first lines run in the parent as well, which is where its file is made.
#include <cstdlib>
#include <string>
#include <vector>

#include "rules/runtime_support.h"
#include "rules/temporary_file.h"

namespace understudy_test::runtime {
namespace {

TEST(Configuration, FileGivesTheValues) {
  const TemporaryFile file(
      "product = \"a3\"\n"
      "soc = \"Ascend910_9391\"\n"
      "devices = 2\n"
      "memory = \"16G\"\n"
      "normal_memory = \"1G\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910_9391");
  EXPECT_EQ(device_count(), 2u);
  EXPECT_EQ(total_memory(), 16 * kGiB);
  EXPECT_EQ(total_memory(ACL_HBM_MEM_NORMAL), kGiB);
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Configuration, FileTakesEveryKey) {
  const TemporaryFile file(
      "product = \"a2\"\n"
      "soc = \"Ascend910B3\"\n"
      "devices = 8\n"
      "memory = \"64G\"\n"
      "normal_memory = \"1/16\"\n"
      "idle_usage = \"3G\"\n"
      "slice = \"vir10_3c_32g\"\n"
      "driver = \"25.5.0\"\n"
      "size_alignment = \"round_up\"\n"
      "attr_set = \"full\"\n"
      "reserve_flag = \"ignore\"\n"
      "expect_ptr = \"hint\"\n"
      "device_binding = \"while_mapped\"\n"
      "sync_d2d = \"reject\"\n"
      "host_access = \"deny\"\n"
      "host_lock = \"best_effort\"\n"
      "backing = \"auto\"\n"
      "commit = \"lazy\"\n"
      "host_budget = \"auto\"\n"
      "host_p2p_memory = \"8G\"\n"
      "poison = \"off\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclrtFreePhysical(create_block(3 * kMiB)));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(Configuration, FileMayGiveASizeAsANumberOfBytes) {
  const TemporaryFile file("memory = 1073741824\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  EXPECT_EQ(total_memory(), kGiB);
}

TEST(Configuration, EmptyFileChangesNothing) {
  const TemporaryFile file("# nothing but a comment\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  EXPECT_EQ(device_count(), 8u);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B3");
}

TEST(Configuration, VariablesOverrideTheFile) {
  const TemporaryFile file(
      "devices = 2\n"
      "memory = \"16G\"\n"
      "size_alignment = \"round_up\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()}, {"UNDERSTUDY_DEVICES", "5"},
                   {"UNDERSTUDY_SIZE_ALIGNMENT", "reject"});
  EXPECT_EQ(device_count(), 5u);
  EXPECT_EQ(total_memory(), 16 * kGiB) << "a key without a variable keeps the file's value";
  const aclrtPhysicalMemProp property = block_property();
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMallocPhysical(&handle, 3 * kMiB, &property, 0));
}

// The text of the refusal, which must come from aclInit and from the first call without it.
std::string refusal(aclError* code) {
  *code = aclInit(nullptr);
  const std::string text = recent_error();
  uint32_t count = 77;
  EXPECT_EQ(aclrtGetDeviceCount(&count), *code);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(recent_error().empty(), *code == ACL_SUCCESS);
  EXPECT_EQ(aclrtGetSocName(), nullptr);
  return text;
}

void expect_refused_naming(const std::vector<std::string>& words) {
  aclError code = ACL_SUCCESS;
  const std::string text = refusal(&code);
  EXPECT_EQ(code, ACL_ERROR_INVALID_PARAM);
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " is missing: " << text;
  }
}

// No rule names the code for a file that can't be used, only that the text names the file.
void expect_file_refused(const std::string& path) {
  aclError code = ACL_SUCCESS;
  const std::string text = refusal(&code);
  EXPECT_NE(code, ACL_SUCCESS);
  EXPECT_NE(text.find(path), std::string::npos) << text;
}

std::string configured_path() { return getenv("UNDERSTUDY_CONFIG"); }

TEST(Configuration, UnknownKeyInTheFileIsNamed) {
  const TemporaryFile file("devices = 2\ncolour = \"red\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  expect_refused_naming({"colour"});
}

TEST(Configuration, WrongValueInTheFileIsNamed) {
  const TemporaryFile file("host_access = \"sometimes\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  expect_refused_naming({"host_access", "sometimes", "deny", "allow"});
}

TEST(Configuration, WrongTypeInTheFileIsNamed) {
  const TemporaryFile file("devices = \"many\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  expect_refused_naming({"devices", "many"});
}

TEST(Configuration, TableInTheFileIsNamed) {
  const TemporaryFile file("[product]\nname = \"a2\"\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  expect_refused_naming({"product"});
}

TEST(Configuration, MalformedFileIsNamed) {
  const TemporaryFile file("devices = = 2\n");
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", file.path()});
  expect_file_refused(configured_path());
}

TEST(Configuration, MissingFileIsNamed) {
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", "/nonexistent/understudy/configuration.toml"});
  expect_file_refused("/nonexistent/understudy/configuration.toml");
}

TEST(Configuration, UnreadableFileIsNamed) {
  const TemporaryDirectory directory;
  US_FRESH_PROCESS({"UNDERSTUDY_CONFIG", directory.path()});
  expect_file_refused(configured_path());
}

}  // namespace
}  // namespace understudy_test::runtime
