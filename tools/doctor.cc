// SPDX-License-Identifier: Apache-2.0
//
// understudy doctor: what this machine offers to the software NPU, what that means, and what
// improves it; and how a running server fares.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>

#include "platform/host_facts.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/doctor_checks.h"
#include "tools/server_fitness.h"
#include "tools/servers.h"

namespace understudy::command {

namespace {

struct Section {
  const char* title;
  const std::vector<Check>& (*checks)();
};
constexpr Section kSections[] = {{"Installation", installation_checks},
                                 {"Memory", memory_checks},
                                 {"Limits", limit_checks},
                                 {"Kernel and processor", kernel_checks}};

const char* text_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "ok";
    case Verdict::kCouldBeBetter:
      return "could be better";
    case Verdict::kProblem:
      return "problem";
  }
  return "";
}

void print(const Check& check, const Finding& finding) {
  printf("  %-15s  %s: %s\n", text_of(finding.verdict), check.name, finding.found.c_str());
  printf("  %-15s  %s\n", "", finding.meaning.c_str());
  if (!finding.command.empty()) printf("  %-15s  $ %s\n", "", finding.command.c_str());
}

Json as_json(const Check& check, const Finding& finding) {
  Json fact = {{"name", check.name},
               {"verdict", text_of(finding.verdict)},
               {"found", finding.found},
               {"meaning", finding.meaning}};
  fact["command"] = finding.command.empty() ? Json() : Json(finding.command);
  return fact;
}

const char* summary_of(unsigned problems, unsigned wishes) {
  if (problems > 0) return "There is a problem: see above.";
  return wishes > 0 ? "Everything works; some things could be better."
                    : "Everything is as it should be.";
}

struct DoctorOptions {
  std::string directory;
  bool json = false;
};

ServerFitness look_at_fitness(const std::string& asked) {
  const Result<std::string> directory = chosen_directory(asked);
  if (!directory.ok()) return {{directory.error().text()}, Json()};
  return fitness_of(look_at_server(directory.value()), platform::total_memory());
}

// "%)," as well as "%".
bool is_unit(const std::string& word) {
  constexpr std::string_view kUnits[] = {"bytes", "B", "KiB", "MiB", "GiB", "TiB", "%"};
  const std::string_view unit =
      std::string_view(word).substr(0, word.find_last_not_of(".,:;)") + 1);
  return std::find(std::begin(kUnits), std::end(kUnits), unit) != std::end(kUnits);
}

// The words of a text. A number and its unit are one.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream rest(text);
  for (std::string word; rest >> word;) {
    if (is_unit(word) && !words.empty()) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

// In lines that fit a terminal of 80 columns.
void print_paragraph(const std::vector<std::string>& sentences) {
  constexpr size_t kTextWidth = 80;
  std::string line = " ";
  for (const std::string& sentence : sentences) {
    for (const std::string& word : words_of(sentence)) {
      if (line.size() + 1 + word.size() > kTextWidth) {
        puts(line.c_str());
        line = " ";
      }
      line += " " + word;
    }
  }
  puts(line.c_str());
}

int look(const DoctorOptions& options) {
  const bool json = options.json;
  unsigned problems = 0;
  unsigned wishes = 0;
  Json facts = Json::array();
  for (const Section& section : kSections) {
    if (!json) printf("%s\n", section.title);
    for (const Check& check : section.checks()) {
      const Finding finding = check.look();
      problems += finding.verdict == Verdict::kProblem;
      wishes += finding.verdict == Verdict::kCouldBeBetter;
      if (json) {
        facts.push_back(as_json(check, finding));
      } else {
        print(check, finding);
      }
    }
  }
  const ServerFitness fitness = look_at_fitness(options.directory);
  if (json) {
    print_json({{"problems", problems}, {"checks", facts}, {"server", fitness.facts}});
  } else {
    puts("Server");
    print_paragraph(fitness.sentences);
    puts(summary_of(problems, wishes));
  }
  return problems == 0 ? kDone : kFailed;
}

}  // namespace

Action declare_doctor(OptionSet& options) {
  const auto chosen = std::make_shared<DoctorOptions>();
  add_runtime_dir_option(options, chosen->directory);
  options.add_flag("--json", chosen->json, "print JSON");
  return [chosen] { return look(*chosen); };
}

}  // namespace understudy::command
