// Matrices on the host: read, transposed, made positive definite, and multiplied as a reference.
#ifndef FIGURES_MATRIX_HPP
#define FIGURES_MATRIX_HPP

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// What went wrong, in one line. It ends a part of the program: what else there is goes on.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const std::string &text) { throw Failure(text); }

// Numbers that are the same in every run.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed) {}
  // At least `low`, below `high`.
  double between(double low, double high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double(state_ >> 40) / double(1u << 24));
  }
  std::vector<double> vector(std::size_t length, double low, double high) {
    std::vector<double> made(length);
    for (double &number : made) number = between(low, high);
    return made;
  }

 private:
  std::uint64_t state_;
};

struct Entry {
  std::int32_t row, column;
  double value;
};

// CSR, with columns that increase within each row.
struct Matrix {
  std::int32_t rows = 0, cols = 0;
  std::vector<std::int32_t> offsets, columns;
  std::vector<double> values;

  std::int64_t nnz() const { return std::int64_t(values.size()); }

  // Entries in any order; those at the same place are added up.
  static Matrix of(std::int32_t rows, std::int32_t cols, const std::vector<Entry> &entries) {
    const Matrix unsorted = by_rows(rows, cols, entries.size(), [&](const auto &take) {
      for (const Entry &entry : entries) take(entry.row, entry.column, entry.value);
    });
    // Transposing sorts.
    return unsorted.transposed().transposed().merged();
  }

  Matrix transposed() const {
    return by_rows(cols, rows, values.size(), [&](const auto &take) {
      for (std::int32_t row = 0; row < rows; ++row)
        for (std::int32_t k = offsets[row]; k < offsets[row + 1]; ++k) take(columns[k], row, values[k]);
    });
  }

 private:
  // So many entries, which `visit` gives twice, by their rows; those of a row in the order given.
  template <typename Visit>
  static Matrix by_rows(std::int32_t rows, std::int32_t cols, std::size_t count, const Visit &visit) {
    Matrix made;
    made.rows = rows;
    made.cols = cols;
    made.offsets.assign(std::size_t(rows) + 1, 0);
    made.columns.resize(count);
    made.values.resize(count);
    visit([&](std::int32_t row, std::int32_t, double) { ++made.offsets[std::size_t(row) + 1]; });
    for (std::int32_t row = 0; row < rows; ++row) made.offsets[row + 1] += made.offsets[row];
    std::vector<std::int32_t> next(made.offsets.begin(), made.offsets.end() - 1);
    visit([&](std::int32_t row, std::int32_t column, double value) {
      const std::int32_t at = next[row]++;
      made.columns[at] = column;
      made.values[at] = value;
    });
    return made;
  }

  // Entries at the same place, which are neighbours, as one.
  Matrix merged() && {
    std::int32_t kept = 0, begin = 0;
    for (std::int32_t row = 0; row < rows; ++row) {
      const std::int32_t first = kept, end = offsets[row + 1];
      for (std::int32_t k = begin; k < end; ++k) {
        if (kept > first && columns[kept - 1] == columns[k]) {
          values[kept - 1] += values[k];
          continue;
        }
        columns[kept] = columns[k];
        values[kept++] = values[k];
      }
      begin = end;
      offsets[row + 1] = kept;
    }
    columns.resize(kept);
    values.resize(kept);
    return std::move(*this);
  }
};

