// SPDX-License-Identifier: Apache-2.0
#include "tools/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "platform/unique_fd.h"

namespace understudy::command {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using SectionHeader = ElfW(Shdr);
using Dynamic = ElfW(Dyn);
using Symbol = ElfW(Sym);

#if defined(__x86_64__)
constexpr auto kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr auto kMachine = EM_AARCH64;
#endif
constexpr auto kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

// Tables longer than this are damage.
constexpr uint64_t kMaxTable = uint64_t{256} << 20;

class Reader {
 public:
  explicit Reader(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status;
    if (file_.valid() && fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<uint64_t>(status.st_size);
    }
  }

  // Bytes of the file, fewer at its end.
  std::string bytes(uint64_t offset, uint64_t count) const {
    if (offset >= size_ || count > kMaxTable) return {};
    std::string text(std::min(count, size_ - offset), '\0');
    const ssize_t got = pread(file_.get(), text.data(), text.size(), static_cast<off_t>(offset));
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }

  template <typename T>
  std::vector<T> table(uint64_t offset, uint64_t count) const {
    if (count > kMaxTable / sizeof(T)) return {};
    const std::string text = bytes(offset, count * sizeof(T));
    std::vector<T> entries(text.size() / sizeof(T));
    if (!entries.empty()) memcpy(entries.data(), text.data(), entries.size() * sizeof(T));
    return entries;
  }

 private:
  platform::UniqueFd file_;
  uint64_t size_ = 0;
};

std::optional<Header> read_header(const Reader& file) {
  const std::vector<Header> found = file.table<Header>(0, 1);
  if (found.empty()) return std::nullopt;
  const Header& header = found.front();
  const bool is_ours = memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                       header.e_ident[EI_CLASS] == kClass && header.e_machine == kMachine &&
                       (header.e_type == ET_EXEC || header.e_type == ET_DYN);
  return is_ours ? std::optional(header) : std::nullopt;
}

// The string that begins at a place of a table.
std::string text_at(const std::string& strings, uint64_t offset) {
  return offset < strings.size() ? std::string(strings.c_str() + offset) : "";
}

// Where an address of the loaded file comes from.
uint64_t offset_of(const std::vector<Segment>& segments, uint64_t address) {
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return UINT64_MAX;
}

std::string read_strings(const Reader& file, const std::vector<Segment>& segments,
                         const std::vector<Dynamic>& entries) {
  uint64_t address = 0;
  uint64_t size = 0;
  for (const Dynamic& entry : entries) {
    if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  return file.bytes(offset_of(segments, address), size);
}

void read_entry(ElfFile& elf, const Dynamic& entry, const std::string& strings) {
  switch (entry.d_tag) {
    case DT_NEEDED:
      elf.needed.push_back(text_at(strings, entry.d_un.d_val));
      break;
    case DT_SONAME:
      elf.name = text_at(strings, entry.d_un.d_val);
      break;
    case DT_RPATH:
      elf.rpath = text_at(strings, entry.d_un.d_val);
      break;
    case DT_RUNPATH:
      elf.runpath = text_at(strings, entry.d_un.d_val);
      break;
    case DT_FLAGS_1:
      elf.searches_defaults = (entry.d_un.d_val & DF_1_NODEFLIB) == 0;
      break;
    default:
      break;
  }
}

void read_dynamic(ElfFile& elf, const Reader& file, const std::vector<Segment>& segments,
                  const Segment& dynamic) {
  elf.is_dynamic = true;
  std::vector<Dynamic> entries =
      file.table<Dynamic>(dynamic.p_offset, dynamic.p_filesz / sizeof(Dynamic));
  const auto end = std::find_if(entries.begin(), entries.end(),
                                [](const Dynamic& entry) { return entry.d_tag == DT_NULL; });
  entries.erase(end, entries.end());
  const std::string strings = read_strings(file, segments, entries);
  for (const Dynamic& entry : entries) read_entry(elf, entry, strings);
  if (elf.runpath) elf.rpath.reset();  // the loader ignores it then
}

}  // namespace

std::optional<ElfFile> ElfFile::read(const std::string& path) {
  const Reader file(path);
  const std::optional<Header> header = read_header(file);
  if (!header) return std::nullopt;
  ElfFile elf;
  elf.path = path;
  const std::vector<Segment> segments = file.table<Segment>(header->e_phoff, header->e_phnum);
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_INTERP) {
      elf.interpreter = file.bytes(segment.p_offset, segment.p_filesz).c_str();
    }
    if (segment.p_type == PT_DYNAMIC) read_dynamic(elf, file, segments, segment);
  }
  return elf;
}

bool defines_symbol(const std::string& path, const std::string& symbol) {
  const Reader file(path);
  const std::optional<Header> header = read_header(file);
  if (!header) return false;
  const std::vector<SectionHeader> sections =
      file.table<SectionHeader>(header->e_shoff, header->e_shnum);
  for (const SectionHeader& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const SectionHeader& names = sections[section.sh_link];
    const std::string strings = file.bytes(names.sh_offset, names.sh_size);
    for (const Symbol& each :
         file.table<Symbol>(section.sh_offset, section.sh_size / sizeof(Symbol))) {
      if (each.st_shndx != SHN_UNDEF && text_at(strings, each.st_name) == symbol) return true;
    }
  }
  return false;
}

}  // namespace understudy::command
