# SPDX-License-Identifier: Apache-2.0

# us_add_layer(<folder> [USES <layer>...] [DEFINES <macro>...] [PUBLIC_HEADERS])
#
# One static library us_<folder> from src/<folder>/*.cc. A layer may include what it USES and
# everything below that; scripts/check_layers.py reads the same lines. A folder without sources
# (headers only, or not written yet) becomes an interface library.
function(us_add_layer folder)
  cmake_parse_arguments(PARSE_ARGV 1 layer "PUBLIC_HEADERS" "" "USES;DEFINES")
  set(target us_${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_definitions(${target} PRIVATE ${layer_DEFINES})
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