// A Matrix Market file in coordinates: general, symmetric or skew-symmetric, of real numbers,
// integers, or a pattern, which gets random values between 0.5 and 1.5.
inline Matrix read_market(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path + ": cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const char *at = text.c_str();
  const auto wrong = [&](const std::string &what) {
    fail(path + ":" + std::to_string(1 + std::count(text.c_str(), at, '\n')) + ": " + what);
  };
  const auto next_line = [&] {
    while (*at && *at != '\n') ++at;
    if (*at) ++at;
  };
  std::string header = text.substr(0, text.find('\n'));
  for (char &letter : header) letter = char(std::tolower(static_cast<unsigned char>(letter)));
  std::string banner, object, format, field, symmetry;
  std::istringstream(header) >> banner >> object >> format >> field >> symmetry;
  if (banner != "%%matrixmarket" || object != "matrix" || format != "coordinate")
    wrong("expected %%MatrixMarket matrix coordinate");
  const bool is_pattern = field == "pattern";
  if (!is_pattern && field != "real" && field != "integer" && field != "double")
    wrong("numbers are " + field + ": expected real, integer or pattern");
  const bool is_skew = symmetry == "skew-symmetric";
  const bool is_mirrored = symmetry == "symmetric" || is_skew;
  if (!is_mirrored && symmetry != "general")
    wrong("it is " + symmetry + ": expected general, symmetric or skew-symmetric");
  const auto skip = [&] {
    while (*at && (*at == '%' || std::isspace(static_cast<unsigned char>(*at)))) {
      if (*at == '%') next_line();
      else ++at;
    }
  };
  const auto integer = [&](long long low, long long high) {
    char *end = nullptr;
    const long long number = std::strtoll(at, &end, 10);
    if (end == at || number < low || number > high)
      wrong("expected an integer from " + std::to_string(low) + " to " + std::to_string(high));
    at = end;
    return number;
  };
  constexpr long long MOST = INT32_MAX - 1;
  skip();
  const auto rows = std::int32_t(integer(0, MOST)), cols = std::int32_t(integer(0, MOST));
  const long long stored = integer(0, MOST);
  std::vector<Entry> entries;
  entries.reserve(std::size_t(stored) * (is_mirrored ? 2 : 1));
  Random random(1);
  for (long long i = 0; i < stored; ++i) {
    skip();
    const auto row = std::int32_t(integer(1, rows) - 1), column = std::int32_t(integer(1, cols) - 1);
    double value = 0;
    if (is_pattern) {
      value = random.between(0.5, 1.5);
    } else {
      char *end = nullptr;
      value = std::strtod(at, &end);
      if (end == at || !std::isfinite(value)) wrong("expected a finite number");
      at = end;
    }
    entries.push_back({row, column, value});
    if (is_mirrored && row != column) entries.push_back({column, row, is_skew ? -value : value});
  }
  if (entries.size() > std::size_t(MOST)) fail(path + ": it has more than 2^31 - 2 entries");
  return Matrix::of(rows, cols, entries);
}

// Symmetric with a positive diagonal that outweighs the rest of each row.
inline bool is_dominant(const Matrix &a, const Matrix &transposed) {
  if (a.rows != a.cols || a.columns != transposed.columns || a.values != transposed.values)
    return false;
  for (std::int32_t row = 0; row < a.rows; ++row) {
    double excess = 0;
    for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k)
      excess += a.columns[k] == row ? a.values[k] : -std::abs(a.values[k]);
    if (!(excess > 0)) return false;
  }
  return true;
}

// A symmetric positive definite matrix with the pattern of A + A' and of a diagonal: the Laplacian of
// the graph with weights |A| + |A'|, scaled to a diagonal of ones, plus 1/1000 of the identity. Its
// condition number is at most 2,001, so CG has something to do for some hundred iterations.
inline Matrix positive_definite(const Matrix &a) {
  std::vector<Entry> entries;
  entries.reserve(2 * a.values.size() + std::size_t(a.rows));
  for (std::int32_t row = 0; row < a.rows; ++row) {
    entries.push_back({row, row, 0});
    for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
      if (a.columns[k] == row) continue;
      entries.push_back({row, a.columns[k], -std::abs(a.values[k])});
      entries.push_back({a.columns[k], row, -std::abs(a.values[k])});
    }
  }
  Matrix made = Matrix::of(a.rows, a.cols, entries);
  std::vector<double> scale(std::size_t(a.rows), 1);
  for (std::int32_t row = 0; row < a.rows; ++row) {
    double sum = 0;
    for (std::int32_t k = made.offsets[row]; k < made.offsets[row + 1]; ++k) sum -= made.values[k];
    if (sum > 0) scale[row] = 1 / std::sqrt(sum);
  }
  for (std::int32_t row = 0; row < a.rows; ++row)
    for (std::int32_t k = made.offsets[row]; k < made.offsets[row + 1]; ++k) {
      if (made.columns[k] == row) made.values[k] = 1.001;
      else made.values[k] *= scale[row] * scale[made.columns[k]];
    }
  return made;
}

// A x in double precision, of numbers rounded to T, and for each row the sum of |a| |x|, which
// rounding errors are measured by.
template <typename T>
struct Reference {
  std::vector<double> sums, magnitudes;

  Reference(const Matrix &a, const std::vector<double> &x)
      : sums(std::size_t(a.rows)), magnitudes(std::size_t(a.rows)) {
    for (std::int32_t row = 0; row < a.rows; ++row)
      for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
        const double product = double(T(a.values[k])) * double(T(x[a.columns[k]]));
        sums[row] += product;
        magnitudes[row] += std::abs(product);
      }
  }

  // Fails where a result is wrong.
  void check(const std::vector<T> &found, const std::string &what) const {
    const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;
    for (std::size_t row = 0; row < sums.size(); ++row)
      if (!(std::abs(double(found[row]) - sums[row]) <= tolerance * magnitudes[row] + 1e-300))
        fail(what + ": row " + std::to_string(row) + " is " + std::to_string(double(found[row])) +
             ", not " + std::to_string(sums[row]));
  }
};

#endif
