// SPDX-License-Identifier: Apache-2.0
// Small programs with several streams, for the key `schedule`:
//   scheduled_streams SCENARIO
// Each prints one line: what its functions noted, in their order, and what its copies brought.
#include <acl/acl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr size_t kBytes = 4096;

void require(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(2);
}
#define REQUIRE(call) require(call, #call)

std::string noted;                 // by one function at a time, as the schedule promises
std::atomic<bool> is_open{false};  // a gate between functions

// A name that a task notes when it runs.
void note(void* name) { noted += static_cast<const char*>(name); }
void open_gate(void*) { is_open.store(true); }
void pass_gate(void*) {
  while (!is_open.load()) usleep(100);
  noted += "p";
}

aclrtStream make_stream() {
  aclrtStream stream = nullptr;
  REQUIRE(aclrtCreateStream(&stream));
  return stream;
}
void launch(aclrtStream stream, const char* name) {
  REQUIRE(aclrtLaunchHostFunc(stream, note, const_cast<char*>(name)));
}

// Two streams, memory of the device and of the host, and an event.
struct World {
  aclrtStream one = make_stream();
  aclrtStream two = make_stream();
  aclrtEvent event = nullptr;
  aclrtNotify notify = nullptr;
  void* memory = nullptr;
  volatile unsigned char* host = nullptr;

