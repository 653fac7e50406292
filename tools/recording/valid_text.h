// SPDX-License-Identifier: Apache-2.0
//
// Texts of a recording in files that other tools read. Names, arguments and stacks may hold any
// bytes; what is no UTF-8 becomes U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace understudy::command {

std::string valid_utf8(std::string_view text);

// With the quotes around it.
void append_json_text(std::string& out, std::string_view text);
// For content and for attributes; what XML has no letter for becomes U+FFFD, too.
void append_xml_text(std::string& out, std::string_view text);

void append_number(std::string& out, uint64_t number);
void append_signed(std::string& out, int64_t number);
// "0x1f"
void append_hex(std::string& out, uint64_t number);

}  // namespace understudy::command
