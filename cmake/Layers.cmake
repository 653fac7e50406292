# SPDX-License-Identifier: Apache-2.0

# us_precompile_headers(<layer>): half of the time that most files take is the standard library. The
# layers share what the lowest one precompiles. Not for clang, which so finds includes that are
# missing.
function(us_precompile_headers target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(TARGET us_base AND NOT target STREQUAL "us_base")
    target_precompile_headers(${target} REUSE_FROM us_base)
  else()
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <optional> <string>
      <unordered_map> <vector>)
  endif()
endfunction()

# us_join_sources(<target>)
function(us_join_sources target)
  if(US_JOINED_SOURCES GREATER 1)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${US_JOINED_SOURCES})
  endif()
endfunction()

# us_add_layer(<folder> [USES <layer>...] [PUBLIC_HEADERS])
#
# One static library us_<folder> from src/<folder>/*.cc. A layer may include what it USES and
# everything below that; scripts/check_layers.py reads the same lines. A folder without sources
# (headers only, or not written yet) becomes an interface library.
function(us_add_layer folder)
  cmake_parse_arguments(PARSE_ARGV 1 layer "PUBLIC_HEADERS" "" "USES")
  set(target us_${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    us_precompile_headers(${target})
    us_join_sources(${target})
    if(layer_PUBLIC_HEADERS)
      target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM layer_USES PREPEND us_)
  target_link_libraries(${target} ${scope} ${layer_USES} Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY US_LAYERS ${target})
endfunction()
