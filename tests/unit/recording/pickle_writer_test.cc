// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/pickle_writer.h"

#include <gtest/gtest.h>

#include "tests/unit/recording/recording_maker.h"
#include "tools/recording/torch_snapshot.h"

namespace understudy::command {
namespace {

// Behind the protocol, without the end.
template <typename Write>
std::string pickled(const Write& write) {
  PickleWriter pickle;
  write(pickle);
  std::string bytes = pickle.finish();
  EXPECT_EQ(bytes.substr(0, 2), "\x80\x04");
  EXPECT_EQ(bytes.back(), '.');
  return bytes.substr(2, bytes.size() - 3);
}
std::string number(uint64_t value) {
  return pickled([&](PickleWriter& pickle) { pickle.number(value); });
}
std::string signed_number(int64_t value) {
  return pickled([&](PickleWriter& pickle) { pickle.signed_number(value); });
}
std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// As Python's pickle writes them.
TEST(PickleWriter, NumbersHaveTheFewestBytes) {
  EXPECT_EQ(number(0), bytes({'K', 0}));
  EXPECT_EQ(number(255), bytes({'K', 255}));
  EXPECT_EQ(number(256), bytes({'M', 0, 1}));
  EXPECT_EQ(number(65535), bytes({'M', 255, 255}));
  EXPECT_EQ(number(65536), bytes({'J', 0, 0, 1, 0}));
  EXPECT_EQ(number(INT32_MAX), bytes({'J', 255, 255, 255, 127}));
  EXPECT_EQ(number(uint64_t{1} << 31), bytes({0x8a, 5, 0, 0, 0, 128, 0}));
  EXPECT_EQ(number(0x180000000000), bytes({0x8a, 6, 0, 0, 0, 0, 0, 0x18}));
  EXPECT_EQ(number(INT64_MAX), bytes({0x8a, 8, 255, 255, 255, 255, 255, 255, 255, 127}));
  EXPECT_EQ(number(UINT64_MAX), bytes({0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0}));
  EXPECT_EQ(signed_number(7), number(7));
  EXPECT_EQ(signed_number(-1), bytes({'J', 255, 255, 255, 255}));
  EXPECT_EQ(signed_number(INT32_MIN), bytes({'J', 0, 0, 0, 128}));
  EXPECT_EQ(signed_number(int64_t{INT32_MIN} - 1), bytes({0x8a, 5, 255, 255, 255, 127, 255}));
  EXPECT_EQ(signed_number(INT64_MIN), bytes({0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 128}));
}

TEST(PickleWriter, ContainersHoldValuesInTurn) {
  EXPECT_EQ(pickled([](PickleWriter& pickle) {
              pickle.begin_dict();
              pickle.text("a");
              pickle.begin_list();
              pickle.none();
              pickle.boolean(true);
              pickle.boolean(false);
              pickle.end();
              pickle.text("b");
              pickle.pair(1, 2);
              pickle.end();
            }),
            "}(\x8c\x01"
            "a\x94](N\x88\x89"
            "e\x8c\x01"
            "b\x94K\x01K\x02\x86u");
  EXPECT_EQ(pickled([](PickleWriter& pickle) {
              pickle.begin_list();
              pickle.begin_dict();
              pickle.end();
              pickle.end();
            }),
            "](}e");
}

TEST(PickleWriter, TextsAreWrittenOnce) {
  const std::string text(300, 'x');
  EXPECT_EQ(pickled([&](PickleWriter& pickle) {
              pickle.begin_list();
              pickle.text(text);
              pickle.text("\xff");
              pickle.text(text);
              pickle.text("\xef\xbf\xbd");
              pickle.end();
            }),
            "](X" + bytes({44, 1, 0, 0}) + text + "\x94\x8c\x03\xef\xbf\xbd\x94h" +
                bytes({0, 'h', 1, 'e'}));
}

TEST(PickleWriter, ManyTextsAreReferredToByLongNumbers) {
  const std::string all = pickled([](PickleWriter& pickle) {
    pickle.begin_list();
    for (int index = 0; index < 300; ++index) pickle.text(std::to_string(index));
    pickle.text("299");
    pickle.end();
  });
  EXPECT_EQ(all.substr(all.size() - 6), bytes({'j', 43, 1, 0, 0, 'e'}));
}

TEST(PickleWriter, LongListsAreAppendedInParts) {
  for (const auto& [values, parts] : {std::pair(999, 1), {1000, 1}, {1001, 2}, {2001, 3}}) {
    const std::string all = pickled([count = values](PickleWriter& pickle) {
      pickle.begin_list();
      for (int index = 0; index < count; ++index) pickle.none();
      pickle.end();
    });
    EXPECT_EQ(std::count(all.begin(), all.end(), '('), parts);
    EXPECT_EQ(std::count(all.begin(), all.end(), 'e'), parts);
  }
}

TEST(TorchSnapshot, NothingRecordedIsASnapshot) {
  const std::string snapshot = torch_snapshot({});
  EXPECT_NE(snapshot.find("segments"), std::string::npos);
  EXPECT_NE(snapshot.find("device_traces"), std::string::npos);
}

TEST(TorchSnapshot, FramesOfAStackAreWrittenOnce) {
  RecordingMaker maker;
  const uint32_t stack = maker.stack("fill at kv.cc:41");
  const auto size_with = [&](int objects) {
    RecordingMaker copy = maker;
    for (int index = 0; index < objects; ++index) {
      const auto address = static_cast<uint64_t>(index + 1) << 20;
      copy.made.objects[copy.object("allocation", address, 100, 1)].stack = stack;
    }
    return torch_snapshot(copy.made);
  };
  const std::string snapshot = size_with(50);
  EXPECT_EQ(snapshot.find("kv.cc"), snapshot.rfind("kv.cc"));
  EXPECT_NE(snapshot.find("kv.cc"), std::string::npos);
}

}  // namespace
}  // namespace understudy::command