  World() {
    void* page_locked = nullptr;
    REQUIRE(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    REQUIRE(aclrtCreateNotify(&notify, 0));
    REQUIRE(aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    REQUIRE(aclrtMemset(memory, kBytes, 1, kBytes));
    REQUIRE(aclrtMallocHost(&page_locked, kBytes));
    memset(page_locked, 0, kBytes);
    host = static_cast<volatile unsigned char*>(page_locked);
  }
  void set(int value, aclrtStream stream) const {
    REQUIRE(aclrtMemsetAsync(memory, kBytes, value, kBytes, stream));
  }
  void fetch(aclrtStream stream) const {
    REQUIRE(aclrtMemcpyAsync(const_cast<unsigned char*>(host), kBytes, memory, kBytes,
                             ACL_MEMCPY_DEVICE_TO_HOST, stream));
  }
  void synchronize() const {
    REQUIRE(aclrtSynchronizeStream(one));
    REQUIRE(aclrtSynchronizeStream(two));
  }
  void note_byte() const { noted += std::to_string(host[0]); }
};

// Two streams with five functions each.
void letters() {
  const World world;
  for (const char* name : {"a", "b", "c", "d", "e"}) launch(world.one, name);
  for (const char* name : {"1", "2", "3", "4", "5"}) launch(world.two, name);
  REQUIRE(aclrtSynchronizeStream(world.one));
  noted += "|";
  world.synchronize();
}

void many() {
  static char names[64][4];
  std::vector<aclrtStream> streams;
  for (auto& name : names) {
    snprintf(name, sizeof name, "%zu ", streams.size());
    streams.push_back(make_stream());
    for (int i = 0; i < 3; ++i) launch(streams.back(), name);
  }
  REQUIRE(aclrtSynchronizeDevice());
}

// One stream writes, the other one reads.
enum class Wait { kNone, kEvent, kNotify };
void read_behind_write(Wait wait) {
  const World world;
  world.set(2, world.one);
  if (wait == Wait::kEvent) {
    REQUIRE(aclrtRecordEvent(world.event, world.one));
    REQUIRE(aclrtStreamWaitEvent(world.two, world.event));
  } else if (wait == Wait::kNotify) {
    REQUIRE(aclrtRecordNotify(world.notify, world.one));
    REQUIRE(aclrtWaitAndResetNotify(world.notify, world.two, 0));
  }
  world.fetch(world.two);
  REQUIRE(aclrtSynchronizeStream(world.two));
  world.note_byte();
  world.synchronize();
}
void missing() { read_behind_write(Wait::kNone); }
void event() { read_behind_write(Wait::kEvent); }
void notify() { read_behind_write(Wait::kNotify); }

// Reads memory of the host behind a synchronisation of the other stream.
void wrong_stream() {
  const World world;
  world.fetch(world.one);
  launch(world.two, "x");
  REQUIRE(aclrtSynchronizeStream(world.two));
  world.note_byte();
  world.synchronize();
}

void value() {
  const World world;
  auto* const words = static_cast<uint64_t*>(world.memory);
  REQUIRE(aclrtMemset(world.memory, kBytes, 0, kBytes));
  REQUIRE(aclrtValueWait(words, 7, ACL_STREAM_WAIT_VALUE_EQ, world.one));
  launch(world.one, "w");
  launch(world.two, "1");
  REQUIRE(aclrtValueWrite(words, 7, 0, world.two));
  launch(world.two, "2");
  REQUIRE(aclrtSynchronizeStream(world.one));
  noted += "|";
  world.synchronize();
}

void polls() {
  const World world;
  launch(world.one, "a");
  REQUIRE(aclrtRecordEvent(world.event, world.one));
  auto status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE) {
    REQUIRE(aclrtQueryEventStatus(world.event, &status));
    noted += ".";
  }
  launch(world.two, "b");
  auto stream_status = ACL_STREAM_STATUS_NOT_READY;
  while (stream_status != ACL_STREAM_STATUS_COMPLETE) {
    REQUIRE(aclrtStreamQuery(world.two, &stream_status));
    noted += ".";
  }
}

// Makes no call until a copy has arrived.
void spins() {
  const World world;
  world.fetch(world.one);
  while (world.host[0] == 0) {
  }
  world.note_byte();
}

void callback() {
  const World world;
  const uint64_t self = pthread_self();
  REQUIRE(aclrtSubscribeReport(self, world.one));
  for (const char* name : {"a", "b"}) {
    REQUIRE(aclrtLaunchCallback(note, const_cast<char*>(name), ACL_CALLBACK_BLOCK, world.one));
  }
  launch(world.two, "1");
  for (int i = 0; i < 2; ++i) REQUIRE(aclrtProcessReport(-1));
  world.synchronize();
  REQUIRE(aclrtUnSubscribeReport(self, world.one));
}

// A function waits for what a function of another stream does.
void blocked() {
  const World world;
  REQUIRE(aclrtLaunchHostFunc(world.one, pass_gate, nullptr));
  REQUIRE(aclrtLaunchHostFunc(world.two, open_gate, nullptr));
  world.synchronize();
}

// A function waits for a stream.
void nested() {
  static const World world;
  const auto wait = [](void*) {
    noted += "(";
    REQUIRE(aclrtSetDevice(0));  // for this thread
    REQUIRE(aclrtSynchronizeStream(world.two));
    noted += ")";
  };
  REQUIRE(aclrtLaunchHostFunc(world.one, wait, nullptr));
  launch(world.two, "1");
  launch(world.two, "2");
  world.synchronize();
}

void aborted() {
  const World world;
  launch(world.one, "a");
  launch(world.two, "1");
  REQUIRE(aclrtStreamAbort(world.one));
  launch(world.one, "b");
  world.synchronize();
}

void destroyed() {
  for (const char* name : {"a", "b", "c"}) {
    const aclrtStream stream = make_stream();
    const aclrtStream other = make_stream();
    int32_t id = 0;
    REQUIRE(aclrtStreamGetId(stream, &id));
    noted += std::to_string(id);
    launch(stream, name);
    launch(other, name);
    REQUIRE(aclrtDestroyStream(stream));
    REQUIRE(aclrtDestroyStreamForce(other));
  }
}

void reset() {
  const World world;
  launch(world.one, "a");
  launch(world.two, "a");
  REQUIRE(aclrtResetDevice(0));
}

// What has not run is dropped.
void finalized() {
  const World world;
  launch(world.one, "a");
  REQUIRE(aclFinalize());
}

// More than a queue takes before threads that add to it wait.
void full() {
  const World world;
  for (int i = 0; i < 40'000; ++i) world.set(i & 127, world.one);
  world.fetch(world.one);
  world.synchronize();
  world.note_byte();
}

void forked() {
  letters();
  noted += "/";
  if (fork() == 0) {
    noted.clear();
    REQUIRE(aclInit(nullptr));
    REQUIRE(aclrtSetDevice(0));
    letters();
    printf("%s\n", noted.c_str());
    exit(0);
  }
  int status = 0;
  wait(&status);
  noted += std::to_string(status);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> scenarios = {
      {"letters", letters},     {"many", many},           {"missing", missing},
      {"event", event},         {"notify", notify},       {"wrong_stream", wrong_stream},
      {"value", value},         {"polls", polls},         {"spins", spins},
      {"callback", callback},   {"blocked", blocked},     {"nested", nested},
      {"aborted", aborted},     {"destroyed", destroyed}, {"reset", reset},
      {"finalized", finalized}, {"full", full},           {"forked", forked}};
  const auto found = argc == 2 ? scenarios.find(argv[1]) : scenarios.end();
  if (found == scenarios.end()) return 2;
  REQUIRE(aclInit(nullptr));
  REQUIRE(aclrtSetDevice(0));
  found->second();
  printf("%s\n", noted.c_str());
  return 0;
}
