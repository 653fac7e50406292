// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a public call as words of a recording (observe/recorder.h). An entry point lists
// them once, in the order of its parameters:
//
//   return guarded(US_CALL(out(devPtr), size, policy), ...
//
// They are copied when a watched call begins, and looked at when it has ended. What a pointer leads
// to is read where the call has succeeded: then it was good. A call that failed leaves the pointer
// itself.
//
// Of what lists lead to, everything is read with care, and is recorded beside the pointers.
//
// Letters of types: u unsigned, i signed, p pointer, f float, t text, P physical block's
// properties, L location; a number behind a letter is that of its words.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>

#include "acl/acl_rt.h"
#include "observe/recorder.h"

namespace understudy::capi {

// What the call writes for the program, or reads through a pointer.
template <typename T>
struct Pointed {
  T* pointer;
};
template <typename T>
Pointed<T> out(T* pointer) {
  return {pointer};
}
template <typename T>
Pointed<T> at(T* pointer) {
  return {pointer};
}
// So many values that the call reads or writes.
struct List {
  const void* pointer;
  size_t bytes;  // 0: there are none, or far too many

  void note(const OpenCall& call, unsigned parameter) const noexcept {
    Recorder::note_pointed(call, parameter, pointer, bytes);
  }
};
template <typename T>
List list(const T* pointer, size_t count) {
  return {pointer, count <= SIZE_MAX / sizeof(T) ? count * sizeof(T) : 0};
}
inline List list(const void* pointer, size_t bytes) { return {pointer, bytes}; }
// What a configuration lists, not itself.
struct Attributes {
  const aclrtMallocConfig* pointer;

  void note(const OpenCall& call, unsigned parameter) const noexcept {
    aclrtMallocConfig config{};
    if (!Recorder::try_read(pointer, &config, sizeof config)) return;
    list(config.attrs, config.numAttrs).note(call, parameter);
  }
};
inline Attributes attributes_of(const aclrtMallocConfig* config) { return {config}; }
struct Text {
  const char* pointer;
};
inline Text text(const char* pointer) { return {pointer}; }

inline uint64_t packed(int32_t low, int32_t high) {
  return uint64_t{static_cast<uint32_t>(high)} << 32 | static_cast<uint32_t>(low);
}

// How a type is recorded: its letters, how many words it has, and what they are.
template <typename T>
struct Recorded {
  static constexpr unsigned kWords = 1;
  static constexpr std::array<char, 2> kLetters = {
      std::is_floating_point_v<T>
          ? 'f'
          : (std::is_pointer_v<T> ? 'p' : (std::is_enum_v<T> || std::is_signed_v<T> ? 'i' : 'u')),
      '\0'};
  static void write(const T& value, bool, uint64_t* words) {
    if constexpr (std::is_pointer_v<T>) {
      *words = reinterpret_cast<uint64_t>(value);
    } else if constexpr (std::is_same_v<T, float>) {
      *words = std::bit_cast<uint32_t>(value);
    } else {
      *words = static_cast<uint64_t>(static_cast<int64_t>(value));
    }
  }
};

template <typename T>
struct Recorded<Pointed<T>> : Recorded<std::remove_const_t<T>> {
  using Value = Recorded<std::remove_const_t<T>>;
  static void write(const Pointed<T>& value, bool succeeded, uint64_t* words) {
    if (succeeded && value.pointer != nullptr) return Value::write(*value.pointer, true, words);
    *words = reinterpret_cast<uint64_t>(value.pointer);
  }
};

template <>
struct Recorded<Text> {
  static constexpr unsigned kWords = 1;
  static constexpr std::array<char, 2> kLetters = {'t', '\0'};
  static void write(const Text& value, bool succeeded, uint64_t* words) {
    *words = Recorder::define_text(value.pointer, succeeded);
  }
};

template <typename Values>
struct RecordedPointer {
  static constexpr unsigned kWords = 1;
  static constexpr std::array<char, 2> kLetters = {'p', '\0'};
  static void write(const Values& value, bool, uint64_t* words) {
    *words = reinterpret_cast<uint64_t>(value.pointer);
  }
};
template <>
struct Recorded<List> : RecordedPointer<List> {};
template <>
struct Recorded<Attributes> : RecordedPointer<Attributes> {};

// Of the two kinds of locations.
template <typename Location>
struct RecordedLocation {
  static constexpr unsigned kWords = 1;
  static constexpr std::array<char, 2> kLetters = {'L', '\0'};
  static void write(const Location& value, bool, uint64_t* words) {
    *words = packed(static_cast<int32_t>(value.id), static_cast<int32_t>(value.type));
  }
};
template <>
struct Recorded<aclrtMemLocation> : RecordedLocation<aclrtMemLocation> {};
template <>
struct Recorded<aclrtMemManagedLocation> : RecordedLocation<aclrtMemManagedLocation> {};

template <>
struct Recorded<const aclrtPhysicalMemProp*> {
  static constexpr unsigned kWords = 4;
  static constexpr std::array<char, 2> kLetters = {'P', '4'};
  // A call may fail before it looks at them: they may be anywhere then.
  static void write(const aclrtPhysicalMemProp* value, bool succeeded, uint64_t* words) {
    aclrtPhysicalMemProp copy{};
    if (succeeded && value != nullptr) {
      copy = *value;
    } else if (!Recorder::try_read(value, &copy, sizeof copy)) {
      std::fill_n(words, kWords, UINT64_MAX);  // there are none
      return;
    }
    words[0] = packed(copy.handleType, copy.allocationType);
    words[1] = packed(copy.memAttr, copy.location.type);
    words[2] = copy.location.id;
    words[3] = copy.reserve;
  }
};
template <>
struct Recorded<aclrtPhysicalMemProp*> : Recorded<const aclrtPhysicalMemProp*> {};

// Its first bytes tell one from another.
template <>
struct Recorded<aclrtIpcEventHandle> {
  static constexpr unsigned kWords = 1;
  static constexpr std::array<char, 2> kLetters = {'u', '\0'};
  static void write(const aclrtIpcEventHandle& value, bool, uint64_t* words) {
    std::memcpy(words, value.reserved, sizeof *words);
  }
};

// A call and its arguments.
template <typename... T>
struct Called {
  static constexpr size_t kWords = (0 + ... + Recorded<T>::kWords);
  // "p,u,P4"
  static constexpr auto kTypes = [] {
    std::array<char, 3 * sizeof...(T) + 1> text{};
    size_t size = 0;
    [[maybe_unused]] const auto add = [&](const std::array<char, 2>& letters) {
      if (size != 0) text[size++] = ',';
      for (const char letter : letters) {
        if (letter != '\0') text[size++] = letter;
      }
    };
    (add(Recorded<T>::kLetters), ...);
    return text;
  }();

