// SPDX-License-Identifier: Apache-2.0
#include "platform/line_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "platform/shared_write.h"
#include "platform/unique_fd.h"
#include "unit/other_process.h"
#include "unit/temporary_directory.h"

namespace understudy::platform {
namespace {

using std::chrono_literals::operator""ms;

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  // Until nothing fits any more.
  void fill() const {
    const std::string block(4096, 'x');
    while (write_shared(writer.get(), block, 0ms) == WriteEnd::kWritten) {
    }
  }
  std::string drain() const {
    fcntl(reader.get(), F_SETFL, O_NONBLOCK);
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = read(reader.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }
  UniqueFd reader;
  UniqueFd writer;
};

// Both sides of a terminal; none where the system has no terminals to give.
struct Terminal {
  Terminal() : master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (!master.valid() || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0) return;
    slave = UniqueFd(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  bool exists() const { return slave.valid(); }
  // What is written to one side arrives at the other, though not at once.
  static std::string read_until(int side, const std::string& wanted) {
    std::string text;
    std::array<char, 4096> buffer;
    while (text.find(wanted) == std::string::npos) {
      const ssize_t got = read(side, buffer.data(), buffer.size());
      if (got <= 0) throw std::runtime_error("the terminal has ended");
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }

  UniqueFd master;
  UniqueFd slave;
};

// The number that the next file to be opened gets.
int next_descriptor() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

// ---- Writes to what others share ----

TEST(SharedWrite, WithoutAReaderIsLostAndNoSignal) {
  Pipe pipe;
  pipe.reader = {};
  EXPECT_EQ(write_shared(pipe.writer.get(), "line\n", 1000ms), WriteEnd::kLost);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST(SharedWrite, LeavesASignalThatWasPendingBefore) {
  sigset_t signal;
  sigset_t before;
  sigemptyset(&signal);
  sigaddset(&signal, SIGPIPE);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &signal, &before), 0);
  raise(SIGPIPE);
  Pipe pipe;
  pipe.reader = {};
  EXPECT_EQ(write_shared(pipe.writer.get(), "line\n", 0ms), WriteEnd::kLost);
  constexpr timespec kAtOnce{0, 0};
  EXPECT_EQ(sigtimedwait(&signal, nullptr, &kAtOnce), SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(SharedWrite, ToAFullPipeIsLostAndLeavesItsFlags) {
  const Pipe pipe;
  pipe.fill();
  EXPECT_EQ(write_shared(pipe.writer.get(), "line\n", 0ms), WriteEnd::kLost);
  EXPECT_EQ(write_shared(pipe.writer.get(), "line\n", 5ms), WriteEnd::kLost);
  EXPECT_EQ(fcntl(pipe.writer.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(pipe.drain().find("line"), std::string::npos);
  EXPECT_EQ(write_shared(pipe.writer.get(), "line\n", 0ms), WriteEnd::kWritten);
  EXPECT_EQ(pipe.drain(), "line\n");
}

TEST(SharedWrite, ToAClosedDescriptorIsToldApart) {
  Pipe pipe;
  const int closed = pipe.writer.get();
  pipe.writer = {};
  EXPECT_EQ(write_shared(closed, "line\n", 0ms), WriteEnd::kClosed);
  EXPECT_EQ(write_shared(-1, "line\n", 0ms), WriteEnd::kClosed);
}

TEST(SharedWrite, OfALongTextArrivesWhole) {
  const Pipe pipe;
  const std::string text = std::string(10000, 'a') + "\n";
  EXPECT_EQ(write_shared(pipe.writer.get(), text, 0ms), WriteEnd::kWritten);
  EXPECT_EQ(pipe.drain(), text);
}

TEST(SharedWrite, ToATerminalThatIsNotReadIsLostAndLeavesItsFlags) {
  const Terminal terminal;
  if (!terminal.exists()) GTEST_SKIP() << "no terminal: errno " << errno;
  OtherProcess writer([&](const Line&) {
    alarm(60);  // a write that waits for the reader never ends
    const int slave = terminal.slave.get();
    const int next = next_descriptor();
    while (write_shared(slave, "a line of some length\n", 5ms) == WriteEnd::kWritten) {
    }
    EXPECT_EQ(fcntl(slave, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(next_descriptor(), next);
    // Until there is room again.
    while (write_shared(slave, "the end\n", 0ms) != WriteEnd::kWritten) {
      Terminal::read_until(terminal.master.get(), "\n");
    }
    Terminal::read_until(terminal.master.get(), "the end\r\n");
  });
  EXPECT_TRUE(writer.ended_well());
}

// Opening it once more would make another terminal.
TEST(SharedWrite, ToTheMasterOfATerminalArrivesThere) {
  const Terminal terminal;
  if (!terminal.exists()) GTEST_SKIP() << "no terminal: errno " << errno;
  OtherProcess writer([&](const Line&) {
    alarm(60);
    EXPECT_EQ(write_shared(terminal.master.get(), "line\n", 0ms), WriteEnd::kWritten);
    EXPECT_EQ(Terminal::read_until(terminal.slave.get(), "\n"), "line\n");
  });
  EXPECT_TRUE(writer.ended_well());
}

// ---- Files ----

class AppendedFile : public testing::Test {
 protected:
  std::string path() const { return directory_.at("log"); }
  LineOutput& output() const { return LineOutput::appending_to(path()); }
  void write(const char* line) const { output().write(line, Patience::kNone); }
  // The file is a pipe from now on.
  Pipe make_pipe() const {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    Pipe pipe;
    pipe.reader = UniqueFd(open(path().c_str(), O_RDONLY | O_NONBLOCK));
    pipe.writer = UniqueFd(open(path().c_str(), O_WRONLY));
    return pipe;
  }
  // The descriptor that the output has; it is the only one of the file.
  int descriptor() const {
    struct stat wanted = {};
    EXPECT_EQ(stat(path().c_str(), &wanted), 0);
    for (int number = 0; number < 1024; ++number) {
      struct stat found = {};
      if (fstat(number, &found) == 0 && found.st_ino == wanted.st_ino &&
          found.st_dev == wanted.st_dev) {
        return number;
      }
    }
    ADD_FAILURE() << "not open";
    return -1;
  }

  TemporaryDirectory directory_;
};

TEST_F(AppendedFile, IsMadeByTheFirstLineAndKeepsWhatItHas) {
  EXPECT_EQ(&output(), &output());
  EXPECT_NE(access(path().c_str(), F_OK), 0);
  write("one\n");
  std::ofstream(path(), std::ios::app) << "of another process\n";
  write("two\n");
  EXPECT_EQ(content_of(path()), "one\nof another process\ntwo\n");
}

TEST_F(AppendedFile, IsClosedInProgramsThatAreStarted) {
  write("one\n");
  EXPECT_EQ(fcntl(descriptor(), F_GETFD), FD_CLOEXEC);
}

TEST_F(AppendedFile, LeavesErrnoAsItWas) {
  errno = ERANGE;
  write("one\n");
  EXPECT_EQ(errno, ERANGE);
}

TEST_F(AppendedFile, NumberThatTheProgramGaveToItsOwnFileIsNotWrittenTo) {
  write("one\n");
  const int number = descriptor();
  const UniqueFd other(open(directory_.at("other").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(dup2(other.get(), number), number);
  write("two\n");
  EXPECT_EQ(content_of(directory_.at("other")), "");
  EXPECT_EQ(content_of(path()), "one\ntwo\n");
  close(number);
}

TEST_F(AppendedFile, IsOpenedAnewInAForkChild) {
  write("one\n");
  const int number = descriptor();
  OtherProcess child([&](const Line&) {
    EXPECT_EQ(fcntl(number, F_GETFD), -1);
    write("of the child\n");
  });
  EXPECT_TRUE(child.ended_well());
  write("two\n");
  EXPECT_EQ(content_of(path()), "one\nof the child\ntwo\n");
}

TEST_F(AppendedFile, AtTheLimitOfItsSizeLosesLinesWithoutASignal) {
  OtherProcess child([&](const Line&) {
    signal(SIGXFSZ, SIG_DFL);
    write("one\n");
    const rlimit limit{8, 8};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    write("two\n");
    write("three\n");
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  });
  EXPECT_TRUE(child.ended_well());
  EXPECT_EQ(content_of(path()), "one\ntwo\n");
}

TEST_F(AppendedFile, ThatCannotBeOpenedIsStandardError) {
  const std::string nowhere = directory_.at("nowhere/log");
  LineOutput& refused = LineOutput::appending_to(nowhere);
  testing::internal::CaptureStderr();
  refused.write("one\n", Patience::kNone);
  refused.write("two\n", Patience::kNone);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "understudy: the log file " + nowhere +
                " cannot be opened (errno 2); its lines go to standard error\none\ntwo\n");
}

TEST_F(AppendedFile, MayBeAPipeWithoutAReader) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  testing::internal::CaptureStderr();
  write("one\n");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("one\n"), std::string::npos);
  const UniqueFd reader(open(path().c_str(), O_RDONLY | O_NONBLOCK));
  write("two\n");
  std::array<char, 16> buffer{};
  EXPECT_EQ(read(reader.get(), buffer.data(), buffer.size()), 4);
  EXPECT_STREQ(buffer.data(), "two\n");
}

TEST_F(AppendedFile, OfAFullPipeSaysHowManyLinesWereLost) {
  const Pipe pipe = make_pipe();
  pipe.fill();
  for (int i = 0; i < 3; ++i) write("lost\n");
  EXPECT_EQ(pipe.drain().find('l'), std::string::npos);
  write("seen\n");
  EXPECT_EQ(pipe.drain(), "understudy: 3 lines were lost: no room\nseen\n");
}

TEST_F(AppendedFile, OfAFullPipeDoesNotSaySoInTheRoomThatIsTooSmallForALine) {
  const Pipe pipe = make_pipe();
  // The last page has room for the notice, and for no line of this length.
  const std::string line = std::string(99, 'a') + "\n";
  pipe.fill();
  std::string page(static_cast<size_t>(sysconf(_SC_PAGESIZE)), 'x');
  ASSERT_EQ(read(pipe.reader.get(), page.data(), page.size()), static_cast<ssize_t>(page.size()));
  const std::string most = page.substr(60);
  ASSERT_EQ(write_shared(pipe.writer.get(), most, 0ms), WriteEnd::kWritten);
  for (int i = 0; i < 5; ++i) write(line.c_str());
  EXPECT_EQ(pipe.drain().find("understudy"), std::string::npos);
  write(line.c_str());
  EXPECT_EQ(pipe.drain(), "understudy: 5 lines were lost: no room\n" + line);
}

TEST_F(AppendedFile, WithRoomAgainTakesALongLineBehindTheNotice) {
  const Pipe pipe = make_pipe();
  pipe.fill();
  write("lost\n");
  pipe.drain();
  const std::string line = std::string(10000, 'a') + "\n";
  write(line.c_str());
  EXPECT_EQ(pipe.drain(), "understudy: 1 line was lost: no room\n" + line);
  write("seen\n");
  EXPECT_EQ(pipe.drain(), "seen\n");
}

}  // namespace
}  // namespace understudy::platform
