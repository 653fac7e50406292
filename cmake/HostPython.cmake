# SPDX-License-Identifier: Apache-2.0
# The interpreter that runs the scripts, and whose headers the Python module is compiled with.

# Debian's own: another python3 may come first on PATH, with other modules.
find_program(US_PYTHON python3 HINTS /usr/bin NO_CMAKE_PATH REQUIRED)

execute_process(
  COMMAND ${US_PYTHON} -c "import sysconfig; print(sysconfig.get_path('include'))"
  OUTPUT_VARIABLE US_PYTHON_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
