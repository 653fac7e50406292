// SPDX-License-Identifier: Apache-2.0
#include "support/report.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "support/fail.h"
#include "support/private_server.h"

namespace bench {

namespace {

constexpr const char* kColumns = "%-36s %12s %12s %20s  %-18s %s\n";

std::string number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
  return text;
}

// As in a goal: 300, not 300.00.
std::string round_number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// How many times better than the baseline.
std::optional<double> ratio(const Row& row) {
  if (!row.baseline) return std::nullopt;
  return row.unit.more_is_better ? row.understudy / *row.baseline : *row.baseline / row.understudy;
}

std::string comparison(const Row& row) {
  if (!row.baseline) return "-";
  const std::string text = number(*ratio(row)) + "x";
  if (!row.goal.at_most_above) return text;
  char above[32];
  snprintf(above, sizeof above, " (%+.1f %s)", row.understudy - *row.baseline, row.unit.name);
  return text + above;
}

std::string goal_text(const Row& row) {
  std::string text;
  const auto add = [&](const std::optional<double>& limit, const char* prefix,
                       const std::string& suffix) {
    if (!limit) return;
    if (!text.empty()) text += ", ";
    text += prefix + round_number(*limit) + suffix;
  };
  const std::string unit = std::string(" ") + row.unit.name;
  add(row.goal.at_most, "<= ", unit);
  add(row.goal.at_least, ">= ", unit);
  add(row.goal.at_least_better, ">= ", "x");
  add(row.goal.at_most_above, "<= +", unit);
  return text;
}

bool met(const Row& row) {
  const Goal& goal = row.goal;
  return !(goal.at_most && row.understudy > *goal.at_most) &&
         !(goal.at_least && row.understudy < *goal.at_least) &&
         !(goal.at_least_better && *ratio(row) < *goal.at_least_better) &&
         !(goal.at_most_above && row.understudy - *row.baseline > *goal.at_most_above);
}

std::string full_name(const Row& row) {
  if (!row.amount) return row.name;
  return row.name + ", " + std::to_string(row.amount->count) + " " + row.amount->of;
}

std::string json_number(const std::optional<double>& value) {
  if (!value) return "null";
  char text[32];
  snprintf(text, sizeof text, "%.6g", *value);
  return text;
}

std::string json_amount(const Row& row) {
  if (!row.amount) return "";
  return R"(,"call":")" + row.name + R"(","amount":)" + std::to_string(row.amount->count) +
         R"(,"of":")" + row.amount->of + '"';
}

}  // namespace

Report::Report(const char* question, int argc, char** argv) : question_(question) {
  use_private_server();
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--smoke") == 0) {
      smoke_ = true;
    } else if (strcmp(argv[i], "--json") == 0) {
      json_ = true;
    } else {
      fail("%s knows --smoke and --json, not '%s'", question, argv[i]);
    }
  }
  if (!json_) printf(kColumns, question, "understudy", "baseline", "ratio", "goal", "met");
}

void Report::add(const Row& row) const {
  const std::string goal = goal_text(row);
  if (json_) {
    printf(R"({"question":"%s","case":"%s","unit":"%s","understudy":%s,"baseline":%s,"ratio":%s,)"
           R"("goal":"%s","met":%s%s})"
           "\n",
           question_, full_name(row).c_str(), row.unit.name, json_number(row.understudy).c_str(),
           json_number(row.baseline).c_str(), json_number(ratio(row)).c_str(), goal.c_str(),
           goal.empty() ? "null"
           : met(row)   ? "true"
                        : "false",
           json_amount(row).c_str());
  } else {
    const std::string unit = std::string(" ") + row.unit.name;
    printf(kColumns, ("  " + full_name(row)).c_str(), (number(row.understudy) + unit).c_str(),
           row.baseline ? (number(*row.baseline) + unit).c_str() : "-", comparison(row).c_str(),
           goal.empty() ? "-" : goal.c_str(),
           goal.empty() ? "-"
           : met(row)   ? "yes"
                        : "NO");
  }
  fflush(stdout);
}

void Report::note(const char* format, ...) const {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (json_) {
    printf(R"({"question":"%s","note":"%s"})"
           "\n",
           question_, text);
  } else {
    printf("  (%s)\n", text);
  }
}

}  // namespace bench
