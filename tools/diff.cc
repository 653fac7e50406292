// SPDX-License-Identifier: Apache-2.0
//
// understudy diff: two recordings, and what grew from the first to the second.
#include <cstdio>
#include <memory>
#include <optional>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/diff_json.h"
#include "tools/diff_text.h"
#include "tools/recording/comparison.h"

namespace understudy::command {

namespace {

struct DiffOptions {
  std::string before;
  std::string after;
  bool json = false;
  bool all = false;
};

// One recording is in memory at a time. Complains if the file cannot be read.
std::optional<ComparableFigures> read_figures(const std::string& file) {
  const Result<Recording> recording = read_recording(file);
  if (!recording.ok()) {
    fprintf(stderr, "understudy diff: %s\n", recording.error().text());
    return std::nullopt;
  }
  for (const std::string& note : recording.value().notes) {
    const std::string line =
        visible_text("understudy diff: " + file + ": note: " + note, Letters::kAscii);
    fprintf(stderr, "%s\n", line.c_str());
  }
  return comparable_figures(recording.value(), summarize(recording.value(), 1));
}

int run(const DiffOptions& options) {
  const std::optional<ComparableFigures> before = read_figures(options.before);
  if (!before) return kFailed;
  const std::optional<ComparableFigures> after = read_figures(options.after);
  if (!after) return kFailed;
  const Comparison comparison = compare(*before, *after);
  if (options.json) {
    print_json(diff_json(options.before, options.after, comparison));
    return kDone;
  }
  const std::string text =
      diff_text(options.before, options.after, comparison, PageStyle::of_standard_output(),
                options.all ? TextLength::kComplete : TextLength::kScreen);
  fputs(text.c_str(), stdout);
  return kDone;
}

}  // namespace

Action declare_diff(OptionSet& options) {
  const auto chosen = std::make_shared<DiffOptions>();
  options.add_word("A", chosen->before, "a recording");
  options.add_word("B", chosen->after, "another one, that is compared with it");
  options.add_flag("--json", chosen->json, "print JSON, with everything");
  options.add_flag("--all", chosen->all, "print complete tables, with what is equal");
  return [chosen] { return run(*chosen); };
}

}  // namespace understudy::command
