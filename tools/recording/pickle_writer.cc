// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/pickle_writer.h"

#include <utility>

#include "tools/recording/valid_text.h"

namespace understudy::command {

namespace {

// Operations of the pickle machine, as Lib/pickletools.py of Python documents them.
constexpr unsigned char kProtocol = 0x80;
constexpr unsigned char kStop = '.';
constexpr unsigned char kNoneValue = 'N';
constexpr unsigned char kTrue = 0x88;
constexpr unsigned char kFalse = 0x89;
constexpr unsigned char kOneByte = 'K';
constexpr unsigned char kTwoBytes = 'M';
constexpr unsigned char kFourBytes = 'J';  // signed
constexpr unsigned char kLong = 0x8a;
constexpr unsigned char kShortText = 0x8c;
constexpr unsigned char kText = 'X';
constexpr unsigned char kEmptyDict = '}';
constexpr unsigned char kEmptyList = ']';
constexpr unsigned char kMark = '(';
constexpr unsigned char kSetItems = 'u';
constexpr unsigned char kAppends = 'e';
constexpr unsigned char kTupleOfTwo = 0x86;
constexpr unsigned char kMemoize = 0x94;
constexpr unsigned char kGetShort = 'h';
constexpr unsigned char kGet = 'j';

constexpr uint64_t kMostOperands = 1000;  // an even number: keys and values

}  // namespace

PickleWriter::PickleWriter() {
  put(kProtocol);
  put(4);
}

void PickleWriter::begin_value() {
  if (open_.empty()) return;
  Open& open = open_.back();
  if (open.values % kMostOperands == 0) {
    if (open.values != 0) put(open.is_dict ? kSetItems : kAppends);
    put(kMark);
  }
  ++open.values;
}

void PickleWriter::put_bytes(uint64_t value, unsigned count) {
  for (unsigned index = 0; index < count; ++index) {
    put(static_cast<unsigned char>(value >> (8 * index)));
  }
}

// The fewest bytes that have the number with its sign.
void PickleWriter::put_long(uint64_t low_bytes, bool is_negative) {
  const uint64_t sign = is_negative ? UINT64_MAX : 0;
  unsigned count = 8;
  while (count > 1) {
    const unsigned shift = 8 * (count - 1) - 1;  // the sign of one byte less
    if ((low_bytes >> shift) != (sign >> shift)) break;
    --count;
  }
  const bool needs_ninth = !is_negative && low_bytes > INT64_MAX;
  put(kLong);
  put(static_cast<unsigned char>(needs_ninth ? 9 : count));
  put_bytes(low_bytes, count);
  if (needs_ninth) put(0);
}

void PickleWriter::put_number(uint64_t value) {
  if (value <= UINT8_MAX) {
    put(kOneByte);
    put_bytes(value, 1);
  } else if (value <= UINT16_MAX) {
    put(kTwoBytes);
    put_bytes(value, 2);
  } else if (value <= INT32_MAX) {
    put(kFourBytes);
    put_bytes(value, 4);
  } else {
    put_long(value, false);
  }
}

void PickleWriter::none() {
  begin_value();
  put(kNoneValue);
}

void PickleWriter::boolean(bool value) {
  begin_value();
  put(value ? kTrue : kFalse);
}

void PickleWriter::number(uint64_t value) {
  begin_value();
  put_number(value);
}

void PickleWriter::signed_number(int64_t value) {
  if (value >= 0) return number(static_cast<uint64_t>(value));
  begin_value();
  if (value >= INT32_MIN) {
    put(kFourBytes);
    put_bytes(static_cast<uint64_t>(value), 4);
  } else {
    put_long(static_cast<uint64_t>(value), true);
  }
}

void PickleWriter::text(std::string_view value) {
  std::string valid = valid_utf8(value);
  const auto [found, is_new] = texts_.try_emplace(std::move(valid), remembered_);
  if (!is_new) return again(found->second);
  begin_value();
  const std::string& written = found->first;
  if (written.size() <= UINT8_MAX) {
    put(kShortText);
    put_bytes(written.size(), 1);
  } else {
    put(kText);
    put_bytes(written.size(), 4);
  }
  bytes_ += written;
  remember();
}

void PickleWriter::pair(uint64_t first, uint64_t second) {
  begin_value();
  put_number(first);
  put_number(second);
  put(kTupleOfTwo);
}

void PickleWriter::begin_dict() {
  begin_value();
  put(kEmptyDict);
  open_.push_back({true, 0});
}

void PickleWriter::begin_list() {
  begin_value();
  put(kEmptyList);
  open_.push_back({false, 0});
}

void PickleWriter::end() {
  const Open ended = open_.back();
  open_.pop_back();
  if (ended.values != 0) put(ended.is_dict ? kSetItems : kAppends);
}

uint32_t PickleWriter::remember() {
  put(kMemoize);
  return remembered_++;
}

void PickleWriter::again(uint32_t remembered) {
  begin_value();
  if (remembered <= UINT8_MAX) {
    put(kGetShort);
    put_bytes(remembered, 1);
  } else {
    put(kGet);
    put_bytes(remembered, 4);
  }
}

std::string PickleWriter::finish() {
  put(kStop);
  return std::move(bytes_);
}

}  // namespace understudy::command
