// SPDX-License-Identifier: Apache-2.0
//
// Turns a function of the C interface into one of Python, from its type alone: a parameter that
// points to a number or a pointer is an output and becomes a result, in the order of C; every other
// parameter is an argument. A status comes last; a function without one gives its bare value.
//
//   call<aclrtMalloc>   without the GIL: for everything that takes time or may wait
//   ask<aclrtGetDevice> with the GIL: for what only looks something up
//
// Functions with structures, texts or callbacks are written by hand.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "acl/acl_base.h"
#include "arguments.h"
#include "docstrings.h"
#include "python_api.h"
#include "results.h"

namespace understudy::python {

// An entry of a module's table. Its text comes from the stubs, so that it cannot be forgotten.
#define US_METHOD(module, name, function)                     \
  {                                                           \
#name,                                                      \
        [](PyObject* self, PyObject* tuple) -> PyObject* {      \
          const FunctionScope scope(#module, #name);            \
          return (function)(self, tuple);                       \
        },                                                      \
        METH_VARARGS, doc::module##_##name \
  }
#define US_END_OF_METHODS \
  { nullptr, nullptr, 0, nullptr }

enum class Gil { kReleased, kHeld };

template <typename Parameter>
constexpr bool is_output() {
  using Target = std::remove_pointer_t<Parameter>;
  return std::is_pointer_v<Parameter> && !std::is_const_v<Target> &&
         (std::is_arithmetic_v<Target> || std::is_enum_v<Target> || std::is_pointer_v<Target>);
}

// What is kept for a parameter during a call.
template <typename Parameter>
using Kept =
    std::conditional_t<is_output<Parameter>(), std::remove_pointer_t<Parameter>, Parameter>;

template <auto kFunction, Gil kGil, typename Type = decltype(kFunction)>
struct Binding;

template <auto kFunction, Gil kGil, typename Result, typename... Parameters>
struct Binding<kFunction, kGil, Result (*)(Parameters...)> {
  static PyObject* run(PyObject* /*module*/, PyObject* tuple) {
    return run(tuple, std::index_sequence_for<Parameters...>());
  }

 private:
  static_assert(!(std::is_same_v<Parameters, char*> || ...), "texts are bound by hand");
  static constexpr int kArguments = (0 + ... + (is_output<Parameters>() ? 0 : 1));

  // Which argument of Python each parameter is; meaningless for outputs.
  static constexpr auto argument_numbers() {
    std::array<int, sizeof...(Parameters) + 1> numbers{};
    const std::array<bool, sizeof...(Parameters) + 1> outputs{is_output<Parameters>()...};
    for (size_t i = 1; i < numbers.size(); ++i)
      numbers[i] = numbers[i - 1] + (outputs[i - 1] ? 0 : 1);
    return numbers;
  }

  template <size_t... kIndex>
  static PyObject* run(PyObject* tuple, std::index_sequence<kIndex...>) {
    const Arguments arguments(tuple);
    if (!arguments.are_exactly(kArguments)) return nullptr;
    [[maybe_unused]] constexpr auto kNumbers = argument_numbers();
    std::tuple<Kept<Parameters>...> kept{};
    const bool readable =
        (read<Parameters>(arguments, kNumbers[kIndex], std::get<kIndex>(kept)) && ...);
    if (!readable) return nullptr;
    const auto invoke = [&] { return kFunction(pass<Parameters>(std::get<kIndex>(kept))...); };
    Result result;
    if constexpr (kGil == Gil::kReleased) {
      result = without_gil(invoke);
    } else {
      result = invoke();
    }
    if constexpr (kArguments == sizeof...(Parameters)) {
      return to_python(result);
    } else {
      return std::apply(
          [](auto... items) { return tuple_of(items...); },
          std::tuple_cat(result_of<Parameters>(std::get<kIndex>(kept))..., std::tuple(result)));
    }
  }

  template <typename Parameter>
  static bool read(const Arguments& arguments, int number, Kept<Parameter>& kept) {
    if constexpr (is_output<Parameter>()) {
      return true;
    } else if constexpr (std::is_pointer_v<Parameter>) {
      void* address = nullptr;
      if (!read_address(arguments.at(number), ValueName(number), address)) return false;
      kept = static_cast<Parameter>(address);
      return true;
    } else {
      return read_number(arguments.at(number), ValueName(number), kept);
    }
  }

  template <typename Parameter>
  static Parameter pass(Kept<Parameter>& kept) {
    if constexpr (is_output<Parameter>()) {
      return &kept;
    } else {
      return kept;
    }
  }

  template <typename Parameter>
  static auto result_of(const Kept<Parameter>& kept) {
    if constexpr (is_output<Parameter>()) {
      return std::tuple(kept);
    } else {
      return std::tuple<>();
    }
  }
};

template <auto kFunction>
constexpr PyCFunction call = Binding<kFunction, Gil::kReleased>::run;
template <auto kFunction>
constexpr PyCFunction ask = Binding<kFunction, Gil::kHeld>::run;

}  // namespace understudy::python
