// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/page_document.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/recording/timeline_page.h"

namespace understudy::command {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

std::string inflated(const std::string& packed) {
  std::string text;
  z_stream stream{};
  EXPECT_EQ(inflateInit(&stream), Z_OK);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<unsigned>(packed.size());
  int state = Z_OK;
  while (state == Z_OK) {
    unsigned char part[4096];
    stream.next_out = part;
    stream.avail_out = sizeof part;
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(reinterpret_cast<char*>(part), sizeof part - stream.avail_out);
  }
  EXPECT_EQ(state, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  inflateEnd(&stream);
  return text;
}

// A document as the page reads it.
class Document {
 public:
  explicit Document(const Recording& recording) : text_(inflated(page_document(recording))) {
    EXPECT_EQ(text_.substr(0, 8), "USPAGE1\n");
    uint32_t size = 0;
    std::memcpy(&size, text_.data() + 8, sizeof size);
    header_ = nlohmann::json::parse(text_.substr(12, size));
    size_t at = aligned(12 + size);
    for (const auto& column : header_["columns"]) {
      places_[column["name"]] = at;
      const size_t width =
          column["type"] == "u8" ? 1 : std::stoul(column["type"].get<std::string>().substr(1)) / 8;
      at += aligned(column["count"].get<size_t>() * width);
    }
    EXPECT_EQ(at, text_.size());
  }

  const nlohmann::json& header() const { return header_; }
  size_t count(const std::string& name) const {
    for (const auto& column : header_["columns"]) {
      if (column["name"] == name) return column["count"];
    }
    return 0;
  }
  template <typename Number>
  Number at(const std::string& name, size_t index) const {
    Number number;
    std::memcpy(&number, text_.data() + places_.at(name) + index * sizeof number, sizeof number);
    return number;
  }

 private:
  static size_t aligned(size_t size) { return (size + 7) / 8 * 8; }

  std::string text_;
  nlohmann::json header_;
  std::map<std::string, size_t> places_;
};

// A recording of one process with one thread and one function.
Recording small_recording() {
  Recording recording;
  recording.duration = 1000;
  RecordedProcess& process = recording.processes.emplace_back();
  process.pid = 7;
  process.program = "/opt/bin/decode --layers 3";
  recording.threads.emplace_back().number = 7;
  recording.functions.push_back(
      {"aclrtMalloc", {{"devPtr", 'p', 1, true}, {"size", 'u', 1, false}}});
  recording.object_kinds = {"allocation", "mapping"};
  return recording;
}

RecordedObject allocation(uint64_t number, uint64_t taken, uint64_t begin, uint64_t end) {
  RecordedObject object;
  object.device = 0;
  object.number = number;
  object.size = taken;
  object.taken = taken;
  object.begin = begin;
  object.end = end;
  return object;
}

TEST(PageDocument, OfNothingHasAllColumnsWithoutEntries) {
  const Document document{Recording()};
  EXPECT_EQ(document.header()["columns"].size(), 34U);
  for (const auto& column : document.header()["columns"]) EXPECT_EQ(column["count"], 0);
  EXPECT_EQ(document.header()["summary"]["calls"], 0);
  EXPECT_EQ(document.header()["title"], "");
}

TEST(PageDocument, HasTheFiguresOfTheRecording) {
  Recording recording = small_recording();
  recording.calls.push_back({.begin = 5, .duration = 2, .code = 0});
  recording.calls.push_back({.begin = 9, .duration = 2, .code = 107000});
  recording.objects = {allocation(0x1000, 100, 10, 30), allocation(0x2000, 50, 20, kStillAlive),
                       allocation(0x3000, 70, 30, kStillAlive)};
  const Document document(recording);
  const nlohmann::json& summary = document.header()["summary"];
  EXPECT_EQ(document.header()["title"], "decode --layers 3");
  EXPECT_EQ(summary["calls"], 2);
  EXPECT_EQ(summary["failed_calls"], 1);
  EXPECT_EQ(summary["leaks"], nlohmann::json({{"objects", 2}, {"bytes", 120}}));
  const nlohmann::json peak = {{"process", -1}, {"device", 0}, {"bytes", 150}, {"at_ns", 20}};
  EXPECT_EQ(summary["peaks"], nlohmann::json::array({peak}));
  EXPECT_EQ(document.at<double>("object_end", 0), 30);
  EXPECT_EQ(document.at<double>("object_end", 1), std::numeric_limits<double>::infinity());
}

TEST(PageDocument, KeepsArgumentsWithTheirCallsAndAsTheyWere) {
  Recording recording = small_recording();
  recording.words = {3, 4, kMost, uint64_t{1} << 63 | 1};
  // By their beginnings, which is not how their words lie.
  recording.calls.push_back({.begin = 1, .first_argument = 2, .arguments = 2});
  recording.calls.push_back({.begin = 2, .first_argument = 0, .arguments = 1});
  const Document document(recording);
  EXPECT_EQ(document.count("argument_words"), 3U);
  EXPECT_EQ(document.at<uint32_t>("call_argument_first", 1), 2U);
  EXPECT_EQ(document.at<uint64_t>("argument_words", 0), kMost);
  EXPECT_EQ(document.at<uint64_t>("argument_words", 1), uint64_t{1} << 63 | 1);
  EXPECT_EQ(document.at<uint64_t>("argument_words", 2), 3U);
  EXPECT_EQ(document.header()["parameter_types"][0], nlohmann::json({"out p", "u"}));
}

TEST(PageDocument, NamesEachWordOfAnArgument) {
  Recording recording = small_recording();
  recording.functions[0].parameters = {{"prop", 'P', 4, false}, {"flags", 'u', 1, false}};
  const nlohmann::json header = Document(recording).header();
  EXPECT_EQ(header["parameters"][0], nlohmann::json({"prop", "prop", "prop", "prop", "flags"}));
  EXPECT_EQ(header["parameter_types"][0], nlohmann::json({"P0", "P1", "P2", "P3", "u"}));
}

TEST(PageDocument, TakesFunctionsOfMoreWordsThanACallHas) {
  Recording recording = small_recording();
  recording.functions[0].parameters.assign(3000, {"p", 'P', 255, false});
  EXPECT_EQ(Document(recording).header()["parameters"][0].size(), 255U);
}

TEST(PageDocument, LinksPartsToTheLastObjectWithTheirNumber) {
  constexpr uint64_t kHandle = 0x5b00000000000001;  // a double has no place for the last digit
  Recording recording = small_recording();
  RecordedObject part = allocation(0x1000, 0, 3, 9);
  part.part_of = kHandle;
  RecordedObject orphan = part;
  orphan.part_of = kHandle + 1;
  recording.objects = {allocation(kHandle, 8, 1, 2), allocation(kHandle, 8, 2, 9), part, orphan};
  const Document document(recording);
  EXPECT_EQ(document.at<uint32_t>("object_whole", 2), 1U);
  EXPECT_EQ(document.at<uint32_t>("object_whole", 3), kNone);
  EXPECT_EQ(document.at<uint64_t>("object_number", 1), kHandle);
}

TEST(PageDocument, TakesTheLargestNumbersAndLeavesOutFiguresThatThePageCannotCount) {
  Recording recording = small_recording();
  recording.duration = kMost;
  recording.wall_clock = kMost;
  recording.lost = kMost;
  recording.processes[0].device_memory = kMost;
  recording.calls.push_back({.begin = kMost, .duration = kMost, .code = INT32_MIN});
  recording.objects = {allocation(kMost, kMost, kMost - 1, kStillAlive),
                       allocation(1, kMost, kMost - 1, kStillAlive)};
  recording.objects[0].device = INT32_MIN;
  recording.tasks.push_back({.code = -1,
                             .position = kMost,
                             .queued = kMost,
                             .begin = kMost,
                             .duration = kMost,
                             .bytes = kMost});
  recording.task_kinds = {"copy"};
  recording.streams.push_back({.device = -5, .index = UINT32_MAX, .generation = UINT32_MAX});
  const Document document(recording);
  EXPECT_EQ(document.header()["summary"]["peaks"], nlohmann::json::array());
  EXPECT_EQ(document.header()["summary"]["leaks"], nlohmann::json({{"objects", 2}}));
  EXPECT_EQ(document.at<int32_t>("call_code", 0), INT32_MIN);
}

TEST(PageDocument, CountsKindsOfObjectsByAByte) {
  Recording recording = small_recording();
  recording.object_kinds.assign(1000, "kind");
  recording.objects.push_back(allocation(1, 1, 1, 2));
  recording.objects.back().kind = 999;
  const Document document(recording);
  EXPECT_EQ(document.header()["object_kinds"].size(), 256U);
  EXPECT_EQ(document.header()["object_kinds"][255], "other kinds");
  EXPECT_EQ(document.at<uint8_t>("object_kind", 0), 255);
}

TEST(PageDocument, IsJsonWhateverTheBytesOfTexts) {
  Recording recording = small_recording();
  recording.processes[0].program = "\xff\xfe/\xc3 </script>";
  recording.stacks = {std::string("\0\x80 at a.cc:1", 12)};
  const std::string page = timeline_page(recording);
  EXPECT_EQ(Document(recording).header()["stacks"].size(), 1U);
  EXPECT_EQ(page.find("</script>\xff"), std::string::npos);
}

TEST(TimelinePage, HasTheDocumentInItsElementAsBase64) {
  const std::string begin = R"(<script id="recording" type="application/octet-stream">)";
  const Recording recording = small_recording();
  const std::string page = timeline_page(recording);
  const size_t at = page.find(begin) + begin.size();
  const std::string text = page.substr(at, page.find("</script>", at) - at);
  EXPECT_EQ(page.find(begin, at), std::string::npos);
  EXPECT_EQ(text.size(), (page_document(recording).size() + 2) / 3 * 4);
  EXPECT_EQ(
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
      std::string::npos);
  EXPECT_EQ(text.substr(0, 2), "eF");  // 0x78 0x5e: how zlib's streams of this level begin
}

TEST(TimelinePage, AsksAnAddressForItsRecordingIfItIsLive) {
  const std::string page = live_timeline_page("recording");
  EXPECT_NE(page.find(R"(octet-stream" data-live="recording"></script>)"), std::string::npos);
}

}  // namespace
}  // namespace understudy::command
