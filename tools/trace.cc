// SPDX-License-Identifier: Apache-2.0
//
// understudy trace: shows a recording, and turns it into what other tools open.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/size_text.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/recording/recording.h"
#include "tools/recording/summary.h"
#include "tools/trace_exports.h"
#include "tools/trace_json.h"
#include "tools/trace_text.h"

namespace understudy::command {

namespace {

constexpr size_t kJsonPoints = 120;

struct TraceOptions {
  std::string file;
  bool json = false;
  bool all = false;
  ExportFiles exports;

  bool shows_figures() const { return json || all || exports.empty(); }
};

// A line for each file, unless it is what standard output leads to, or no file.
void print_files(const ExportFiles& files) {
  struct stat output = {};
  const bool has_output = fstat(STDOUT_FILENO, &output) == 0;
  for (const auto& [option, path] : files) {
    struct stat file = {};
    if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    if (has_output && file.st_dev == output.st_dev && file.st_ino == output.st_ino) continue;
    printf("%s: %s\n", path.c_str(), SizeText(static_cast<uint64_t>(file.st_size)).c_str());
  }
}

void print_figures(const TraceOptions& options, const Recording& recording) {
  if (options.json) {
    print_json(trace_json(options.file, recording, summarize(recording, kJsonPoints)));
    return;
  }
  const std::string text = trace_text(options.file, recording, summarize(recording, kCurvePoints),
                                      PageStyle::of_standard_output(),
                                      options.all ? TextLength::kComplete : TextLength::kScreen);
  fputs(text.c_str(), stdout);
}

int run(const TraceOptions& options) {
  const Result<Recording> recording = read_recording(options.file);
  if (!recording.ok()) {
    fprintf(stderr, "understudy trace: %s\n", recording.error().text());
    return kFailed;
  }
  const Result<void> written = write_exports(recording.value(), options.exports);
  if (!written.ok()) {
    fprintf(stderr, "understudy trace: %s\n", written.error().text());
    return kFailed;
  }
  if (options.shows_figures()) print_figures(options, recording.value());
  if (!options.json) print_files(options.exports);
  return kDone;
}

}  // namespace

Action declare_trace(OptionSet& options) {
  const auto chosen = std::make_shared<TraceOptions>();
  options.add_word("FILE", chosen->file, "a recording");
  options.add_flag("--json", chosen->json, "print JSON, with everything");
  options.add_flag("--all", chosen->all, "print complete tables");
  declare_exports(options, chosen->exports);
  return [chosen] { return run(*chosen); };
}

}  // namespace understudy::command
