# SPDX-License-Identifier: Apache-2.0
# Checks of the sources and of the built library, as tests.

function(us_add_check name)
  add_test(NAME check/${name} COMMAND ${US_PYTHON} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(check/${name} PROPERTIES TIMEOUT 120 LABELS check)
endfunction()

us_add_check(layers scripts/check_layers.py)
us_add_check(docs scripts/check_docs.py)
us_add_check(calls scripts/check_calls.py)
us_add_check(rules scripts/rules.py --check
  --test-sources ${PROJECT_BINARY_DIR}/test_sources.txt)
if(TARGET ascendcl)
  us_add_check(symbols scripts/check_symbols.py $<TARGET_FILE:ascendcl> include)
endif()

# A whole program under Valgrind. What is seen is that it ends: the search for leaks at its end must
# not walk through device memory.
find_program(US_VALGRIND valgrind)
if(TARGET demo AND US_VALGRIND)
  add_test(NAME check/valgrind COMMAND ${US_VALGRIND} -q --leak-check=full $<TARGET_FILE:demo>)
  set_tests_properties(check/valgrind PROPERTIES TIMEOUT 120 LABELS check ENVIRONMENT
    "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:ascendcl>;UNDERSTUDY_RUNTIME_DIR=${PROJECT_BINARY_DIR}/server-valgrind")
endif()

# The tests of those scripts that judge by more than a list.
file(GLOB script_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/scripts/test_*.py)
foreach(file ${script_tests})
  cmake_path(GET file STEM name)
  add_test(NAME scripts/${name}
    COMMAND ${US_PYTHON} -m pytest -v --no-header -p no:cacheprovider ${file}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(scripts/${name} PROPERTIES TIMEOUT 120 LABELS scripts
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;COLUMNS=300")
endforeach()
