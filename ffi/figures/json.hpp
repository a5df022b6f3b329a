// A line of JSON, written piece by piece.
#ifndef FIGURES_JSON_HPP
#define FIGURES_JSON_HPP

#include <cmath>
#include <cstdio>
#include <string>
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

 private:
  Json &raw(const std::string &key, const std::string &value) {
    text_ += (text_.empty() ? "" : ",") + quoted(key) + ":" + value;
    return *this;
  }
  static std::string number_of(double number) {
    if (!std::isfinite(number)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.7g", number);
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

#endif
