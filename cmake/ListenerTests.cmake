# SPDX-License-Identifier: Apache-2.0
# The listener for GoogleTest: a program with tests that fail on purpose, as a user would build it,
# and a test of what it prints.

add_executable(gtest_listener_program ${PROJECT_SOURCE_DIR}/tests/listener/program.cc)
target_link_libraries(gtest_listener_program PRIVATE ascendcl GTest::gtest Threads::Threads)
set_target_properties(gtest_listener_program PROPERTIES CXX_STANDARD 14 SKIP_BUILD_RPATH ON)

# What a real device has in place of the library.
add_library(other_library SHARED ${PROJECT_SOURCE_DIR}/tests/listener/other_library.c)
target_include_directories(other_library PRIVATE ${PROJECT_SOURCE_DIR}/include)
set_target_properties(other_library PROPERTIES
  OUTPUT_NAME ascendcl LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/other_library)

add_test(NAME listener/gtest
  COMMAND ${US_PYTHON} -m pytest -v --no-header -p no:cacheprovider
    ${PROJECT_SOURCE_DIR}/tests/listener/test_gtest_listener.py
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(listener/gtest PROPERTIES
  TIMEOUT 300 LABELS listener RESOURCE_LOCK server_directories
  ENVIRONMENT "UNDERSTUDY_TEST_BUILD=${PROJECT_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1;COLUMNS=300")
