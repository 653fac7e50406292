// SPDX-License-Identifier: Apache-2.0
//
// Chunks of the file of a recording: who gets which, what is there when there is no room, and what
// becomes of what other processes leave.
#include "observe/recording_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/temporary_directory.h"

namespace understudy {
namespace {

using File = std::unique_ptr<RecordingFile>;

File opened(const RecordingChoice& choice) {
  Result<File> file = RecordingFile::open(choice);
  EXPECT_TRUE(file.ok()) << file.error().text();
  return file.ok() ? std::move(file.value()) : nullptr;
}

// Chunks until there are no more.
std::vector<ChunkHeader*> all_chunks(RecordingFile& file) {
  std::vector<ChunkHeader*> chunks;
  while (ChunkHeader* const chunk = file.take_chunk(ChunkKind::kRecords)) chunks.push_back(chunk);
  return chunks;
}

// A chunk, also where one was refused a moment ago.
ChunkHeader* chunk_in_time(RecordingFile& file, ChunkKind kind = ChunkKind::kRecords) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < limit) {
    if (ChunkHeader* const chunk = file.take_chunk(kind)) return chunk;
  }
  return nullptr;
}

void close_chunk(ChunkHeader* chunk) {
  chunk->state.store(static_cast<uint32_t>(ChunkState::kClosed), std::memory_order_release);
}

uint64_t* words_of(ChunkHeader* chunk) {
  return reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(chunk) + kChunkHeaderBytes);
}
constexpr size_t kChunkWords = (kChunkBytes - kChunkHeaderBytes) / sizeof(uint64_t);

bool is_zero(ChunkHeader* chunk) {
  return std::all_of(words_of(chunk), words_of(chunk) + kChunkWords,
                     [](uint64_t word) { return word == 0; });
}

class RecordingFileTest : public testing::Test {
 protected:
  RecordingChoice choice(uint64_t chunks, bool is_ring = false) const {
    RecordingChoice choice;
    choice.file = path();
    choice.limit = chunks * kChunkBytes;
    choice.is_ring = is_ring;
    return choice;
  }
  std::string path() const { return directory_.at("recording"); }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
  }
  std::string refusal(const std::string& path) const {
    RecordingChoice other;
    other.file = path;
    const Result<File> file = RecordingFile::open(other);
    return file.ok() ? "" : file.error().text();
  }

  const TemporaryDirectory directory_;
};

TEST_F(RecordingFileTest, HasChunksUpToItsLimitAndCountsNoMore) {
  const File file = opened(choice(40));
  const std::vector<ChunkHeader*> chunks = all_chunks(*file);
  EXPECT_EQ(chunks.size(), 39U);
  EXPECT_EQ(std::set<ChunkHeader*>(chunks.begin(), chunks.end()).size(), 39U);
  EXPECT_TRUE(std::all_of(chunks.begin(), chunks.end(), is_zero));
  EXPECT_EQ(file->take_chunk(ChunkKind::kDefinitions), nullptr);
  EXPECT_EQ(file->header().chunks.load(), 40U);
  EXPECT_EQ(content().size(), 40 * kChunkBytes);
}

TEST_F(RecordingFileTest, AsARingWritesClosedChunksAnewInTheOrderTheyWereBegun) {
  const File file = opened(choice(6, true));
  const std::vector<ChunkHeader*> chunks = all_chunks(*file);
  ASSERT_EQ(chunks.size(), 5U);
  std::memset(words_of(chunks[2]), 0xff, kChunkWords * sizeof(uint64_t));
  for (const size_t closed : {3, 2, 4}) close_chunk(chunks[closed]);
  ChunkHeader* const first = chunk_in_time(*file);
  EXPECT_EQ(first, chunks[2]);
  EXPECT_TRUE(is_zero(first));
  EXPECT_EQ(file->take_chunk(ChunkKind::kRecords), chunks[3]);
  close_chunk(first);
  EXPECT_EQ(file->take_chunk(ChunkKind::kRecords), chunks[4]);
  EXPECT_EQ(file->take_chunk(ChunkKind::kRecords), chunks[2]);
  EXPECT_EQ(file->header().recycled.load(), 4U);
  EXPECT_EQ(file->take_chunk(ChunkKind::kRecords), nullptr);
}

// What it leaves is written anew: its records first, and what explains them after them.
TEST_F(RecordingFileTest, AsARingTakesWhatAnEndedProcessLeft) {
  const File file = opened(choice(6, true));
  OtherProcess other([&](const Line&) {
    const File own = opened(choice(6, true));
    EXPECT_NE(own->take_chunk(ChunkKind::kDefinitions), nullptr);
    EXPECT_NE(own->take_chunk(ChunkKind::kRecords), nullptr);
    EXPECT_NE(own->take_chunk(ChunkKind::kRecords), nullptr);
  });
  EXPECT_TRUE(other.ended_well());
  const std::vector<ChunkHeader*> chunks = all_chunks(*file);
  ASSERT_EQ(chunks.size(), 5U);
  // Two were free; then the two with records, which were begun later than the definitions.
  EXPECT_LT(chunks[2], chunks[3]);
  EXPECT_LT(chunks[4], chunks[2]);
  EXPECT_EQ(file->header().recycled.load(), 3U);
}

