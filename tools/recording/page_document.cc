// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/page_document.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "tools/recording/object_wholes.h"
#include "tools/recording/page_header.h"
#include "tools/recording/zlib_text.h"

namespace understudy::command {

namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they are");

constexpr char kMagic[] = {'U', 'S', 'P', 'A', 'G', 'E', '1', '\n'};
constexpr size_t kAlignment = 8;
// The next ones take twice the time for some hundredths of the space.
constexpr int kLevel = 3;

void pad(ZlibText& text) {
  constexpr std::array<std::byte, kAlignment> kZeros{};
  text.add(std::span(kZeros).first((kAlignment - text.size() % kAlignment) % kAlignment));
}

// Numbers of one width, one behind the other, padded at their end.
template <typename Number>
class ColumnWriter {
 public:
  explicit ColumnWriter(ZlibText& text) : text_(text) {}
  ~ColumnWriter() = default;
  ColumnWriter(const ColumnWriter&) = delete;
  ColumnWriter& operator=(const ColumnWriter&) = delete;

  void add(Number number) {
    buffer_[used_++] = number;
    if (used_ == buffer_.size()) flush();
  }
  void finish() {
    flush();
    pad(text_);
  }

 private:
  void flush() {
    text_.add(std::as_bytes(std::span(buffer_).first(used_)));
    used_ = 0;
  }

  ZlibText& text_;
  std::array<Number, 4096> buffer_;
  size_t used_ = 0;
};

struct Column {
  const char* name;
  const char* type;
  uint64_t count;
  std::function<void(ZlibText& text)> write;
};

template <typename Number>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<Number, double>) return "f64";
  if constexpr (std::is_same_v<Number, uint64_t>) return "u64";
  if constexpr (std::is_same_v<Number, uint32_t>) return "u32";
  if constexpr (std::is_same_v<Number, int32_t>) return "i32";
  if constexpr (std::is_same_v<Number, uint8_t>) return "u8";
}

// One number of each item. REQUIRES: the items live until the column is written.
template <typename Number, typename Items, typename Get>
Column column(const char* name, const Items& items, Get get) {
  return {name, type_name<Number>(), items.size(), [&items, get](ZlibText& text) {
            ColumnWriter<Number> writer(text);
            for (const auto& item : items) writer.add(static_cast<Number>(get(item)));
            writer.finish();
          }};
}

// Where the arguments of each call are in their column, in the order of the calls.
class ArgumentPlaces {
 public:
  explicit ArgumentPlaces(const Recording& recording) : recording_(recording) {
    firsts_.reserve(recording.calls.size());
    for (const RecordedCall& call : recording.calls) {
      firsts_.push_back(static_cast<uint32_t>(count_));
      count_ += count_of(call);
    }
  }

  std::vector<Column> columns() const {
    return {column<uint32_t>("call_argument_first", firsts_, std::identity{}),
            column<uint8_t>("call_argument_count", recording_.calls, count_of),
            {"argument_words", type_name<uint64_t>(), count_,
             [this](ZlibText& text) { write_words(text); }}};
  }

 private:
  static uint32_t count_of(const RecordedCall& call) {
    return std::min<uint32_t>(call.arguments, UINT8_MAX);
  }
  void write_words(ZlibText& text) const {
    ColumnWriter<uint64_t> writer(text);
    for (const RecordedCall& call : recording_.calls) {
      for (const uint64_t word : recording_.arguments(call).first(count_of(call))) {
        writer.add(word);
      }
    }
    writer.finish();
  }

  const Recording& recording_;
  uint64_t count_ = 0;
  std::vector<uint32_t> firsts_;
};

void append(std::vector<Column>& columns, std::vector<Column> more) {
  std::move(more.begin(), more.end(), std::back_inserter(columns));
}

std::vector<Column> call_columns(const Recording& recording) {
  using Call = const RecordedCall&;
  const auto& calls = recording.calls;
  return {column<double>("call_begin", calls, [](Call call) { return call.begin; }),
          column<double>("call_duration", calls, [](Call call) { return call.duration; }),
          column<uint32_t>("call_function", calls, [](Call call) { return call.function; }),
          column<int32_t>("call_code", calls, [](Call call) { return call.code; }),
          column<uint32_t>("call_thread", calls, [](Call call) { return call.thread; }),
          column<uint32_t>("call_stack", calls, [](Call call) { return call.stack; })};
}

