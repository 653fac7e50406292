// SPDX-License-Identifier: Apache-2.0
//
// The log and what may happen to its output: threads and processes that share it, readers that do
// not read, descriptors that the program closes. Lines stay whole, and no program is harmed.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "process/log_objects.h"
#include "support/process_environment.h"

namespace understudy_test::logged {
namespace {

struct ErrorPipe {
  // Standard error of this process is a pipe from now on.
  ErrorPipe() {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe(ends.data()), 0);
    reader = ends[0];
    EXPECT_EQ(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
  }
  // All that is in it.
  std::string drain() const {
    fcntl(reader, F_SETFL, O_NONBLOCK);
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = read(reader, buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }
  int reader;
};

void fail_on_threads(int threads, int times) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([times] {
      for (int j = 0; j < times; ++j) fail_once();
    });
  }
  for (std::thread& each : running) each.join();
}

// They all find out at once whether calls are logged.
TEST(LogFile, HasTheFirstCallsOfAllThreads) {
  constexpr int kThreads = 16;
  constexpr int kTimes = 20;
  US_FRESH_PROCESS();
  const OwnFile log("log");
  choose_log("call", log);
  fail_on_threads(kThreads, kTimes);
  size_t calls = 0;
  for (const std::string& line : log.lines()) calls += line.find(" call ") != std::string::npos;
  EXPECT_EQ(calls, size_t{kThreads * kTimes});
}

TEST(LogFile, OfThreadsAndProcessesHasWholeLinesOnly) {
  constexpr int kThreads = 8;
  constexpr int kProcesses = 3;
  constexpr int kTimes = 200;
  US_FRESH_PROCESS();
  const OwnFile log("log");
  choose_log("error", log);
  // This process has no threads when it forks.
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    alarm(60);
    fail_on_threads(kThreads, kTimes);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string content = log.content();
  EXPECT_EQ(content.back(), '\n');
  const Lines lines = lines_of(content);
  EXPECT_EQ(lines.size(), size_t{kThreads * kProcesses * kTimes});
  for (const std::string& line : lines) {
    ASSERT_TRUE(std::regex_match(line, failed_free())) << line;
  }
}

TEST(LogFile, HasTheLinesOfAForkChild) {
  US_FRESH_PROCESS();
  const OwnFile log("log");
  choose_log("error", log);
  fail_once();
  const std::string own = prefix();
  in_child([] { fail_once(); });
  fail_once();
  const Lines lines = log.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].rfind(own, 0), 0U);
  EXPECT_NE(lines[1].rfind(own, 0), 0U);
  EXPECT_EQ(lines[2].rfind(own, 0), 0U);
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, failed_free())) << line;
}

TEST(LogFile, DescriptorThatTheProgramClosedAndUsesItselfIsNotWrittenTo) {
  US_FRESH_PROCESS();
  const OwnFile log("log");
  const OwnFile data("data");
  choose_log("error", log);
  in_child([&] {
    fail_once();
    closefrom(3);
    // One of these gets the number that the log had.
    for (int i = 0; i < 16; ++i) open(data.path().c_str(), O_RDWR | O_CREAT, 0600);
    fail_once();
  });
  EXPECT_EQ(data.content(), "");
  EXPECT_EQ(log.lines().size(), 2U);
}

// For the log file, and for standard error that is a file.
void fail_past_the_limit(size_t length) {
  signal(SIGXFSZ, SIG_DFL);
  const rlimit limit{length * 3 / 2, length * 3 / 2};
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int i = 0; i < 10; ++i) fail_once();
}

TEST(LogFile, AtTheLimitOfItsSizeDoesNotEndTheProgram) {
  US_FRESH_PROCESS();
  const OwnFile log("log");
  choose_log("error", log);
  fail_once();
  const size_t length = log.content().size();
  in_child([&] { fail_past_the_limit(length); });
  EXPECT_EQ(log.content().size(), length * 3 / 2);
}

TEST(LogToStandardError, AtTheLimitOfItsSizeDoesNotEndTheProgram) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  const OwnFile data("data");
  in_child([&] {
    const int file = open(data.path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_EQ(dup2(file, STDERR_FILENO), STDERR_FILENO);
    fail_once();
    fail_past_the_limit(data.content().size());
  });
  EXPECT_TRUE(std::regex_match(data.lines().at(0), failed_free()));
}

