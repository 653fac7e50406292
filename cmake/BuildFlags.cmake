# SPDX-License-Identifier: Apache-2.0
# How everything here is compiled. Presets choose among it, targets add nothing of their own.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -g -DNDEBUG")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # for its analysis alone; nothing of it is run
    set(CMAKE_${language}_FLAGS_DEBUG "-O0")
  elseif(US_SANITIZE)  # lines are all that a report needs, and take two thirds of the time
    set(CMAKE_${language}_FLAGS_DEBUG "-O1 -g1")
  else()
    set(CMAKE_${language}_FLAGS_DEBUG "-O1 -g")
  endif()
endforeach()

# A call passes through six layers: only the linker sees all of them at once.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
  # Results are hundreds of bytes, for the sentence of an error that is hardly ever there. gcc would
  # not make a function part of its only caller for their sake.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=large-stack-frame=4096>)
endif()

add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${US_WARNINGS_AS_ERRORS}>:-Werror>
  -fno-semantic-interposition
  # Messages name src/memory/..., wherever the tree lies.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>
  # INSTANTIATE_TEST_SUITE_P leaves out an optional macro argument, which C++20 allows.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-gnu-zero-variadic-macro-arguments>)
add_compile_definitions(
  $<$<CONFIG:Debug>:US_CHECK_INVARIANTS=1>
  $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

# us_compile_quickly(<target>): for what is compiled once per preset and then runs for milliseconds.
function(us_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0> $<$<CONFIG:Debug>:-g1>)
endfunction()

set(US_SANITIZE_OPTIONS)
if(US_SANITIZE)
  # Instrumented code makes gcc see uninitialised variables that are none, and it warns of every
  # fence under TSan. The other presets compile the same lines without this mercy.
  set(US_SANITIZE_OPTIONS
    -fsanitize=${US_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=tsan>)
  add_compile_options(${US_SANITIZE_OPTIONS})
  add_link_options(-fsanitize=${US_SANITIZE})
endif()

find_program(US_CCACHE ccache)
if(US_CCACHE)
  # What is compiled alike for several presets, or for another clone of the tree, is compiled once:
  # the folder it is compiled in only shows in debug information.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_SLOPPINESS=pch_defines,time_macros ${US_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
