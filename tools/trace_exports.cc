// SPDX-License-Identifier: Apache-2.0
#include "tools/trace_exports.h"

#include "tools/command_line.h"
#include "tools/recording/allocation_csv.h"
#include "tools/recording/chrome_trace.h"
#include "tools/recording/flame_graph.h"
#include "tools/recording/folded_stacks.h"
#include "tools/recording/timeline_page.h"
#include "tools/recording/torch_snapshot.h"
#include "tools/whole_file.h"

namespace understudy::command {

namespace {

struct Export {
  const char* option;
  const char* help;
  std::string (*make)(const Recording& recording);
};

std::string folded_at_peak(const Recording& recording) {
  return folded_text(memory_at_peak(recording));
}
std::string folded_at_end(const Recording& recording) {
  return folded_text(memory_at_end(recording));
}
std::string flames_at_peak(const Recording& recording) {
  return flame_graph(memory_at_peak(recording));
}
std::string flames_at_end(const Recording& recording) {
  return flame_graph(memory_at_end(recording));
}

// In the order of the help text.
constexpr Export kExports[] = {
    {"--html", "a page that shows it: one file for any browser, needs no network", timeline_page},
    {"--chrome", "events for chrome://tracing and ui.perfetto.dev (JSON)", chrome_trace},
    {"--torch", "memory snapshot for pytorch.org/memory_viz and MindStudio Insight (pickle)",
     torch_snapshot},
    {"--csv", "device memory taken and given back, as RMM logs it (CSV)", allocation_csv},
    {"--folded", "stacks of the memory at the peak, for flame graphs (text)", folded_at_peak},
    {"--flame", "flame graph of the memory at the peak (SVG)", flames_at_peak},
    {"--leaks-folded", "stacks of the memory that is alive at the end (text)", folded_at_end},
    {"--leaks-flame", "flame graph of the memory that is alive at the end (SVG)", flames_at_end},
};

}  // namespace

void declare_exports(OptionSet& options, ExportFiles& files) {
  for (const Export& each : kExports) {
    options.add_to_group("Files to make", each.option, each.help,
                         [&files, &each](const std::string& path) { files[each.option] = path; });
  }
}

Result<void> write_exports(const Recording& recording, const ExportFiles& files) {
  for (const Export& each : kExports) {
    const auto found = files.find(each.option);
    if (found == files.end()) continue;
    US_TRY(write_whole_file(found->second, each.make(recording)));
  }
  return {};
}

}  // namespace understudy::command
