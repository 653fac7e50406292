// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/edit_distance.h"
#include "tools/command.h"

namespace understudy::command {

namespace {

// "; did you mean --json?" if one of the words is likely meant, else the other text.
std::string suggestion(std::string wrong, const std::vector<std::string>& right,
                       const char* otherwise = "; --help lists them") {
  std::transform(wrong.begin(), wrong.end(), wrong.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  const std::string dashes = wrong.substr(0, wrong.find_first_not_of('-'));
  std::vector<std::string_view> words;  // without dashes, which would hide how far a short word is
  for (const std::string& each : right) {
    const std::string_view word = each;
    words.push_back(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  }
  const std::optional<std::string_view> likely =
      likely_word(std::string_view(wrong).substr(dashes.size()), words);
  if (!likely) return otherwise;
  const auto found = std::find(words.begin(), words.end(), *likely) - words.begin();
  return "; did you mean " + right[static_cast<size_t>(found)] + "?";
}

// What ends the reading with a sentence of ours.
[[noreturn]] void refuse(const std::string& sentence) {
  throw CLI::ValidationError(sentence, CLI::ExitCodes::ValidationError);
}

[[noreturn]] void refuse_value(const std::string& name, const std::string& value,
                               const std::string& allowed) {
  refuse(name + " has the value \"" + value + "\"; allowed: " + allowed);
}

std::string text_of(unsigned number) { return std::to_string(number); }
std::string text_of(double number) {
  char text[32];
  snprintf(text, sizeof text, "%g", number);
  return text;
}

template <typename Number>
Number read_number(const std::string& name, const std::string& text, Bounds<Number> bounds) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data(), end, value);
  // Not a number (NaN) is within no bounds.
  if (wrong != std::errc() || rest != end || !(value >= bounds.least && value <= bounds.most)) {
    refuse_value(name, text, text_of(bounds.least) + " to " + text_of(bounds.most));
  }
  return value;
}

// Calls `read` with the one value of an option.
CLI::callback_t one_value(std::function<void(const std::string&)> read) {
  return [read = std::move(read)](const std::vector<std::string>& words) {
    read(words.front());
    return true;
  };
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const each : app.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

// The first argument that CLI11 could not make use of, if there is one.
std::optional<std::string> unknown_argument(const CLI::App& app,
                                            const std::vector<std::string>& arguments) {
  const std::vector<std::string> unknown = app.remaining(true);
  for (const std::string& each : arguments) {
    if (std::find(unknown.begin(), unknown.end(), each) != unknown.end()) return each;
  }
  return std::nullopt;
}

// The option whose name a message of CLI11 begins with, with or without dashes.
const CLI::Option* option_of(const CLI::App& app, std::string_view message) {
  const std::string_view first_word = message.substr(0, message.find_first_of(" :"));
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_name() == first_word) return option;
    for (const std::string& name : option->get_lnames()) {
      if (name == first_word) return option;
    }
  }
  return nullptr;
}

std::string sentence_on(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ValidationError)) {
    return error.what();  // a sentence of ours
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    const std::string_view message = error.what();  // "FILE is required"
    return std::string(message.substr(0, message.find(' '))) + " is missing; --help explains it";
  }
  const CLI::Option* const option = option_of(app, error.what());
  if (option == nullptr) return "the arguments make no sense; --help explains them";
  const std::string name = option->get_name();
  if (option->count() > 1 && option->get_items_expected_max() <= 1) {
    return name + " is given more than once";
  }
  return name + (option->get_items_expected_max() > 0 ? " needs a value" : " takes no value");
}

}  // namespace

void OptionSet::add_flag(const char* name, bool& chosen, const char* help) {
  app_->add_flag(name, chosen, help)->disable_flag_override();
}

void OptionSet::add_flag(const char* name, std::string& chosen, const std::string& help) {
  app_->add_flag(name, chosen, help);
}

void OptionSet::add(const char* name, std::string& chosen, const char* help, const char* type) {
  app_->add_option(name, chosen, help)->type_name(type);
}

void OptionSet::add(const char* name, std::string& chosen, const char* help, const char* type,
                    const std::vector<std::string>& words) {
  auto read = [name, words, &chosen](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      refuse_value(name, word, CLI::detail::join(words, ", ") + suggestion(word, words, ""));
    }
    chosen = word;
  };
  app_->add_option(name, one_value(std::move(read)), help)->type_name(type);
}

void OptionSet::add(const char* name, std::vector<std::string>& chosen, const char* help,
                    const char* type) {
  app_->add_option(name, chosen, help)->type_name(type);
}