TEST_F(RecordingFileTest, AsARingLeavesWhatALivingProcessHas) {
  const File file = opened(choice(6, true));
  OtherProcess other([&](const Line& line) {
    const File own = opened(choice(6, true));
    EXPECT_NE(own->take_chunk(ChunkKind::kDefinitions), nullptr);
    EXPECT_NE(own->take_chunk(ChunkKind::kRecords), nullptr);
    line.say();
    line.hear();
  });
  other.hear_word();
  EXPECT_EQ(all_chunks(*file).size(), 3U);
  EXPECT_EQ(file->header().recycled.load(), 0U);
  other.say();
  EXPECT_TRUE(other.ended_well());
}

// Each thread writes its number all over its chunks, and finds nothing else in them.
TEST_F(RecordingFileTest, AsARingOfManyThreadsGivesEachChunkToOne) {
  const File file = opened(choice(12, true));
  std::atomic<uint64_t> strays{0};
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 1; number <= 4; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < 100; ++i) {
        ChunkHeader* const chunk = file->take_chunk(ChunkKind::kRecords);
        if (chunk == nullptr) continue;
        taken.fetch_add(1);
        uint64_t* const words = words_of(chunk);
        for (size_t at = 0; at < kChunkWords; ++at) {
          if (words[at] != 0) strays.fetch_add(1);
          words[at] = number;
        }
        for (size_t at = 0; at < kChunkWords; ++at) {
          if (words[at] != number) strays.fetch_add(1);
        }
        close_chunk(chunk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(strays.load(), 0U);
  EXPECT_GT(taken.load(), 12U);
}

TEST_F(RecordingFileTest, OfSeveralProcessesAtOnceGivesEachChunkToOne) {
  std::vector<std::unique_ptr<OtherProcess>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::make_unique<OtherProcess>([&](const Line& line) {
      line.hear();
      const File own = opened(choice(256));
      for (int chunk = 0; chunk < 20; ++chunk) {
        *words_of(own->take_chunk(ChunkKind::kRecords)) = static_cast<uint64_t>(getpid());
      }
    }));
  }
  for (const auto& other : others) other->say();
  for (const auto& other : others) EXPECT_TRUE(other->ended_well());
  EXPECT_EQ(opened(choice(256))->header().chunks.load(), 81U);
  const std::string bytes = content();
  std::set<uint64_t> writers;
  for (size_t chunk = 1; chunk <= 80; ++chunk) {
    uint64_t writer = 0;
    std::memcpy(&writer, &bytes.at(chunk * kChunkBytes + kChunkHeaderBytes), sizeof writer);
    writers.insert(writer);
    EXPECT_NE(writer, 0U) << chunk;
  }
  EXPECT_EQ(writers.size(), 4U);
}

TEST_F(RecordingFileTest, ContinuesOneThatIsThere) {
  all_chunks(*opened(choice(8)));
  const File again = opened(choice(100));
  EXPECT_EQ(again->header().most_chunks, 8U);
  EXPECT_EQ(again->take_chunk(ChunkKind::kRecords), nullptr);
}

TEST_F(RecordingFileTest, LeavesAFileOfAnotherKindAsItIs) {
  for (const size_t size : {size_t{1}, size_t{4096}, kChunkBytes, kChunkBytes + 1}) {
    const std::string text(size, 'x');
    write(text);
    EXPECT_NE(refusal(path()).find("is no recording"), std::string::npos) << size;
    EXPECT_EQ(content(), text);
  }
  // Zeros, and something behind them.
  std::string text(kChunkBytes, '\0');
  text.back() = 'x';
  write(text);
  EXPECT_NE(refusal(path()).find("is no recording"), std::string::npos);
  EXPECT_EQ(content(), text);
}

TEST_F(RecordingFileTest, BeginsAnewWhereAProcessWasKilledWhileItWroteTheHeader) {
  write(std::string(kChunkBytes, '\0'));
  EXPECT_EQ(all_chunks(*opened(choice(8))).size(), 7U);
  std::string text = content().substr(0, kChunkBytes);
  std::fill_n(text.begin(), sizeof(uint64_t), '\0');  // what is written last
  write(text);
  EXPECT_EQ(all_chunks(*opened(choice(8))).size(), 7U);
}

TEST_F(RecordingFileTest, DoesNotContinueOneThatIsCutShort) {
  all_chunks(*opened(choice(8)));
  const std::string text = content().substr(0, 5 * kChunkBytes);
  write(text);
  EXPECT_NE(refusal(path()).find("cut short"), std::string::npos);
  EXPECT_EQ(content(), text);
}

