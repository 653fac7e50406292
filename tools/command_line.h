// SPDX-License-Identifier: Apache-2.0
//
// Command lines with subcommands and options, read by CLI11. Only command_line.cc sees CLI11, which
// takes ten seconds to compile wherever it is included. What is wrong with a line is one sentence
// of ours. What options are read into must live until the line is read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace understudy::command {

template <typename Number>
struct Bounds {
  Number least;
  Number most;
};

// The options of one subcommand. `type` is what the help text shows for the value.
class OptionSet {
 public:
  explicit OptionSet(CLI::App& app) : app_(&app) {}

  void add_flag(const char* name, bool& chosen, const char* help);
  // May have a value behind "="; "true" where it has none.
  void add_flag(const char* name, std::string& chosen, const std::string& help);
  void add(const char* name, std::string& chosen, const char* help, const char* type);
  // One of these words.
  void add(const char* name, std::string& chosen, const char* help, const char* type,
           const std::vector<std::string>& words);
  // Several words.
  void add(const char* name, std::vector<std::string>& chosen, const char* help, const char* type);
  void add(const char* name, std::optional<unsigned>& chosen, const char* help, const char* type,
           Bounds<unsigned> bounds);
  void add(const char* name, unsigned& chosen, const char* help, const char* type,
           Bounds<unsigned> bounds);
  void add(const char* name, double& chosen, const char* help, const char* type,
           Bounds<double> bounds);
  // May do without a value: then it is the one of `unsaid`.
  void add(const char* name, std::optional<double>& chosen, const char* help, const char* type,
           Bounds<double> bounds, double unsaid);
  // Calls `choose` with the value. Listed under a heading of their own.
  void add_to_group(const char* group, const std::string& name, const std::string& help,
                    std::function<void(const std::string&)> choose);
  // The same for an option that may be given several times.
  void add_repeated_to_group(const char* group, const std::string& name, const std::string& help,
                             std::function<void(const std::string&)> choose);
  // A word without an option's name, which has to be there; several are read in this order.
  void add_word(const char* name, std::string& chosen, const char* help);
  // The same, and need not be there.
  void add_optional_word(const char* name, std::string& chosen, const char* help);
  // A line of help on what follows the options.
  void add_rest(const char* name, const char* help, const char* type);
  void set_footer(const char* text);

  // Whether the word behind an option is its value.
  bool takes_value(const std::string& name) const;

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const char* name, const char* description);
  CommandLine(CommandLine&&) = delete;
  ~CommandLine();

  void add_version(const char* names, const char* text);
  OptionSet add_subcommand(const char* name, const char* summary);
  // The words behind the program's name. Nothing if they were read; else help or a complaint was
  // printed, and this is the exit status.
  std::optional<int> read(std::vector<std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace understudy::command
