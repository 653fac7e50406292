// SPDX-License-Identifier: Apache-2.0
//
// Whether a thread is in a function of the program that a stream has called: the stream does not
// get on before it returns.
#pragma once

namespace understudy {

// Marks the calling thread for its lifetime.
class UserCodeMark {
 public:
  UserCodeMark();
  ~UserCodeMark();
  UserCodeMark(const UserCodeMark&) = delete;
  UserCodeMark& operator=(const UserCodeMark&) = delete;
};

bool runs_user_code();

}  // namespace understudy
