# SPDX-License-Identifier: Apache-2.0
# The installed tree: what clients look for under ASCEND_HOME_PATH.

install(TARGETS ascendcl LIBRARY DESTINATION lib64)
install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libacl_rt.so DESTINATION lib64)  # stays a link
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY DESTINATION bin)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/set_env.sh DESTINATION .)

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
