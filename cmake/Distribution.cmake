# SPDX-License-Identifier: Apache-2.0
# The installed tree: what clients look for under ASCEND_HOME_PATH.

install(TARGETS ascendcl LIBRARY DESTINATION lib64)
install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libacl_rt.so DESTINATION lib64)  # stays a link
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/cmake/set_env.sh DESTINATION .)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/setenv.bash DESTINATION bin)
install(TARGETS understudy RUNTIME DESTINATION bin)
install(CODE "execute_process(
  COMMAND ${CMAKE_STRIP} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/understudy\"
  COMMAND_ERROR_IS_FATAL ANY)")

# The tests of `understudy conformance` see the library from outside, so those of the dev preset do:
# compiling them once more would take minutes. This build does not know whether they are of today, so
# they are a component of their own, which `./dev` installs where it has just built them.
set(rule_tests libexec/understudy/rule_tests)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/build/dev/bin/rule_tests DESTINATION libexec/understudy
  COMPONENT rule_tests EXCLUDE_FROM_ALL)
install(CODE "
  set(program \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${rule_tests}\")
  file(RPATH_REMOVE FILE \${program})
  execute_process(COMMAND ${CMAKE_STRIP} \${program} COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT rule_tests EXCLUDE_FROM_ALL)

# Debug information is most of the library and has a file of its own. Debuggers look for it in
# .debug beside the library, which leads to the folder that people see.
set(debug_file libascendcl.so.debug)
install(DIRECTORY DESTINATION lib64/debug)
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib64\")
  foreach(step
      \"${CMAKE_OBJCOPY};--only-keep-debug;libascendcl.so;debug/${debug_file}\"
      \"${CMAKE_STRIP};--strip-unneeded;libascendcl.so\"
      \"${CMAKE_OBJCOPY};--add-gnu-debuglink=debug/${debug_file};libascendcl.so\")
    execute_process(COMMAND \${step} WORKING_DIRECTORY \${folder} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(CREATE_LINK debug \${folder}/.debug SYMBOLIC)")

# Older build files look into <arch>-linux/. Relative links, so that the tree can be moved.
set(arch_folder ${CMAKE_SYSTEM_PROCESSOR}-linux)
install(DIRECTORY DESTINATION ${arch_folder})
foreach(folder include lib64)
  install(CODE "file(CREATE_LINK ../${folder}
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${arch_folder}/${folder}\" SYMBOLIC)")
endforeach()

# The Python module, for PYTHONPATH and as a wheel that has the library inside. Run after both are
# installed, so that it is made of what is delivered.
if(TARGET acl_module)
  install(TARGETS acl_module LIBRARY DESTINATION python)
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    foreach(output python wheel)
      if(output STREQUAL python)
        set(form --unpacked)
      else()
        set(form --strip ${CMAKE_STRIP})
      endif()
      execute_process(
        COMMAND ${US_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/make_wheel.py
          --version ${PROJECT_VERSION} --module \${root}/python/acl.abi3.so
          --library \${root}/lib64/libascendcl.so --python ${PROJECT_SOURCE_DIR}/python
          --license ${PROJECT_SOURCE_DIR}/LICENSE --output \${root}/\${output} \${form}
        COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
endif()
