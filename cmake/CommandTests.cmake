# SPDX-License-Identifier: Apache-2.0
# The tests of the command: each file runs the real binary as a user would.
add_subdirectory(${PROJECT_SOURCE_DIR}/tests/command ${PROJECT_BINARY_DIR}/tests/command)

# A library with mistakes, for understudy conformance to find.
add_library(wrong_library MODULE ${PROJECT_SOURCE_DIR}/tests/command/wrong_library.cc)
target_include_directories(wrong_library PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(wrong_library PRIVATE ${CMAKE_DL_LIBS})

file(GLOB command_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/command/test_*.py)
foreach(file ${command_tests})
  cmake_path(GET file STEM name)
  add_test(NAME command/${name}
    COMMAND ${US_PYTHON} -m pytest -v --no-header -p no:cacheprovider ${file}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(command/${name} PROPERTIES
    TIMEOUT 300 COST 150 LABELS command
    ENVIRONMENT "UNDERSTUDY_TEST_BUILD=${PROJECT_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1;COLUMNS=300")
endforeach()
