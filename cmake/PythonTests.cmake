# SPDX-License-Identifier: Apache-2.0
# The tests of the Python module: each file is a test, in an interpreter of its own.

set(python_environment
  PYTHONPATH=${PROJECT_BINARY_DIR}/python
  PYTHONDONTWRITEBYTECODE=1
  COLUMNS=300)  # so that pytest does not shorten the reason of a skipped test
# About files, other interpreters and Python's own memory, not about the module's code.
set(not_for_sanitizers test_wheel test_stubs test_other_pythons test_examples test_server
  test_plugin_settings test_plugin_leaks test_plugin_child test_plugin_features
  test_plugin_in_process test_plugin_errors test_plugin_missing test_plugin_recordings
  test_references)
# The allocator of a sanitizer may be locked for ever in a child whose parent had threads.
list(APPEND not_for_sanitizers test_fork)
# Where threads of the runtime and of Python meet.
set(for_threads test_callback test_threads test_interpreter_end test_event test_stream test_copy
  test_pointers test_util)

if(US_SANITIZE MATCHES "address")
  list(APPEND python_environment PYTHONMALLOC=malloc
    ASAN_OPTIONS=halt_on_error=1:detect_leaks=0:allocator_may_return_null=1
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1)
elseif(US_SANITIZE MATCHES "thread")
  # A program may end while threads that it started are at work.
  list(APPEND python_environment
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=0:report_thread_leaks=0)
endif()
us_preload_sanitizer(preload)  # the interpreter knows nothing of it
list(APPEND python_environment ${preload})

file(GLOB python_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tests/test_*.py)
foreach(file ${python_tests})
  cmake_path(GET file STEM name)
  if((US_SANITIZE AND name IN_LIST not_for_sanitizers) OR
      (US_SANITIZE MATCHES "thread" AND NOT name IN_LIST for_threads))
    continue()
  endif()
  add_test(NAME python/${name}
    COMMAND ${US_PYTHON} -m pytest -v --no-header -p no:cacheprovider ${file}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(python/${name} PROPERTIES
    TIMEOUT 300 COST 50 LABELS python ENVIRONMENT "${python_environment}")
  if(name MATCHES "^test_(plugin_|server)")  # they look for directories that a server left behind
    set_tests_properties(python/${name} PROPERTIES RESOURCE_LOCK server_directories)
  endif()
endforeach()
