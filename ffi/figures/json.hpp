// Lines of JSON, written piece by piece.
#ifndef FIGURES_JSON_HPP
#define FIGURES_JSON_HPP

#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

class Json {
 public:
  Json &put(const std::string &key, const Json &object) { return raw(key, object.line()); }
  Json &put(const std::string &key, const std::string &text) { return raw(key, quoted(text)); }
  Json &put(const std::string &key, const char *text) { return put(key, std::string(text)); }
  Json &put(const std::string &key, bool is) { return raw(key, is ? "true" : "false"); }
  Json &put(const std::string &key, double number) { return raw(key, number_of(number)); }
  Json &put(const std::string &key, int number) { return raw(key, std::to_string(number)); }
  Json &put(const std::string &key, const std::vector<double> &numbers) {
    std::string array;
    for (const double number : numbers) array += (array.empty() ? "" : ",") + number_of(number);
    return raw(key, "[" + array + "]");
  }
  // What is not known is negative, and written as null.
  Json &put_known(const std::string &key, double number, double factor = 1) {
    return number < 0 ? raw(key, "null") : put(key, number * factor);
  }
  std::string line() const { return "{" + text_ + "}"; }
  // The same without its braces.
  const std::string &members() const { return text_; }

 private:
  Json &raw(const std::string &key, const std::string &value) {
    text_ += (text_.empty() ? "" : ",") + quoted(key) + ":" + value;
    return *this;
  }
  static std::string number_of(double number) {
    if (!std::isfinite(number)) return "null";
    const bool is_whole = std::abs(number) < 1e15 && number == std::floor(number);
    char text[32];
    std::snprintf(text, sizeof text, is_whole ? "%.0f" : "%.7g", number);
    return text;
  }
  static std::string quoted(const std::string &text) {
    std::string made = "\"";
    for (const char letter : text) {
      if (letter == '"' || letter == '\\') made += '\\';
      if (letter == '\n') made += "\\n";
      else if (static_cast<unsigned char>(letter) >= ' ') made += letter;
    }
    return made + '"';
  }

  std::string text_;
};

// The line of a matrix, whose members become known one after the other. Whatever is known can be
// printed at any time, by another thread, too; it is printed once.
class Line {
 public:
  // Takes the place of what has the same key.
  template <typename Value>
  void put(const std::string &key, const Value &value) {
    const std::string text = Json().put(key, value).members();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto &member : members_)
      if (member.first == key) {
        member.second = text;
        return;
      }
    members_.emplace_back(key, text);
  }
  void print() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_printed_) return;
    is_printed_ = true;
    std::string line;
    for (const auto &member : members_) line += (line.empty() ? "" : ",") + member.second;
    std::printf("{%s}\n", line.c_str());
    std::fflush(stdout);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> members_;
  bool is_printed_ = false;
};

#endif
