// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/timeline_page.h"

#include <cstdint>

#include "timeline_template.inc"
#include "tools/recording/page_document.h"

namespace understudy::command {

namespace {

void add_base64(std::string& text, std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](size_t at) -> uint32_t {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
  };
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const uint32_t bits = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    const size_t given = bytes.size() - at;
    text += kDigits[bits >> 18];
    text += kDigits[bits >> 12 & 63];
    text += given > 1 ? kDigits[bits >> 6 & 63] : '=';
    text += given > 2 ? kDigits[bits & 63] : '=';
  }
}

template <typename Pieces>
void add_all(std::string& text, const Pieces& pieces) {
  for (const std::string_view piece : pieces) text += piece;
}

constexpr size_t kTemplateBytes = [] {
  size_t bytes = 0;
  for (const std::string_view piece : kBeforeRecording) bytes += piece.size();
  for (const std::string_view piece : kBehindRecording) bytes += piece.size();
  return bytes;
}();
constexpr std::string_view kBegin = R"(<script id="recording" type="application/octet-stream")";
constexpr std::string_view kEnd = "</script>";

}  // namespace

std::string timeline_page(const Recording& recording) {
  const std::string document = page_document(recording);
  std::string page;
  page.reserve(kTemplateBytes + kBegin.size() + kEnd.size() + document.size() / 3 * 4 + 8);
  add_all(page, kBeforeRecording);
  page.append(kBegin).append(">");
  add_base64(page, document);
  page += kEnd;
  add_all(page, kBehindRecording);
  return page;
}

std::string live_timeline_page(std::string_view address) {
  std::string page;
  add_all(page, kBeforeRecording);
  page.append(kBegin).append(" data-live=\"").append(address).append("\">").append(kEnd);
  add_all(page, kBehindRecording);
  return page;
}

}  // namespace understudy::command
