// SPDX-License-Identifier: Apache-2.0
//
// How long until a process has read 2 MiB that another one exported: export, import, map, read. The
// baseline is what a program would write by hand: connect to a socket, get the descriptor of a
// memory file, map it, read it. Both in 2 MiB pages where the kernel gives them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "support/device.h"
#include "support/fail.h"
#include "support/measure.h"
#include "support/other_process.h"
#include "support/private_server.h"
#include "support/raw_memory.h"
#include "support/report.h"

namespace {

using namespace bench;

constexpr unsigned char kFill = 0x5A;

// ---- The exporter ----

sockaddr_un raw_address() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s/raw", use_private_server().c_str());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// A message of one byte with room for a descriptor.
struct DescriptorMessage {
  DescriptorMessage() {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
};

void send_descriptor(int socket, int descriptor) {
  const DescriptorMessage message;
  cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  require(sendmsg(socket, &message.header, 0) == 1, "sendmsg");
}

// Answers every connection with the descriptor of 2 MiB.
void serve_raw(int listener) {
  const int file = memfd_create("understudy-raw", MFD_CLOEXEC);
  require(file >= 0 && ftruncate(file, kGranule) == 0, "memfd");
  std::byte* const window = raw_reserve(kGranule);
  require(
      mmap(window, kGranule, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED,
      "mmap");
  raw_populate_huge(window, kGranule);
  memset(window, kFill, kGranule);
  while (true) {
    const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    require(connection >= 0, "accept");
    char request = 0;
    if (recv(connection, &request, 1, 0) == 1) send_descriptor(connection, file);
    close(connection);
  }
}

struct Exported {
  uint64_t token = 0;
  double nanoseconds = 0;
};

// Exports a block for each request, for all or for the process that is named.
void run_exporter(const Line& line) {
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const sockaddr_un address = raw_address();
  require(listener >= 0 && bind(listener, generic(address), sizeof address) == 0 &&
              listen(listener, 16) == 0,
          "listen");
  std::thread(serve_raw, listener).detach();
  start_device();
  std::byte* const base = reserve_addresses(kGranule);
  for (int32_t importer = 0; line.receive_or_end(&importer, sizeof importer);) {
    const aclrtDrvMemHandle block = create_block(kGranule);
    map_block(base, kGranule, block);
    check(aclrtMemset(base, kGranule, kFill, kGranule));
    const Stopwatch time;
    Exported exported;
    check(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, importer == 0 ? 1 : 0,
                                          &exported.token));
    if (importer != 0) check(aclrtMemSetPidToShareableHandle(exported.token, &importer, 1));
    exported.nanoseconds = time.nanoseconds();
    line.send(exported);
    (void)line.receive<bool>();  // it was read
    check(aclrtUnmapMem(base));
    check(aclrtFreePhysical(block));
    line.send(true);
  }
}

// ---- The importer ----

class Importer {
 public:
  explicit Importer(const Line& line)
      : line_(line), base_(reserve_addresses(kGranule)), buffer_(kGranule) {}

  // The time until a block of the other process is read, or only mapped.
  double read_block(int32_t listed) { return get_block(listed).until_read; }
  double map_block_only(int32_t listed) { return get_block(listed).until_mapped; }

  // From now on something of the other process is in use, so every block is a further one.
  void hold_one() {
    line_.send(int32_t{0});
    aclrtDrvMemHandle block = nullptr;
    check(aclrtMemImportFromShareableHandle(line_.receive<Exported>().token, 0, &block));
    let_go();
  }

  double read_raw() {
    const Stopwatch time;
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const sockaddr_un address = raw_address();
    require(connect(connection, generic(address), sizeof address) == 0, "connect");
    require(send(connection, "?", 1, 0) == 1, "send");
    const int file = receive_descriptor(connection);
    void* const window =
        mmap(base_raw_, kGranule, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    require(window != MAP_FAILED, "mmap");
    memcpy(buffer_.data(), window, kGranule);
    const double nanoseconds = time.nanoseconds();
    check_bytes();
    raw_cover(base_raw_, kGranule);
    close(file);
    close(connection);
    return nanoseconds / 1000;
  }

 private:
  struct Times {
    double until_mapped;
    double until_read;
  };
  Times get_block(int32_t listed) {
    line_.send(listed);
    const auto exported = line_.receive<Exported>();
    const Stopwatch time;
    aclrtDrvMemHandle block = nullptr;
    check(aclrtMemImportFromShareableHandle(exported.token, 0, &block));
    map_block(base_, kGranule, block);
    const double mapped = time.nanoseconds();
    check(aclrtMemcpy(buffer_.data(), kGranule, base_, kGranule, ACL_MEMCPY_DEVICE_TO_HOST));
    const double read = time.nanoseconds();
    check_bytes();
    check(aclrtUnmapMem(base_));
    check(aclrtFreePhysical(block));
    let_go();
    return {(mapped + exported.nanoseconds) / 1000, (read + exported.nanoseconds) / 1000};
  }
  // The other process may free its block.
  void let_go() const {
    line_.send(true);
    (void)line_.receive<bool>();
  }
  static int receive_descriptor(int connection) {
    DescriptorMessage message;
    require(recvmsg(connection, &message.header, MSG_CMSG_CLOEXEC) == 1, "recvmsg");
    int file = -1;
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message.header)), sizeof file);
    return file;
  }
  void check_bytes() {
    for (const size_t at : {size_t{0}, kGranule / 2, kGranule - 1}) {
      if (buffer_[at] != kFill) fail("a byte of the exporter did not arrive");
    }
    memset(buffer_.data(), 0, kGranule);
  }

  const Line& line_;
  std::byte* const base_;
  std::byte* const base_raw_ = raw_reserve(kGranule);
  std::vector<unsigned char> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  const Report report("sharing", argc, argv);
  {
    const OtherProcess exporter(run_exporter);
    start_device();
    Importer importer(exporter.line());
    int32_t own = 0;
    check(aclrtDeviceGetBareTgid(&own));
    const unsigned repetitions = report.full_or_smoke(401U, 3U);
    const auto raw = [&] { return importer.read_raw(); };
    const auto open = [&] { return importer.read_block(0); };
    const auto listed = [&] { return importer.read_block(own); };
    constexpr Goal kNearRaw{.at_least_better = 1 / 1.3};
    const std::vector<double> first = medians(repetitions, {open, raw, listed, raw});
    report.add({"first block, open to all", kMicroseconds, first[0], first[1], kNearRaw});
    report.add({"first block, whitelist", kMicroseconds, first[2], first[3], kNearRaw});
    importer.hold_one();
    const std::vector<double> second =
        medians(repetitions, {open, raw, listed, raw, [&] { return importer.map_block_only(0); }});
    report.add({"second block, open to all", kMicroseconds, second[0], second[1], kNearRaw});
    report.add({"second block, whitelist", kMicroseconds, second[2], second[3], kNearRaw});
    report.add({"open to all, until mapped", kMicroseconds, second[4], {}, {.at_most = 20}});
  }
}
