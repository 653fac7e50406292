# SPDX-License-Identifier: Apache-2.0
# Programs that were compiled without a sanitizer can run on a library that was compiled with one:
# the sanitizer's runtime has to come first in them.
#   us_preload_sanitizer(<variable>): what to put into the environment of such a program.

function(us_preload_sanitizer variable)
  set(runtimes)
  if(US_SANITIZE MATCHES "address")
    set(runtimes libasan.so libstdc++.so)  # the second one, because exceptions pass through both
  elseif(US_SANITIZE MATCHES "thread")
    set(runtimes libtsan.so)
  endif()
  set(preload)
  foreach(runtime ${runtimes})
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime}
      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(APPEND preload "${file} ")
  endforeach()
  if(preload)
    set(preload "LD_PRELOAD=${preload}")
  endif()
  set(${variable} "${preload}" PARENT_SCOPE)
endfunction()
