// SPDX-License-Identifier: Apache-2.0
//
// A process that loads a second copy of the library, under another file name or in a namespace of
// the linker. The copy works, or is refused with a text that names both files; in no case does the
// first one lose anything.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <string>

#include "process/sharing_objects.h"
#include "support/fork_safety.h"
#include "support/server_directory.h"

namespace understudy_test::share {
namespace {

constexpr size_t kSize = 2 * kGranule;

std::string library_path() {
  Dl_info found{};
  EXPECT_NE(dladdr(reinterpret_cast<void*>(&aclrtSetDevice), &found), 0);
  return found.dli_fname;
}

// Few functions of the copy, as dlsym finds them.
class Copy {
 public:
  explicit Copy(void* library) : library_(library) {}

  aclError set_device(int32_t device) const {
    return function<decltype(&aclrtSetDevice)>("aclrtSetDevice")(device);
  }
  aclError allocate(void** data, size_t size) const {
    return function<decltype(&aclrtMalloc)>("aclrtMalloc")(data, size, ACL_MEM_MALLOC_HUGE_FIRST);
  }
  aclError free(void* data) const { return function<decltype(&aclrtFree)>("aclrtFree")(data); }
  aclError reset_device(int32_t device) const {
    return function<decltype(&aclrtResetDeviceForce)>("aclrtResetDeviceForce")(device);
  }
  std::string recent_error() const {
    const char* const text = function<decltype(&aclGetRecentErrMsg)>("aclGetRecentErrMsg")();
    return text == nullptr ? "" : text;
  }

 private:
  template <typename Function>
  Function function(const char* name) const {
    void* const found = dlsym(library_, name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function>(found);
  }
  void* const library_;
};

// ---- The two ways to a second copy; each tells the path that the linker knows it by ----

struct Loaded {
  void* library = nullptr;
  std::string path;
};

Loaded load_under_another_name(const ServerDirectory& directory) {
  const std::string path = directory.path() + "/libanother.so";
  std::filesystem::copy_file(library_path(), path);
  return {dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), path};
}
Loaded load_in_a_namespace(const ServerDirectory&) {
  return {dlmopen(LM_ID_NEWLM, library_path().c_str(), RTLD_NOW | RTLD_LOCAL), library_path()};
}

// Those that the library recognizes: the name is a published one.
std::string make_copy_of_the_same_name(const ServerDirectory& directory) {
  const std::string path = directory.path() + "/libascendcl.so";
  std::filesystem::copy_file(library_path(), path);
  return path;
}
Loaded load_under_the_same_name(const ServerDirectory& directory) {
  const std::string path = make_copy_of_the_same_name(directory);
  return {dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), path};
}
Loaded load_through_a_link_of_another_name(const ServerDirectory& directory) {
  const std::string path = directory.path() + "/libother.so";
  std::filesystem::create_symlink(make_copy_of_the_same_name(directory), path);
  return {dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), path};
}
Loaded load_under_the_same_name_in_a_namespace(const ServerDirectory& directory) {
  const std::string path = make_copy_of_the_same_name(directory);
  return {dlmopen(LM_ID_NEWLM, path.c_str(), RTLD_NOW | RTLD_LOCAL), path};
}

