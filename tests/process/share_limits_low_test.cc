// SPDX-License-Identifier: Apache-2.0
//
// Sharing by processes that have little: no room in files, no descriptor left, none of those that
// the library had opened; and an exporter that dies while another process waits for its answer and
// its fork child lives on.
// Covers: INFO-09, SHARE-06, SHARE-28, SHARE-30, SHARE-31.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include "process/sharing_objects.h"
#include "stress/process_status.h"
#include "support/server_directory.h"

namespace understudy_test::share {
namespace {

constexpr size_t kNoLimit = ~size_t{0};

void limit_files(size_t bytes) { limit_process(RLIMIT_FSIZE, bytes); }
aclError try_bind() { return aclrtSetDevice(0); }
aclError free_block(aclrtDrvMemHandle handle) { return aclrtFreePhysical(handle); }
aclrtDrvMemHandle new_block() { return create_block(kGranule); }
Exported try_export(aclrtDrvMemHandle handle) {
  return export_with(Version::kV1, handle, kEveryone);
}

// ---- No room in files ----

TEST(ShareLimitsLow, SHARE_06_FilesThatMustNotGrowAreACodeAndNotTheEndOfTheProcess) {
  const ServerDirectory directory;  // of nobody else, so that there is nothing to be found
  Remote process(kNoDevice, {{kServerVariable, directory.path()}});
  process.call(limit_files, 8 * kKiB);
  EXPECT_EQ(process.call(try_bind), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
  process.call(limit_files, 4 * kMiB);
  EXPECT_EQ(process.call(try_bind), ACL_SUCCESS);
  const aclrtDrvMemHandle block = process.call(new_block);
  EXPECT_EQ(process.call(try_export, block).code, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
  process.call(limit_files, kNoLimit);
  EXPECT_EQ(process.call(try_export, block).code, ACL_SUCCESS);
  EXPECT_EQ(process.call(free_block, block), ACL_SUCCESS);
}

// ---- No descriptor left ----

std::vector<int>& spent_descriptors() {
  static std::vector<int> spent;
  return spent;
}
void spend_descriptors(size_t left) {
  limit_process(RLIMIT_NOFILE, 128);
  for (int each = 0; (each = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
    spent_descriptors().push_back(each);
  }
  for (; left > 0; --left) {
    close(spent_descriptors().back());
    spent_descriptors().pop_back();
  }
}
void give_back_descriptors() {
  for (const int each : spent_descriptors()) close(each);
  spent_descriptors().clear();
}

aclError try_list(uint64_t token, int32_t process) {
  return list_with(Version::kV1, token, {process});
}

// A block that only listed processes may import, and one of them to be.
struct ListedOffer {
  Remote exporter;
  Remote importer;
  const Offer offer = exporter.call(offer_block, kGranule, kListed, uint8_t{3});

  aclError list_importer() { return exporter.call(try_list, offer.token, importer.id()); }
  aclError import() { return importer.import(offer.token); }
  void close() { exporter.call(close_view, offer.view); }
};

using ShareDescriptors = VirtualMemoryTest;

TEST_F(ShareDescriptors, SHARE_30_SHARE_31_AProcessThatCannotBeLookedAtIsNotListedInSilence) {
  ListedOffer scene;
  const int32_t importer = scene.importer.id();
  scene.exporter.call(spend_descriptors, 0);
  EXPECT_EQ(scene.exporter.call(try_list, scene.offer.token, importer),
            ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
  scene.exporter.call(give_back_descriptors);
  EXPECT_EQ(scene.import(), ACL_ERROR_RT_NO_PERMISSION);
  EXPECT_EQ(scene.list_importer(), ACL_SUCCESS);
  EXPECT_EQ(scene.import(), ACL_SUCCESS);
  scene.close();
}

TEST_F(ShareDescriptors, SHARE_31_AListedProcessIsNeverCalledUnlistedByAnExporterInNeed) {
  ListedOffer scene;
  EXPECT_EQ(scene.list_importer(), ACL_SUCCESS);
  for (const size_t left : {size_t{1}, size_t{0}}) {
    SCOPED_TRACE(testing::Message() << left << " descriptors left");
    scene.exporter.call(spend_descriptors, left);
    scene.importer.start(try_import, Version::kV1, scene.offer.token, 0);
    // With one it can hear what is asked for, but not look who asks. With none it cannot even
    // hear, until it has some again.
    if (left == 0) scene.exporter.call(give_back_descriptors);
    const auto code = scene.importer.result<aclError>();
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_IPC_ERROR) << code;
    if (left != 0) scene.exporter.call(give_back_descriptors);
    EXPECT_EQ(scene.import(), ACL_SUCCESS) << "now that there are descriptors";
  }
  scene.close();
}

// ---- Descriptors of the library, closed by a program that does not know them ----

constexpr unsigned kFirstUnknown = 4;  // behind the channel of a peer

void close_unknown_descriptors() { close_range(kFirstUnknown, ~0U, 0); }

TEST(ShareLimitsLow, INFO_09_WhoClosesAllDescriptorsTakesNothingFromOthers) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"});
  const DeviceScope device;
  const size_t all = huge_bytes_free();
  void* start = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&start, 64 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY));
  const size_t rest = huge_bytes_free();
  {
    Remote careless;
    EXPECT_EQ(careless.call(huge_bytes_free), rest);
    careless.call(close_unknown_descriptors);
    EXPECT_EQ(careless.call(huge_bytes_free), rest);
    EXPECT_EQ(huge_bytes_free(), rest);
  }
  EXPECT_EQ(huge_bytes_free(), rest);
  EXPECT_SUCCESS(aclrtFree(start));
  EXPECT_EQ(huge_bytes_free(), all);
}

// ---- An exporter with a fork child ----

// Uses nothing of the library. Ends by itself if the test does not end it.
pid_t fork_bystander() {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(60);
  while (true) pause();
}

size_t sockets_of(pid_t process) {
  size_t sockets = 0;
  std::error_code failed;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), failed);
    if (!failed && target.starts_with("socket:")) ++sockets;
  }
  return sockets;
}

void stop(const Remote& process) {
  ASSERT_EQ(kill(process.pid(), SIGSTOP), 0);
  siginfo_t stopped{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &stopped, WSTOPPED), 0);
}

// Without a look at the figures, which the end of the exporter changes.
aclError import_once(uint64_t token) {
  aclrtDrvMemHandle handle = nullptr;
  const aclError code = aclrtMemImportFromShareableHandle(token, 0, &handle);
  if (code == ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
  }
  return code;
}

TEST_F(ShareDescriptors, SHARE_28_AForkChildDoesNotKeepTheImportersOfADeadExporterWaiting) {
  ListedOffer scene;
  EXPECT_EQ(scene.list_importer(), ACL_SUCCESS);
  const pid_t bystander = scene.exporter.call(fork_bystander);
  stop(scene.exporter);
  const size_t sockets = sockets_of(scene.importer.pid());
  scene.importer.start(import_once, scene.offer.token);
  EXPECT_TRUE(comes_true([&] { return sockets_of(scene.importer.pid()) > sockets; }));
  scene.exporter.kill();
  EXPECT_EQ(scene.importer.result<aclError>(), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(kill(bystander, SIGKILL), 0) << "it outlived its parent";
}

}  // namespace
}  // namespace understudy_test::share