TEST_F(RecordingFileTest, DoesNotBeginWhereNoPlainFileCanBe) {
  EXPECT_NE(refusal(directory_.path()), "");
  EXPECT_NE(refusal(directory_.at("missing/recording")), "");
  EXPECT_NE(refusal("/dev/null"), "");
  EXPECT_NE(refusal("/dev/zero"), "");
  const std::string fifo = directory_.at("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(refusal(fifo), "");
  EXPECT_EQ(RecordingFile::open({}).ok(), false);
}

TEST_F(RecordingFileTest, FollowsALink) {
  ASSERT_EQ(symlink(path().c_str(), directory_.at("link").c_str()), 0);
  RecordingChoice linked = choice(8);
  linked.file = directory_.at("link");
  EXPECT_EQ(all_chunks(*opened(linked)).size(), 7U);
  EXPECT_EQ(content().size(), 8 * kChunkBytes);
}

TEST_F(RecordingFileTest, DoesNotBeginInAFileThatMayNotBeWritten) {
  write("");
  ASSERT_EQ(chmod(path().c_str(), 0400), 0);
  OtherProcess other([&](const Line&) {
    if (geteuid() == 0) {
      ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
      ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
    }
    EXPECT_NE(refusal(path()), "");
  });
  EXPECT_TRUE(other.ended_well());
}

// Once in a while it is tried again; another file of the name is not touched.
TEST_F(RecordingFileTest, ThatWasRemovedGetsNoLonger) {
  const File file = opened(choice(64));
  ASSERT_NE(file->take_chunk(ChunkKind::kRecords), nullptr);
  ASSERT_EQ(unlink(path().c_str()), 0);
  write("something else");
  const size_t count = all_chunks(*file).size();
  EXPECT_LT(count, 62U);
  EXPECT_EQ(file->header().chunks.load(), 2 + count);
  EXPECT_EQ(content(), "something else");
}

// ---- No room ----

// A child with a limit has as many chunks as there is room for, and is not ended by a signal.
void expect_few_chunks(const RecordingChoice& choice, int resource, rlim_t limit, size_t most) {
  OtherProcess other([&](const Line&) {
    const File file = opened(choice);
    rlimit before{};
    ASSERT_EQ(getrlimit(resource, &before), 0);
    const rlimit low{limit, before.rlim_max};
    ASSERT_EQ(setrlimit(resource, &low), 0);
    errno = 4711;
    const std::vector<ChunkHeader*> chunks = all_chunks(*file);
    EXPECT_LE(chunks.size(), most);
    EXPECT_EQ(file->take_chunk(ChunkKind::kRecords), nullptr);
    EXPECT_EQ(errno, 4711);
    EXPECT_EQ(file->header().chunks.load(), chunks.size() + 1);
    for (ChunkHeader* const chunk : chunks) {
      EXPECT_TRUE(is_zero(chunk));
      close_chunk(chunk);
    }
    if (choice.is_ring && !chunks.empty()) {
      EXPECT_EQ(chunk_in_time(*file), chunks.front());
    }
    ASSERT_EQ(setrlimit(resource, &before), 0);
    EXPECT_NE(chunk_in_time(*file), nullptr);
  });
  EXPECT_TRUE(other.ended_well());
}

TEST_F(RecordingFileTest, HasWhatALimitOfFileSizesLeaves) {
  expect_few_chunks(choice(100), RLIMIT_FSIZE, 4 * kChunkBytes, 3);
}

TEST_F(RecordingFileTest, AsARingGoesOnInWhatALimitOfFileSizesLeaves) {
  expect_few_chunks(choice(100, true), RLIMIT_FSIZE, 4 * kChunkBytes, 3);
}

TEST_F(RecordingFileTest, HasNoChunksWithoutADescriptor) {
  expect_few_chunks(choice(100), RLIMIT_NOFILE, 0, 0);
}

TEST_F(RecordingFileTest, AsARingHasNoChunksWithoutADescriptor) {
  expect_few_chunks(choice(100, true), RLIMIT_NOFILE, 0, 0);
}

TEST_F(RecordingFileTest, DoesNotBeginWithoutAddresses) {
  OtherProcess other([&](const Line&) {
    const rlimit low{1 << 20, 1 << 20};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &low), 0);
    const Result<File> file = RecordingFile::open(choice(1 << 16));
    EXPECT_FALSE(file.ok());
  });
  EXPECT_TRUE(other.ended_well());
}

TEST_F(RecordingFileTest, OnAFullFileSystemHasWhatThereIsRoomFor) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may mount";
  OtherProcess other([&](const Line&) {
    if (unshare(CLONE_NEWNS) != 0) return;  // not even root may in some containers
    ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(mount("none", directory_.path().c_str(), "tmpfs", 0, "size=512k"), 0);
    for (const bool is_ring : {false, true}) {
      const File file = opened(choice(100, is_ring));
      const std::vector<ChunkHeader*> chunks = all_chunks(*file);
      EXPECT_EQ(chunks.size(), 7U);
      for (ChunkHeader* const chunk : chunks) std::memset(words_of(chunk), 1, 8 * kChunkWords);
      for (ChunkHeader* const chunk : chunks) close_chunk(chunk);
      if (is_ring) {
        EXPECT_EQ(chunk_in_time(*file), chunks.front());
      }
      ASSERT_EQ(unlink(path().c_str()), 0);
    }
  });
  EXPECT_TRUE(other.ended_well());
}

}  // namespace
}  // namespace understudy