  const char* function;
  const char* names;
  std::tuple<const T&...> arguments;
};

// What is kept of a watched call until it ends; nothing where no call is watched. Copies: a
// parameter whose address leaves the entry point is in memory also where no call is watched.
template <typename... T>
class KeptCall {
 public:
  KeptCall() {}  // NOLINT(modernize-use-equals-default): leaves all of it as it is

  [[gnu::always_inline]] void begin(const Called<T...>& called) {
    new (&kept_) Kept{called.function, called.names, {}, called.arguments};
  }
  const char* function() const { return kept_.function; }
  CallShape shape() const { return {kept_.function, kept_.names, Called<T...>::kTypes.data()}; }
  // Where it is noted whether and when the call began in a recording.
  OpenCall& open() { return kept_.open; }

  void record(aclError code) const noexcept {
    if (kept_.open.begun == 0) return;
    std::array<uint64_t, Called<T...>::kWords + 1> words;  // one more: none is no array
    uint64_t* next = words.data();
    unsigned parameter = 0;
    const auto write = [&]<typename Each>(const Each& argument) {
      Recorded<Each>::write(argument, code == ACL_SUCCESS, next);
      next += Recorded<Each>::kWords;
      if constexpr (requires { argument.note(kept_.open, parameter); })
        argument.note(kept_.open, parameter);
      ++parameter;
    };
    std::apply([&](const auto&... each) { (write(each), ...); }, kept_.arguments);
    Recorder::end_call(kept_.open, code, {words.data(), Called<T...>::kWords});
  }

 private:
  struct Kept {
    const char* function;
    const char* names;
    OpenCall open;
    std::tuple<T...> arguments;
  };
  static_assert(std::is_trivially_destructible_v<Kept>);
  union {
    Kept kept_;
  };
};

template <typename... T>
Called<T...> called(const char* function, const char* names, const T&... arguments) {
  return {function, names, {arguments...}};
}

}  // namespace understudy::capi

// The function around it, and its arguments.
#define US_CALL(...) ::understudy::capi::called(__func__, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__)
