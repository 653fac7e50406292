// SPDX-License-Identifier: Apache-2.0
#include "observe/finding_text.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "observe/stack_text.h"

namespace understudy {

namespace {

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kRed = "\x1b[1;31m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

std::string painted(const std::string& text, const char* color, Colors colors) {
  return colors == Colors::kNone ? text : color + text + kPlain;
}

std::string line_of(const StackFrame& frame, Colors colors) {
  std::string line = "    " + painted(frame.place, kBold, colors);
  if (!frame.function.empty()) line += " " + painted(frame.function, kDim, colors);
  return line + "\n";
}

// Control characters and quotes as JSON has them.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char each : text) {
    const auto letter = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      result += '\\';
      result += each;
    } else if (letter < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", letter);
      result += escape;
    } else {
      result += each;
    }
  }
  return result + "\"";
}

// What XML 1.0 can hold of a text.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char each : text) {
    switch (each) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result +=
            static_cast<unsigned char>(each) < 0x20 && each != '\n' && each != '\t' ? '?' : each;
    }
  }
  return result;
}

// "[a, b]" of what member(item) says.
template <typename Items, typename Member>
std::string json_list(const Items& items, Member member) {
  std::string list;
  for (const auto& item : items) {
    if (!list.empty()) list += ", ";
    list += member(item);
  }
  return "[" + list + "]";
}

std::string json_of_note(const FindingNote& note) {
  const std::string frames = json_list(frames_of(note.place.stack), [](const StackFrame& frame) {
    return "{\"place\": " + quoted(frame.place) + ", \"function\": " + quoted(frame.function) + "}";
  });
  std::string text = "{\"text\": " + quoted(note.text);
  if (note.place.function != nullptr) text += ", \"call\": " + quoted(note.place.function);
  return text + ", \"thread\": " + std::to_string(note.place.thread) + ", \"frames\": " + frames +
         "}";
}

std::string json_of_finding(const Finding& finding) {
  return "\n  {\"check\": " + quoted(std::string(name_of(finding.check))) +
         ", \"sentence\": " + quoted(finding.sentence) +
         ", \"times\": " + std::to_string(finding.times) +
         ",\n   \"notes\": " + json_list(finding.notes, json_of_note) + "}";
}

}  // namespace

std::string text_of(const Finding& finding, Colors colors) {
  std::string text =
      painted("understudy: " + std::string(name_of(finding.check)) + ": ", kRed, colors) +
      painted(finding.sentence, kBold, colors) + "\n";
  for (const FindingNote& note : finding.notes) {
    text += "  " + note.text + "\n";
    for (const StackFrame& frame : frames_of(note.place.stack)) text += line_of(frame, colors);
  }
  return text;
}

std::vector<std::string> searched_texts(const Finding& finding) {
  std::vector<std::string> texts = {finding.sentence};
  for (const FindingNote& note : finding.notes) {
    for (StackFrame& frame : frames_of(note.place.stack)) {
      texts.push_back(std::move(frame.place));
      if (!frame.function.empty()) texts.push_back(std::move(frame.function));
    }
  }
  return texts;
}

std::string json_of(const FindingReport& report) {
  return "{\"process\": " + std::to_string(report.process) +
         ", \"suppressed\": " + std::to_string(report.suppressed) +
         ",\n \"findings\": " + json_list(report.findings, json_of_finding) + "}\n";
}

std::string junit_of(const FindingReport& report) {
  std::string cases;
  unsigned tests = 0;
  unsigned failures = 0;
  for (size_t i = 0; i < kCheckNames.size(); ++i) {
    const auto check = static_cast<Check>(i);
    if (!report.checks.has(check)) continue;
    std::string message;
    std::string text;
    for (const Finding& finding : report.findings) {
      if (finding.check != check) continue;
      if (message.empty()) message = finding.sentence;
      text += text_of(finding, Colors::kNone);
    }
    ++tests;
    cases += "  <testcase classname=\"understudy\" name=\"" + std::string(name_of(check)) + "\">";
    if (!message.empty()) {
      ++failures;
      cases += "<failure message=\"" + escaped(message) + "\">" + escaped(text) + "</failure>";
    }
    cases += "</testcase>\n";
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"understudy check\" "
         "tests=\"" +
         std::to_string(tests) + "\" failures=\"" + std::to_string(failures) + "\">\n" + cases +
         "</testsuite>\n";
}

}  // namespace understudy
