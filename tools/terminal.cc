// SPDX-License-Identifier: Apache-2.0
#include "tools/terminal.h"

#include <curses.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace understudy::command {

namespace {

constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// What signal handlers need: nothing but these and system calls.
volatile sig_atomic_t request = 0;
termios before_screen;
char leave_screen[128];  // what makes the terminal as it was

void add_capability(const char* name) {
  const char* const text = tigetstr(name);
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return;
  const size_t used = strlen(leave_screen);
  snprintf(leave_screen + used, sizeof leave_screen - used, "%s", text);
}

void on_request(int signal) { request = signal; }

void on_crash(int signal) {
  const ssize_t written = write(STDOUT_FILENO, leave_screen, strlen(leave_screen));
  (void)written;
  tcsetattr(STDOUT_FILENO, TCSANOW, &before_screen);
  raise(signal);  // with its default action: SA_RESETHAND
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

void install_handlers() {
  leave_screen[0] = '\0';
  for (const char* capability : {"sgr0", "cnorm", "rmkx", "rmcup"}) add_capability(capability);
  for (const int signal : kCrashes) {
    handle(signal, on_crash, static_cast<int>(SA_RESETHAND | SA_NODEFER));
  }
  for (const int signal : kRequests) handle(signal, on_request, 0);
}

attr_t attributes_of(LineStyle style) {
  switch (style) {
    case LineStyle::kPlain:
      break;
    case LineStyle::kTitle:
      return A_BOLD;
    case LineStyle::kSelected:
      return A_REVERSE;
    case LineStyle::kFaint:
      return A_DIM;
  }
  return A_NORMAL;
}

}  // namespace

Result<Terminal> Terminal::open() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 ||
      tcgetattr(STDOUT_FILENO, &before_screen) != 0) {
    return Error::format(ErrorCode::kNotSupported,
                         "top needs a terminal; understudy info shows the same figures once");
  }
  setlocale(LC_ALL, "");
  // The size that the terminal has: COLUMNS and LINES are often those of another moment.
  unsetenv("COLUMNS");
  unsetenv("LINES");
  if (newterm(nullptr, stdout, stdin) == nullptr) {
    const char* const name = getenv("TERM");
    return Error::format(ErrorCode::kNotSupported,
                         "top cannot use a terminal of type %s; set TERM to one that is installed",
                         name == nullptr ? "(none)" : name);
  }
  install_handlers();
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  if (has_colors()) {
    start_color();
    use_default_colors();
    init_pair(1, COLOR_GREEN, -1);
  }
  return Terminal();
}

Terminal::~Terminal() {
  if (is_open_) endwin();
}

ScreenSize Terminal::size() const {
  return {static_cast<size_t>(std::max(LINES, 1)), static_cast<size_t>(std::max(COLS, 1))};
}

void Terminal::draw(const std::vector<ScreenLine>& lines) {
  erase();
  for (size_t row = 0; row < lines.size(); ++row) {
    const ScreenLine& line = lines[row];
    const int y = static_cast<int>(row);
    attrset(static_cast<int>(attributes_of(line.style)));
    mvaddnstr(y, 0, line.text.c_str(), static_cast<int>(line.text.size()));
    attrset(A_NORMAL);
    if (line.bar_end > line.bar_begin && line.bar_end <= line.text.size()) {
      mvchgat(y, static_cast<int>(line.bar_begin), static_cast<int>(line.bar_end - line.bar_begin),
              A_BOLD, 1, nullptr);
    }
  }
  refresh();
}

Key Terminal::read_key(int milliseconds) {
  timeout(milliseconds);
  switch (getch()) {
    case ERR:
      return Key::kNone;
    case 'q':
    case 'Q':
      return Key::kQuit;
    case 'h':
    case 'H':
    case '?':
      return Key::kHelp;
    case '\t':
    case KEY_DOWN:
    case KEY_RIGHT:
      return Key::kNext;
    case KEY_BTAB:
    case KEY_UP:
    case KEY_LEFT:
      return Key::kPrevious;
    default:  // also a new size, which asks for nothing but to be drawn
      return Key::kOther;
  }
}

std::optional<int> Terminal::ended_by() {
  return request == 0 ? std::nullopt : std::optional<int>(request);
}

}  // namespace understudy::command