TEST(LogFile, ThatCannotBeOpenedIsStandardError) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"}, {"UNDERSTUDY_LOG_FILE", "/nowhere/at/all"});
  testing::internal::CaptureStderr();
  fail_once();
  fail_once();
  const Lines told = lines_of(testing::internal::GetCapturedStderr());
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0],
            "understudy: the log file /nowhere/at/all cannot be opened (errno 2); its "
            "lines go to standard error");
  EXPECT_TRUE(std::regex_match(told[2], failed_free())) << told[2];
}

TEST(LogToStandardError, WithoutAReaderDoesNotEndTheProgram) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  in_child([] {
    signal(SIGPIPE, SIG_DFL);
    const ErrorPipe pipe;
    close(pipe.reader);
    for (int i = 0; i < 10; ++i) fail_once();
  });
}

TEST(LogToStandardError, WithAReaderThatDoesNotReadLosesLinesAndSaysHowMany) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  in_child([] {
    const ErrorPipe pipe;
    fail_once();
    const size_t length = pipe.drain().size();
    // More than any pipe of this size takes.
    const int capacity = fcntl(pipe.reader, F_GETPIPE_SZ);
    const size_t times = static_cast<size_t>(capacity) / length + 10;
    for (size_t i = 0; i < times; ++i) fail_once();
    EXPECT_EQ(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    const Lines kept = lines_of(pipe.drain());
    for (const std::string& line : kept) {
      ASSERT_TRUE(std::regex_match(line, failed_free())) << line;
    }
    ASSERT_LT(kept.size(), times);
    fail_once();
    const Lines told = lines_of(pipe.drain());
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[0],
              "understudy: " + std::to_string(times - kept.size()) + " lines were lost: no room");
    EXPECT_TRUE(std::regex_match(told[1], failed_free())) << told[1];
  });
}

TEST(LogToStandardError, OnATerminalThatIsNotReadLosesLinesAndSaysSo) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
    GTEST_SKIP() << "no terminal: " << strerror(errno);
  }
  // The child ends by its alarm if the log waits for the reader.
  in_child([&] {
    const int slave = open(ptsname(master), O_WRONLY | O_NOCTTY);
    ASSERT_EQ(dup2(slave, STDERR_FILENO), STDERR_FILENO);
    // More than any terminal takes.
    for (int i = 0; i < 5000; ++i) fail_once();
    EXPECT_EQ(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    std::string seen;
    while (seen.find(" were lost: no room\r\n") == std::string::npos) {
      fail_once();
      std::array<char, 4096> buffer;
      const ssize_t got = read(master, buffer.data(), buffer.size());
      if (got > 0) seen.append(buffer.data(), static_cast<size_t>(got));
    }
  });
  close(master);
}

TEST(LogToStandardError, ThatIsClosedLaterIsNotTheFileThatGetsItsNumber) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  const OwnFile data("data");
  in_child([&] {
    close(STDERR_FILENO);
    fail_once();
    EXPECT_EQ(open(data.path().c_str(), O_RDWR | O_CREAT, 0600), STDERR_FILENO);
    fail_once();
  });
  EXPECT_EQ(data.content(), "");
}

TEST(LogToStandardError, ThatWasClosedAtTheStartIsNotTheFileThatGetsItsNumber) {
  constexpr const char* kMark = "UNDERSTUDY_TEST_CLOSED";
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  const OwnFile data("data");
  if (getenv(kMark) == nullptr) {
    // The same test once more, in a program that is started without standard error.
    std::vector<std::string> arguments;
    std::ifstream command("/proc/self/cmdline");
    for (std::string each; std::getline(command, each, '\0');) arguments.push_back(each);
    std::vector<char*> pointers = pointers_to(arguments);
    setenv(kMark, "1", 1);
    close(STDERR_FILENO);
    execv("/proc/self/exe", pointers.data());
    FAIL() << "no restart: " << strerror(errno);
  }
  const int number = open(data.path().c_str(), O_RDWR | O_CREAT, 0600);
  if (number != STDERR_FILENO) GTEST_SKIP() << "standard error was opened before main";
  fail_once();
  EXPECT_EQ(data.content(), "");
}

TEST(LogToStandardError, FollowsTheProgramToAnotherFile) {
  US_FRESH_PROCESS({"UNDERSTUDY_LOG", "error"});
  fail_once();
  const ErrorPipe pipe;
  fail_once();
  EXPECT_EQ(lines_of(pipe.drain()).size(), 1U);
}

}  // namespace
}  // namespace understudy_test::logged