double end_of(const RecordedObject& object) {
  return object.end == kStillAlive ? std::numeric_limits<double>::infinity()
                                   : static_cast<double>(object.end);
}

std::vector<Column> object_columns(const Recording& recording,
                                   const std::vector<uint32_t>& wholes) {
  using Object = const RecordedObject&;
  const auto& objects = recording.objects;
  const auto kind = [](Object object) { return std::min(object.kind, kLastObjectKind); };
  return {
      column<uint8_t>("object_kind", objects, kind),
      column<int32_t>("object_device", objects, [](Object object) { return object.device; }),
      column<uint32_t>("object_process", objects, [](Object object) { return object.process; }),
      column<uint32_t>("object_stack", objects, [](Object object) { return object.stack; }),
      column<uint32_t>("object_begin_call", objects,
                       [](Object object) { return object.begin_call; }),
      column<uint32_t>("object_end_call", objects, [](Object object) { return object.end_call; }),
      column<uint8_t>("object_unasked", objects,
                      [](Object object) { return object.ended_unasked; }),
      column<uint64_t>("object_number", objects, [](Object object) { return object.number; }),
      column<double>("object_size", objects, [](Object object) { return object.size; }),
      column<double>("object_taken", objects, [](Object object) { return object.taken; }),
      column<uint64_t>("object_part_of", objects, [](Object object) { return object.part_of; }),
      column<uint32_t>("object_whole", wholes, std::identity{}),
      column<double>("object_begin", objects, [](Object object) { return object.begin; }),
      column<double>("object_end", objects, end_of)};
}

std::vector<Column> task_columns(const Recording& recording) {
  using Task = const RecordedTask&;
  const auto& tasks = recording.tasks;
  return {column<uint32_t>("task_kind", tasks, [](Task task) { return task.kind; }),
          column<int32_t>("task_code", tasks, [](Task task) { return task.code; }),
          column<uint32_t>("task_stream", tasks, [](Task task) { return task.stream; }),
          column<double>("task_position", tasks, [](Task task) { return task.position; }),
          column<double>("task_queued", tasks, [](Task task) { return task.queued; }),
          column<uint32_t>("task_queued_by", tasks, [](Task task) { return task.queued_by; }),
          column<double>("task_begin", tasks, [](Task task) { return task.begin; }),
          column<double>("task_duration", tasks, [](Task task) { return task.duration; }),
          column<uint8_t>("task_has_run", tasks, [](Task task) { return task.has_run; }),
          column<double>("task_bytes", tasks, [](Task task) { return task.bytes; }),
          column<uint32_t>("task_awaited", tasks, [](Task task) { return task.awaited_task; })};
}

void write_header(ZlibText& text, const Recording& recording, const std::vector<Column>& columns) {
  nlohmann::ordered_json header = page_header(recording);
  auto& list = header["columns"] = nlohmann::ordered_json::array();
  for (const Column& each : columns) {
    list.push_back({{"name", each.name}, {"type", each.type}, {"count", each.count}});
  }
  // Texts of a recording may be in no encoding.
  const std::string json =
      header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const std::array size{static_cast<uint32_t>(json.size())};
  text.add(std::as_bytes(std::span(kMagic)));
  text.add(std::as_bytes(std::span(size)));
  text.add(std::as_bytes(std::span(json)));
  pad(text);
}

}  // namespace

std::string page_document(const Recording& recording) {
  const ArgumentPlaces arguments(recording);
  const std::vector<uint32_t> wholes = wholes_of(recording);
  std::vector<Column> columns = call_columns(recording);
  append(columns, arguments.columns());
  append(columns, object_columns(recording, wholes));
  append(columns, task_columns(recording));
  ZlibText text(kLevel);
  write_header(text, recording, columns);
  for (const Column& each : columns) each.write(text);
  return text.finish();
}

}  // namespace understudy::command
