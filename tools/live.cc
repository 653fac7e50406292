// SPDX-License-Identifier: Apache-2.0
//
// understudy live: the timeline page of a recording that grows, in a browser of this machine. The
// address holds a random token: other users of the machine may connect, and learn nothing.
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "platform/random_bytes.h"
#include "platform/unique_fd.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/live_document.h"
#include "tools/live_program.h"
#include "tools/loopback_server.h"
#include "tools/recording/recording_state.h"
#include "tools/recording/timeline_page.h"
#include "tools/work_directory.h"

namespace understudy::command {

namespace {

constexpr const char* kRecordingName = "recording";  // beside the page

struct LiveOptions {
  std::string file;
  unsigned port = 0;
};

int fail(const char* sentence, int status) {
  fprintf(stderr, "understudy live: %s\n", sentence);
  return status;
}

// What ends this command, and the end of the program, as something to poll. Signals that are
// ignored stay so.
class EndSignals {
 public:
  EndSignals() {
    sigset_t waited;
    sigemptyset(&waited);
    sigaddset(&waited, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&waited, signal);
    }
    sigprocmask(SIG_BLOCK, &waited, &before_);
    descriptor_ = platform::UniqueFd(signalfd(-1, &waited, SFD_CLOEXEC));
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  int descriptor() const { return descriptor_.get(); }
  const sigset_t& mask_before() const { return before_; }
  // Waits for one.
  signalfd_siginfo take() const {
    signalfd_siginfo info = {};
    while (::read(descriptor_.get(), &info, sizeof info) < 0 && errno == EINTR) {
    }
    return info;
  }

 private:
  sigset_t before_;
  platform::UniqueFd descriptor_;
};

std::string random_token() {
  char text[33];
  snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, platform::random_number(),
           platform::random_number());
  return text;
}

// Takes the same time wherever they differ.
bool is_same_secret(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (size_t at = 0; at < one.size(); ++at) {
    difference |= static_cast<unsigned char>(one[at]) ^ static_cast<unsigned char>(other[at]);
  }
  return difference == 0;
}

// Answers what is at the addresses of the page and of its recording.
class LivePage {
 public:
  LivePage(std::string token, LiveDocumentMaker& maker)
      : folder_("/" + std::move(token) + "/"),
        page_(std::make_shared<const std::string>(live_timeline_page(kRecordingName))),
        maker_(maker) {}

  const std::string& folder() const { return folder_; }
  std::optional<HttpAnswer> answer(const HttpRequest& request, LoopbackServer::Asked asked) {
    if (is_same_secret(request.path, folder_)) return page();
    if (!is_same_secret(request.path, folder_ + kRecordingName)) {
      return HttpAnswer::of_text(404, "There is nothing here.\n");
    }
    if (asked == LoopbackServer::Asked::kAtOnce) {
      maker_.ask();
      return std::nullopt;
    }
    const LiveDocument latest = maker_.latest();
    if (latest.bytes == nullptr) return HttpAnswer::of_text(503, "There is no memory for it.\n");
    return HttpAnswer{200, "application/octet-stream", latest.bytes, latest.etag};
  }

 private:
  HttpAnswer page() const { return {200, "text/html; charset=utf-8", page_, ""}; }

  std::string folder_;
  std::shared_ptr<const std::string> page_;
  LiveDocumentMaker& maker_;
};

// Nothing if the file is a recording, or may become one.
std::optional<Error> refuse_file(const std::string& file) {
  std::error_code missing;
  if (std::filesystem::file_size(file, missing) == 0 || missing) return std::nullopt;
  const Result<RecordingState> state = look_at_recording(file);
  if (state.ok()) return std::nullopt;
  return state.error();
}

int exit_status(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// The program has got what a terminal sends; anything else is passed on. Who cannot wait for its
// end sends another one.
void end_program(LiveProgram& program, const EndSignals& signals, const signalfd_siginfo& by) {
  if (by.ssi_code != SI_KERNEL) program.send(static_cast<int>(by.ssi_signo));
  while (!program.poll_end()) {
    if (signals.take().ssi_signo != SIGCHLD) program.send(SIGKILL);
  }
}

// Returns the exit status; nothing if `ended_by` ended it.
std::optional<int> serve(const std::string& file, unsigned port,
                         const std::vector<std::string>& words, const EndSignals& signals,
                         int& ended_by) {
  if (const std::optional<Error> refused = refuse_file(file)) {
    return fail(refused->text(), kFailed);
  }
  Result<LoopbackServer> server = LoopbackServer::listen(static_cast<uint16_t>(port));
  if (!server.ok()) return fail(server.error().text(), kFailed);
  LiveDocumentMaker maker(file);
  LivePage page(random_token(), maker);
  // What the program prints on standard output is its own.
  FILE* const told = words.empty() ? stdout : stderr;
  fprintf(told, "http://127.0.0.1:%u%s\n", unsigned{server.value().port()}, page.folder().c_str());
  fflush(told);
  std::optional<LiveProgram> program;
  if (!words.empty()) program.emplace(words, file, signals.mask_before());
  const auto handler = [&](const HttpRequest& request, LoopbackServer::Asked asked) {
    return page.answer(request, asked);
  };
  while (true) {
    server.value().serve(signals.descriptor(), maker.news(), handler);
    const signalfd_siginfo signal = signals.take();
    if (signal.ssi_signo != SIGCHLD) {
      if (program) end_program(*program, signals, signal);
      ended_by = static_cast<int>(signal.ssi_signo);
      return std::nullopt;
    }
    const std::optional<int> ended = program ? program->poll_end() : std::nullopt;
    if (!ended) continue;
    if (!look_at_recording(file).ok()) return exit_status(*ended);  // it has said why
    fprintf(stderr, "understudy live: the program has ended with status %d; Ctrl-C ends the page\n",
            exit_status(*ended));
  }
}

int run(const LiveOptions& options, const std::vector<std::string>& words) {
  if (options.file.empty() && words.empty()) {
    return fail("a recording is missing, or -- and a program to record", kWrongUsage);
  }
  int ended_by = 0;
  try {
    const EndSignals signals;  // wait until the directory is gone
    std::optional<WorkDirectory> work;
    if (options.file.empty()) work.emplace("live");
    const std::filesystem::path file =
        work ? work->path() / "recording" : std::filesystem::absolute(options.file);
    if (const auto status = serve(file.string(), options.port, words, signals, ended_by))
      return *status;
  } catch (const std::system_error& error) {
    return fail(error.what(), kFailed);
  }
  ::signal(ended_by, SIG_DFL);
  raise(ended_by);
  return kFailed;
}

}  // namespace

ProgramAction declare_live(OptionSet& options) {
  const auto chosen = std::make_shared<LiveOptions>();
  options.add_optional_word("FILE", chosen->file,
                            "a recording, which need not be there yet; it may be left out where a "
                            "program is recorded");
  options.add("--port", chosen->port, "of 127.0.0.1 (any that is free)", "N", {0U, 65535U});
  options.set_footer(
      "What follows -- is as for `understudy run`, which records it: -- [OPTIONS] PROGRAM "
      "[ARGUMENT...]");
  return [chosen](const std::vector<std::string>& program) { return run(*chosen, program); };
}

}  // namespace understudy::command
