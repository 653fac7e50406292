# SPDX-License-Identifier: Apache-2.0
# Checks of the sources and of the built library, as tests.

function(us_add_check name)
  add_test(NAME check/${name} COMMAND ${US_PYTHON} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(check/${name} PROPERTIES TIMEOUT 120 LABELS check)
endfunction()

us_add_check(layers scripts/check_layers.py)
us_add_check(docs scripts/check_docs.py)
us_add_check(rules scripts/rules.py --check
  --compile-commands ${PROJECT_BINARY_DIR}/compile_commands.json)
if(TARGET ascendcl)
  us_add_check(symbols scripts/check_symbols.py $<TARGET_FILE:ascendcl> include)
endif()
