// SPDX-License-Identifier: Apache-2.0
//
// understudy which: which libascendcl.so a program would load, and why. For a Python program, also
// where the module acl comes from.
#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/installation.h"
#include "tools/json_output.h"
#include "tools/load_plan.h"
#include "tools/program.h"
#include "tools/python_module.h"
#include "tools/shebang.h"

namespace understudy::command {

namespace {

constexpr const char* kLibraries[] = {"libascendcl.so", "libacl_rt.so"};
// Exported by our library alone.
constexpr const char* kOwnSymbol = "aclUnderstudyRuntimeDirectory";
constexpr const char* kEverySymbol = "aclInit";

// One of the libraries, as a program gets it.
struct LibraryAnswer {
  std::string name;
  std::string needed_by;  // empty: it is preloaded, or a program opens it by its name
  std::optional<Found> found;
  bool is_ours = false;

  bool is_preloaded() const { return found && found->by == FoundBy::kPreload; }
};

struct Answer {
  std::string program;  // empty: any
  std::string kind;
  std::optional<PythonAnswer> python;
  std::vector<LibraryAnswer> libraries;
  std::vector<std::string> remarks;
};

std::string reason(const Found& found) {
  switch (found.by) {
    case FoundBy::kPath:
      return "that path is asked for";
    case FoundBy::kPreload:
      return "LD_PRELOAD names it";
    case FoundBy::kRpath:
      return "the RPATH of " + found.of + " has " + found.folder +
             ", and comes before LD_LIBRARY_PATH";
    case FoundBy::kLibraryPath:
      return "LD_LIBRARY_PATH has " + found.folder;
    case FoundBy::kRunpath:
      return "the RUNPATH of " + found.of + " has " + found.folder +
             ", and LD_LIBRARY_PATH has no such library";
    case FoundBy::kCache:
      return "/etc/ld.so.cache names it, and no variable another one";
    case FoundBy::kDefault:
      return "it is in a default folder, and no variable names another one";
  }
  return {};
}

LibraryAnswer answer_for(const LoadPlan& plan, const std::string& name) {
  LibraryAnswer answer{name, "", {}, false};
  if (const LoadPlan::Object* const object = plan.find(name)) {
    answer.found = object->found;
    if (object->needed_by != LoadPlan::kNone && object->found.by != FoundBy::kPreload) {
      answer.needed_by = plan.objects()[object->needed_by].file.path;
    }
  } else {
    for (const LoadPlan::Missing& missing : plan.missing()) {
      if (missing.name == name) answer.needed_by = plan.objects()[missing.needed_by].file.path;
    }
    answer.found = plan.search(name);
  }
  if (answer.found) answer.is_ours = defines_symbol(answer.found->path, kOwnSymbol);
  return answer;
}

// What leads a program to our library that gets another one, or none.
std::optional<std::string> advice(const LibraryAnswer& library) {
  if (library.is_ours) return std::nullopt;
  if (!library.found || library.found->by != FoundBy::kRpath) {
    return "`understudy run` and `eval \"$(understudy env)\"` lead to Understudy's library";
  }
  return "an RPATH is stronger than any variable but LD_PRELOAD: `LD_PRELOAD=" +
         Installation::of_this_command().library() + "` or `patchelf --remove-rpath " +
         library.found->of + "` lead past it";
}

void add_remarks(Answer& answer, const LoadPlan& plan) {
  if (plan.objects().empty()) return;
  const ElfFile& program = plan.objects().front().file;
  if (!program.is_dynamic) {
    answer.remarks.push_back("it is linked statically, and loads no library by itself");
  } else if (program.interpreter.find("/ld-linux") == std::string::npos) {
    answer.remarks.push_back("its loader is " + program.interpreter +
                             ", which may search in another order");
  }
  if (!plan.is_trusting()) {
    answer.remarks.push_back(
        "it gets another user's rights: LD_LIBRARY_PATH and LD_PRELOAD do not "
        "count");
  }
  for (const LoadPlan::Object& object : plan.objects()) {
    if (object.found.by == FoundBy::kPreload && defines_symbol(object.file.path, kEverySymbol)) {
      answer.remarks.push_back(object.file.path + " is preloaded and defines " + kEverySymbol +
                               ": its functions come before those of the libraries");
    }
  }
}

void add_libraries(Answer& answer, const LoadPlan& plan) {
  for (const char* const name : kLibraries) answer.libraries.push_back(answer_for(plan, name));
  if (const auto text = advice(answer.libraries.front())) answer.remarks.push_back(*text);
}

Answer look_without_program() {
  Answer answer;
  answer.kind = "any program";
  add_libraries(answer, LoadPlan());
  return answer;
}

// From scripts to their interpreters, until one is a program, or answers as a Python: that may be a
// script which finds the right one. `words` gets the last of them in front.
void follow_interpreters(Answer& answer, std::vector<std::string>& words) {
  const auto is_answering_python = [&] {
    if (is_python(words.front())) answer.python = find_acl_module(words);
    return answer.python.has_value();
  };
  std::string script;
  for (int i = 0; i < kMostInterpreters && !is_answering_python(); ++i) {
    const std::string file = words.front();
    if (!follow_shebang(words)) break;
    script = file;
  }
  const bool is_script = !script.empty() || follow_shebang(words);
  answer.kind = is_script ? "script of " + words.front() : "program";
  if (answer.python || script.empty() || !is_shell(words.front())) return;
  answer.remarks.push_back(script +
                           " is a shell script; which programs it executes cannot be seen, " +
                           "and the answer is only that of " + words.front());
}

// Nothing if there is no such program.
std::optional<Answer> look_at(const std::vector<std::string>& program) {
  const std::optional<std::string> file = find_program(program.front());
  if (!file) return std::nullopt;
  Answer answer;
  answer.program = *file;
  std::vector<std::string> words = program;
  words.front() = *file;
  follow_interpreters(answer, words);
  const std::string elf = answer.python ? answer.python->interpreter : words.front();
  const std::optional<ElfFile> read = ElfFile::read(elf);
  LoadPlan plan = read ? LoadPlan(*read) : LoadPlan();
  if (!read) answer.remarks.push_back("it is no program of this machine that could be read");
  if (answer.python) plan.open(answer.python->module);
  add_remarks(answer, plan);
  add_libraries(answer, plan);
  return answer;
}

// At which moment a program loads it.
std::string moment(const Answer& answer, const LibraryAnswer& library) {
  if (library.is_preloaded()) return "at the start; LD_PRELOAD names it";
  if (library.needed_by.empty()) return "a program opens it by its name (dlopen)";
  const bool is_imported = answer.python && library.needed_by == answer.python->module;
  return (is_imported ? "at import acl; " : "at the start; ") + library.needed_by + " needs it";
}

void print(const Answer& answer, const LibraryAnswer& library) {
  printf("%s: %s\n", library.name.c_str(),
         library.found ? library.found->path.c_str() : "not found");
  if (library.found) {
    printf("  whose: %s\n", library.is_ours ? "Understudy's" : "not Understudy's");
    printf("  why: %s\n", reason(*library.found).c_str());
  } else {
    puts("  why: it is in no RPATH, LD_LIBRARY_PATH, RUNPATH, /etc/ld.so.cache or default folder");
  }
  printf("  when: %s\n", moment(answer, library).c_str());
}

void print(const Answer& answer) {
  if (!answer.program.empty()) printf("%s: %s\n", answer.program.c_str(), answer.kind.c_str());
  if (answer.python) {
    printf("import acl: %s\n",
           answer.python->module.empty() ? "not found" : answer.python->module.c_str());
  }
  for (const LibraryAnswer& library : answer.libraries) print(answer, library);
  for (const std::string& remark : answer.remarks) printf("note: %s\n", remark.c_str());
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json as_json(const Answer& answer) {
  Json facts = {{"program", text_or_null(answer.program)}, {"kind", answer.kind}};
  if (answer.python) {
    facts["python"] = {{"interpreter", answer.python->interpreter},
                       {"acl", text_or_null(answer.python->module)}};
  }
  facts["libraries"] = Json::array();
  for (const LibraryAnswer& library : answer.libraries) {
    Json each = {{"name", library.name}, {"needed_by", text_or_null(library.needed_by)}};
    each["path"] = library.found ? Json(library.found->path) : Json();
    each["is_understudy"] = library.is_ours;
    each["why"] = library.found ? Json(reason(*library.found)) : Json();
    facts["libraries"].push_back(each);
  }
  facts["notes"] = answer.remarks;
  return facts;
}

int run(bool json, const std::vector<std::string>& program) {
  const std::optional<Answer> answer =
      program.empty() ? std::optional(look_without_program()) : look_at(program);
  if (!answer) {
    fprintf(stderr, "understudy which: %s: not found\n", program.front().c_str());
    return kNotFound;
  }
  if (json) {
    print_json(as_json(*answer));
  } else {
    print(*answer);
  }
  return answer->libraries.front().found ? kDone : kFailed;
}

}  // namespace

ProgramAction declare_which(OptionSet& options) {
  const auto json = std::make_shared<bool>(false);
  options.add_flag("--json", *json, "print JSON");
  return [json](const std::vector<std::string>& program) { return run(*json, program); };
}

}  // namespace understudy::command
