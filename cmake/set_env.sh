# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2128,SC2154,SC3028
# Points this shell at the software NPU:  . <where it is installed>/set_env.sh
# Meant to be sourced, by bash, zsh or any POSIX shell; sourcing it again changes nothing.

# Sets _us_file to where this file lies. bash and zsh say so; other shells do not, but while they
# read the file they hold it open.
_us_find_this_file() {
  _us_file=
  if [ -n "${BASH_VERSION:-}" ]; then
    _us_file=$BASH_SOURCE  # the first entry: the file this function was read from
  elif [ -n "${ZSH_VERSION:-}" ]; then
    eval '_us_file=${(%):-%x}'  # no POSIX shell could parse it
  else
    # $$ names the outermost shell; the parent of a command is the shell that reads this file.
    for _us_fd in "/proc/$(exec sh -c 'echo "$PPID"')"/fd/*; do
      case $(readlink "$_us_fd") in
        */set_env.sh) _us_file=$(readlink "$_us_fd") ;;
      esac
    done
  fi
}

# _us_prepend <variable> <folder>: puts the folder first in a list, once.
_us_prepend() {
  eval "_us_list=\${$1:-}"
  case ":$_us_list:" in
    *":$2:"*) ;;
    *) export "$1=$2${_us_list:+:$_us_list}" ;;
  esac
}

_us_clean_up() {
  unset _us_file _us_fd _us_home _us_list
  unset -f _us_find_this_file _us_prepend _us_clean_up
}

_us_find_this_file
_us_home=$(cd "$(dirname "${_us_file:-/nowhere/file}")" 2>/dev/null && pwd -P) || _us_home=/nowhere
if [ ! -e "$_us_home/lib64/libascendcl.so" ]; then
  echo "set_env.sh: no library beside '${_us_file:-this file}'; try sourcing it from bash" >&2
  _us_clean_up
  return 1
fi
export ASCEND_HOME_PATH="$_us_home"
export ASCEND_TOOLKIT_HOME="$_us_home"
_us_prepend LD_LIBRARY_PATH "$_us_home/lib64"
_us_prepend PATH "$_us_home/bin"
_us_prepend CMAKE_PREFIX_PATH "$_us_home"
_us_prepend PYTHONPATH "$_us_home/python"
_us_clean_up
