// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace bench {

// Software NPUs of this benchmark's own, whatever else uses some on the machine: from now on, for
// this process and those it starts. Gone with the process. Their directory.
const std::string& use_private_server();

}  // namespace bench
