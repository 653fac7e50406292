# SPDX-License-Identifier: Apache-2.0
# What set_env.sh does, at the place where older build files look for it:
#   source $ASCEND_HOME_PATH/bin/setenv.bash
# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]:-$0}")/../set_env.sh"