void OptionSet::add(const char* name, std::optional<unsigned>& chosen, const char* help,
                    const char* type, Bounds<unsigned> bounds) {
  auto read = [=, &chosen](const std::string& text) { chosen = read_number(name, text, bounds); };
  app_->add_option(name, one_value(std::move(read)), help)->type_name(type);
}

void OptionSet::add(const char* name, unsigned& chosen, const char* help, const char* type,
                    Bounds<unsigned> bounds) {
  auto read = [=, &chosen](const std::string& text) { chosen = read_number(name, text, bounds); };
  app_->add_option(name, one_value(std::move(read)), help)->type_name(type);
}

void OptionSet::add(const char* name, double& chosen, const char* help, const char* type,
                    Bounds<double> bounds) {
  auto read = [=, &chosen](const std::string& text) { chosen = read_number(name, text, bounds); };
  app_->add_option(name, one_value(std::move(read)), help)->type_name(type);
}

void OptionSet::add(const char* name, std::optional<double>& chosen, const char* help,
                    const char* type, Bounds<double> bounds, double unsaid) {
  auto read = [=, &chosen](const std::string& text) {
    chosen = text.empty() ? unsaid : read_number(name, text, bounds);
  };
  app_->add_option(name, one_value(std::move(read)), help)->expected(0, 1)->type_name(type);
}

void OptionSet::add_to_group(const char* group, const std::string& name, const std::string& help,
                             std::function<void(const std::string&)> choose) {
  app_->add_option_function<std::string>(name, std::move(choose), help)
      ->type_name("VALUE")
      ->group(group);
}

void OptionSet::add_repeated_to_group(const char* group, const std::string& name,
                                      const std::string& help,
                                      std::function<void(const std::string&)> choose) {
  const auto choose_each = [choose = std::move(choose)](const std::vector<std::string>& values) {
    for (const std::string& value : values) choose(value);
  };
  app_->add_option_function<std::vector<std::string>>(name, choose_each, help)
      ->allow_extra_args(false)
      ->type_name("VALUE")
      ->group(group);
}

void OptionSet::add_word(const char* name, std::string& chosen, const char* help) {
  app_->add_option(name, chosen, help)->required()->type_name("");
}

void OptionSet::add_optional_word(const char* name, std::string& chosen, const char* help) {
  app_->add_option(name, chosen, help)->type_name("");
}

void OptionSet::add_rest(const char* name, const char* help, const char* type) {
  const std::string text = help;  // a text that is not const would be what is read
  app_->add_option(name, text)->type_name(type);
}

void OptionSet::set_footer(const char* text) { app_->footer(text); }

bool OptionSet::takes_value(const std::string& name) const {
  const CLI::Option* const option = std::as_const(*app_).get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0;
}

CommandLine::CommandLine(const char* name, const char* description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

void CommandLine::add_version(const char* names, const char* text) {
  app_->set_version_flag(names, text);
}

OptionSet CommandLine::add_subcommand(const char* name, const char* summary) {
  return OptionSet(*app_->add_subcommand(name, summary));
}

std::optional<int> CommandLine::read(std::vector<std::string> arguments) {
  const std::vector<std::string> subcommands = subcommand_names(*app_);
  const std::string first = arguments.empty() ? "" : arguments.front();
  const bool has_subcommand =
      std::find(subcommands.begin(), subcommands.end(), first) != subcommands.end();
  const CLI::App& app = has_subcommand ? *app_->get_subcommand(first) : *app_;
  const auto complain = [&](const std::string& sentence) {
    fprintf(stderr, "%s%s: %s\n", app_->get_name().c_str(),
            has_subcommand ? (" " + first).c_str() : "", sentence.c_str());
    return kWrongUsage;
  };
  if (!has_subcommand && !arguments.empty() && !first.starts_with('-')) {
    return complain("there is no subcommand " + first + suggestion(first, subcommands));
  }
  try {
    // CLI11 wants them in reverse order.
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::nullopt;
  } catch (const CLI::Success& answered) {  // --help, --version
    return app_->exit(answered);
  } catch (const CLI::ParseError& error) {
    const std::optional<std::string> unknown = unknown_argument(*app_, arguments);
    if (!unknown && !has_subcommand) return complain("a subcommand is missing; --help lists them");
    if (!unknown) return complain(sentence_on(app, error));
    if (!unknown->starts_with('-')) return complain("there is no use for the argument " + *unknown);
    const std::string name = unknown->substr(0, unknown->find('='));
    return complain("there is no option " + name + suggestion(name, option_names(app)));
  }
}

}  // namespace understudy::command
