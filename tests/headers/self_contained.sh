#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every public header alone, and twice in a row, as C99 and as C++17:
#   self_contained.sh [include directory]
# CC and CXX choose the compilers.
set -euo pipefail

include=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../include" && pwd)}
warnings=(-Wall -Wextra -Wpedantic -Werror)
failures=0
count=0

# compile HEADER COMPILER... : the typedef is there because C wants at least one declaration.
compile() {
  local header=$1
  shift
  if ! printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$header" "$header" |
    "$@" "${warnings[@]}" -I"$include" -fsyntax-only -; then
    echo "not self-contained: $header ($*)" >&2
    failures=$((failures + 1))
  fi
}

while IFS= read -r header; do
  compile "$header" "${CC:-gcc}" -x c -std=c99
  compile "$header" "${CXX:-g++}" -x c++ -std=c++17
  count=$((count + 1))
done < <(cd "$include" && find acl -name '*.h' | sort)

echo "self-contained headers: $count checked, $failures failures"
((count > 0 && failures == 0))