struct Way {
  const char* name;
  Loaded (*load)(const ServerDirectory& directory);
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class SecondCopy : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, SecondCopy,
                         testing::Values(Way{"AnotherName", load_under_another_name},
                                         Way{"LinkerNamespace", load_in_a_namespace}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

class SecondCopyOfTheSameName : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(
    , SecondCopyOfTheSameName,
    testing::Values(Way{"Elsewhere", load_under_the_same_name},
                    Way{"ThroughALinkOfAnotherName", load_through_a_link_of_another_name},
                    Way{"ElsewhereInALinkerNamespace", load_under_the_same_name_in_a_namespace}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

void use_and_end(const Copy& copy) {
  void* data = nullptr;
  EXPECT_EQ(copy.allocate(&data, kSize), ACL_SUCCESS) << copy.recent_error();
  EXPECT_EQ(copy.free(data), ACL_SUCCESS) << copy.recent_error();
  EXPECT_EQ(copy.reset_device(0), ACL_SUCCESS) << copy.recent_error();
}

TEST_P(SecondCopy, TheFirstGoesOnWithItsBytesAndItsCharges) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"}, {"UNDERSTUDY_MEMORY", "1G"});
  if (why_no_fork_of_threads() != nullptr) GTEST_SKIP() << "a sanitizer is in one namespace alone";
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const size_t all = huge_bytes_free();
  const Offer offer = offer_block(kSize, kEveryone, 1);
  const KeyOffer allocation = offer_key(kSize, 2);
  Remote importer;
  const View view = importer.call(import_view, offer.token, kSize, 0);
  const View foreign_view = [&] {
    const Offer foreign = importer.call(offer_block, kSize, kEveryone, uint8_t{3});
    return import_view(foreign.token, kSize, 0);
  }();
  const size_t free = huge_bytes_free();

  const ServerDirectory directory;
  const Loaded loaded = GetParam().load(directory);
  ASSERT_NE(loaded.library, nullptr) << dlerror();
  const Copy copy(loaded.library);
  if (copy.set_device(0) == ACL_SUCCESS) {
    EXPECT_EQ(huge_bytes_free(), free);
    use_and_end(copy);
  } else {
    const std::string text = copy.recent_error();
    EXPECT_NE(text.find(std::filesystem::canonical(library_path())), std::string::npos) << text;
    EXPECT_NE(text.find(std::filesystem::canonical(loaded.path)), std::string::npos) << text;
  }

  EXPECT_EQ(huge_bytes_free(), free);
  EXPECT_EQ(importer.call(huge_bytes_free), free);
  EXPECT_TRUE(is_marked(offer.view.start, kSize, 1));
  EXPECT_TRUE(is_marked(allocation.start, kSize, 2));
  EXPECT_TRUE(is_marked(foreign_view.start, kSize, 3));
  EXPECT_TRUE(importer.call(is_marked, view.start, kSize, uint8_t{1}));
  {
    SCOPED_TRACE("a process that comes later");
    Remote late;
    EXPECT_EQ(late.call(huge_bytes_free), free);
    EXPECT_EQ(late.import(offer.token), ACL_SUCCESS);
    // And one that the first exports from now on.
    const Offer next = offer_block(kSize, kEveryone, 4);
    EXPECT_EQ(late.import(next.token), ACL_SUCCESS);
    close_view(next.view);
  }
  importer.call(close_view, view);
  close_view(foreign_view);
  importer.finish();
  close_view(offer.view);
  withdraw_key(allocation);
  EXPECT_EQ(huge_bytes_free(), all);
}

// The copy came first: the linked one is the second.
TEST_P(SecondCopy, WhicheverComesFirstGoesOn) {
  US_FRESH_PROCESS({"UNDERSTUDY_DEVICES", "2"}, {"UNDERSTUDY_MEMORY", "1G"});
  if (why_no_fork_of_threads() != nullptr) GTEST_SKIP() << "a sanitizer is in one namespace alone";
  const ServerDirectory directory;
  const Loaded loaded = GetParam().load(directory);
  ASSERT_NE(loaded.library, nullptr) << dlerror();
  const Copy copy(loaded.library);
  ASSERT_EQ(copy.set_device(0), ACL_SUCCESS) << copy.recent_error();
  void* data = nullptr;
  ASSERT_EQ(copy.allocate(&data, kSize), ACL_SUCCESS);
  Remote witness;
  const size_t free = witness.call(huge_bytes_free);
  if (aclrtSetDevice(0) != ACL_SUCCESS) {
    const std::string text = recent_error();
    EXPECT_NE(text.find(std::filesystem::canonical(library_path())), std::string::npos) << text;
    EXPECT_NE(text.find(std::filesystem::canonical(loaded.path)), std::string::npos) << text;
  }
  EXPECT_EQ(witness.call(huge_bytes_free), free);
  EXPECT_EQ(copy.free(data), ACL_SUCCESS) << copy.recent_error();
  EXPECT_GE(witness.call(huge_bytes_free), free + kSize);
}

TEST_P(SecondCopyOfTheSameName, IsRefusedOnBothSidesWithBothNames) {
  US_FRESH_PROCESS();
  if (why_no_fork_of_threads() != nullptr) GTEST_SKIP() << "a sanitizer is in one namespace alone";
  const ServerDirectory directory;
  const Loaded loaded = GetParam().load(directory);
  ASSERT_NE(loaded.library, nullptr) << dlerror();
  const Copy copy(loaded.library);
  EXPECT_NE(copy.set_device(0), ACL_SUCCESS);
  EXPECT_NE(aclrtSetDevice(0), ACL_SUCCESS);
  for (const std::string& text : {copy.recent_error(), recent_error()}) {
    EXPECT_NE(text.find("two copies of the library"), std::string::npos) << text;
    EXPECT_NE(text.find(std::filesystem::canonical(library_path())), std::string::npos) << text;
    EXPECT_NE(text.find(std::filesystem::canonical(loaded.path)), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace understudy_test::share
