# SPDX-License-Identifier: Apache-2.0

# us_add_support_library(<target> <library>...): what the programs of this folder share, from
# support/*.cc, included as "support/...". Works with headers alone and with nothing at all.
function(us_add_support_library target)
  file(GLOB sources CONFIGURE_DEPENDS support/*.cc)
  if(sources)
    add_library(${target} STATIC ${sources})
    us_compile_quickly(${target})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} ${scope} ${ARGN} Threads::Threads)
endfunction()
