// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/flame_graph.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "base/size_text.h"
#include "tools/recording/flame_graph_page.h"
#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

// Those of the script, too.
constexpr double kWidth = 1180;
constexpr double kLeft = 10;
constexpr double kLetterWidth = 7.3;
constexpr unsigned kTop = 62;
constexpr unsigned kRowHeight = 19;
constexpr double kNarrowest = 1e-4;

struct FlameFrame {
  std::string_view name;
  size_t depth = 0;
  uint64_t begin = 0;  // bytes to the left of it
  uint64_t end = 0;
};

// The frames of sorted stacks, each before those within it; the first is all of them.
std::vector<FlameFrame> frames_of_stacks(const FoldedMemory& memory) {
  std::vector<FlameFrame> frames = {{"all", 0, 0, 0}};
  std::vector<size_t> open = {0};  // from the outermost to the innermost
  uint64_t end = 0;
  for (const FoldedStack& stack : memory.stacks) {
    size_t shared = 0;
    while (shared < stack.frames.size() && shared + 1 < open.size() &&
           frames[open[shared + 1]].name == stack.frames[shared]) {
      ++shared;
    }
    open.resize(shared + 1);
    for (size_t depth = shared; depth < stack.frames.size(); ++depth) {
      open.push_back(frames.size());
      frames.push_back({stack.frames[depth], depth + 1, end, end});
    }
    end = stack.bytes > UINT64_MAX - end ? UINT64_MAX : end + stack.bytes;
    for (const size_t frame : open) frames[frame].end = end;
  }
  return frames;
}

void append_decimal(std::string& out, double value, const char* format) {
  std::array<char, 40> text;
  snprintf(text.data(), text.size(), format, value);
  out += text.data();
}

// As much of a name as there is room for.
std::string_view first_letters(std::string_view name, size_t count) {
  size_t end = 0;
  for (; end < name.size(); ++end) {
    const bool begins_letter = (static_cast<unsigned char>(name[end]) & 0xc0) != 0x80;
    if (begins_letter && count-- == 0) break;
  }
  return name.substr(0, end);
}

void append_label(std::string& out, std::string_view name, double width) {
  const auto room = static_cast<size_t>(std::max(0.0, (width - 8) / kLetterWidth));
  if (first_letters(name, room).size() == name.size()) {
    append_xml_text(out, name);
  } else if (room >= 3) {
    append_xml_text(out, first_letters(name, room - 1));
    out += "\xe2\x80\xa6";
  }
}

unsigned color_of(std::string_view name) {
  uint32_t hash = 2166136261;
  for (const char letter : name.substr(0, name.find(' '))) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
  }
  return hash % 10;
}

class FlameGraph {
 public:
  explicit FlameGraph(const FoldedMemory& memory)
      : memory_(memory), frames_(frames_of_stacks(memory)) {}

  std::string write();

 private:
  void write_head(size_t rows);
  void write_frame(const FlameFrame& frame);

  uint64_t total() const { return frames_.front().end; }
  double part_of_all(uint64_t bytes) const {
    return total() == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(total());
  }

  const FoldedMemory& memory_;
  const std::vector<FlameFrame> frames_;
  std::string text_;
};

void FlameGraph::write_head(size_t rows) {
  const size_t height = kTop + rows * kRowHeight + 14;
  text_ += R"(<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 )";
  append_number(text_, height);
  text_ += R"(" width="1200" height=")";
  append_number(text_, height);
  text_ += "\">\n<title>";
  append_xml_text(text_, memory_.title);
  text_ += "</title>\n<style>";
  text_ += kFlameStyle;
  text_ += R"(</style>
<text class="title" x="10" y="26">)";
  append_xml_text(text_, memory_.title);
  text_ += R"(</text>
<text class="hint" x="10" y="47">width: bytes by the stack that allocated them; click a frame to )"
           R"(zoom in<tspan dx="14" id="found"></tspan></text>
<text class="button" id="back" x="1090" y="26" text-anchor="end" style="display:none">back</text>
<text class="button" id="search" x="1190" y="26" text-anchor="end" style="display:none">)"
           R"(search (/)</text>
)";
}

void FlameGraph::write_frame(const FlameFrame& frame) {
  const uint64_t bytes = frame.end - frame.begin;
  const double width = part_of_all(bytes) * kWidth;
  const double x = kLeft + part_of_all(frame.begin) * kWidth;
  const size_t y = kTop + frame.depth * kRowHeight;
  text_ += R"(<g class="frame )";
  if (frame.depth == 0) {
    text_ += "root";
  } else {
    text_ += 'c';
    append_number(text_, color_of(frame.name));
  }
  text_ += R"(" data-name=")";
  append_xml_text(text_, frame.name);
  text_ += R"(" data-bytes=")";
  append_number(text_, bytes);
  text_ += R"(" data-depth=")";
  append_number(text_, frame.depth);
  text_ += R"(" data-x=")";
  append_decimal(text_, part_of_all(frame.begin), "%.12g");
  text_ += R"(" data-w=")";
  append_decimal(text_, part_of_all(bytes), "%.12g");
  text_ += R"("><title>)";
  append_xml_text(text_, frame.name);
  text_ += ": ";
  text_ += RoughSizeText(bytes).c_str();
  text_ += " (";
  append_number(text_, bytes);
  text_ += " bytes), ";
  append_decimal(text_, 100 * part_of_all(bytes), "%.1f");
  text_ += R"( %</title><rect rx="2" x=")";
  append_decimal(text_, x, "%.3f");
  text_ += R"(" y=")";
  append_number(text_, y);
  text_ += R"(" width=")";
  append_decimal(text_, width, "%.3f");
  text_ += R"(" height=")";
  append_number(text_, kRowHeight - 1);
  text_ += R"("/><text x=")";
  append_decimal(text_, x + 4, "%.3f");
  text_ += R"(" y=")";
  append_number(text_, y + 13);
  text_ += "\">";
  append_label(text_, frame.name, width);
  text_ += "</text></g>\n";
}

std::string FlameGraph::write() {
  size_t rows = 0;
  for (const FlameFrame& frame : frames_) rows = std::max(rows, frame.depth + 1);
  write_head(rows);
  if (total() != 0) {
    for (const FlameFrame& frame : frames_) {
      if (part_of_all(frame.end - frame.begin) >= kNarrowest) write_frame(frame);
    }
  }
  text_ += "<script><![CDATA[";
  text_ += kFlameScript;
  text_ += "]]></script>\n</svg>\n";
  return std::move(text_);
}

}  // namespace

std::string flame_graph(const FoldedMemory& memory) { return FlameGraph(memory).write(); }

}  // namespace understudy::command
