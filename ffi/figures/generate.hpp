// Matrices that are generated, by their names.
#ifndef FIGURES_GENERATE_HPP
#define FIGURES_GENERATE_HPP

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "matrix.hpp"

constexpr const char *GENERATED = "stencil5:SIDE, stencil27:SIDE, rmat:SCALE, lp:ROWS";

// The five-point Laplacian on a square.
inline Matrix stencil5(std::int32_t side) {
  std::vector<Entry> entries;
  for (std::int32_t row = 0; row < side * side; ++row) {
    const std::int32_t i = row / side, j = row % side;
    entries.push_back({row, row, 4});
    if (i > 0) entries.push_back({row, row - side, -1});
    if (j > 0) entries.push_back({row, row - 1, -1});
    if (j + 1 < side) entries.push_back({row, row + 1, -1});
    if (i + 1 < side) entries.push_back({row, row + side, -1});
  }
  return Matrix::of(side * side, side * side, entries);
}

// All neighbours in a cube, with random weights that are the same in both directions.
inline Matrix stencil27(std::int32_t side) {
  std::vector<Entry> entries;
  Random random(11);
  const auto inside = [side](std::int32_t at) { return at >= 0 && at < side; };
  for (std::int32_t i = 0; i < side; ++i)
    for (std::int32_t j = 0; j < side; ++j)
      for (std::int32_t k = 0; k < side; ++k) {
        const std::int32_t row = (i * side + j) * side + k;
        entries.push_back({row, row, 28});
        for (std::int32_t step = 14; step < 27; ++step) {
          const std::int32_t u = i + step / 9 - 1, v = j + step / 3 % 3 - 1, w = k + step % 3 - 1;
          if (!inside(u) || !inside(v) || !inside(w)) continue;
          const std::int32_t other = (u * side + v) * side + w;
          const double value = random.between(-1, -0.5);
          entries.push_back({row, other, value});
          entries.push_back({other, row, value});
        }
      }
  return Matrix::of(side * side * side, side * side * side, entries);
}

// R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004) with Graph500's shares, 2^scale nodes and 8 edges for
// each.
inline Matrix rmat(std::int32_t scale) {
  const std::int32_t nodes = 1 << scale;
  std::vector<Entry> entries;
  Random random(12);
  for (std::int64_t edge = 0; edge < 8 * std::int64_t(nodes); ++edge) {
    std::int32_t row = 0, column = 0;
    for (std::int32_t bit = nodes / 2; bit > 0; bit /= 2) {
      const double share = random.between(0, 1);
      if (share >= 0.76) row += bit;
      if ((share >= 0.57 && share < 0.76) || share >= 0.95) column += bit;
    }
    entries.push_back({row, column, random.between(0.5, 1.5)});
  }
  return Matrix::of(nodes, nodes, entries);
}

// As of a linear program: twice as many columns as rows, of 2 to 6 entries, most of which are near
// each other; of a thousand rows, one is in every hundredth column.
inline Matrix program(std::int32_t rows) {
  const std::int32_t cols = 2 * rows;
  std::vector<Entry> entries;
  Random random(13);
  for (std::int32_t column = 0; column < cols; ++column) {
    const auto count = std::int32_t(random.between(2, 7));
    for (std::int32_t k = 0; k < count; ++k) {
      const bool is_near = random.between(0, 1) < 0.8;
      const double at = is_near ? column / 2 + random.between(-50, 51) : random.between(0, rows);
      const std::int32_t row = std::clamp(std::int32_t(at), 0, rows - 1);
      entries.push_back({row, column, random.between(-1, 1)});
    }
    if (column % 100 == 0)
      entries.push_back({std::int32_t(random.between(0, (rows + 999) / 1000)), column, 1});
  }
  return Matrix::of(rows, cols, entries);
}

// The one of this name, unless it is a file's.
inline std::optional<Matrix> generate(const std::string &name) {
  const auto colon = name.find(':');
  const std::string family = name.substr(0, colon);
  struct Family {
    const char *name;
    Matrix (*make)(std::int32_t);
    long most;
  };
  constexpr Family FAMILIES[] = {{"stencil5", stencil5, 10000},
                                 {"stencil27", stencil27, 400},
                                 {"rmat", rmat, 26},
                                 {"lp", program, 100000000}};
  for (const Family &one : FAMILIES) {
    if (colon == std::string::npos || family != one.name) continue;
    char *end = nullptr;
    const long size = std::strtol(name.c_str() + colon + 1, &end, 10);
    if (*end || size < 1 || size > one.most)
      fail(name + ": expected a number from 1 to " + std::to_string(one.most));
    return one.make(std::int32_t(size));
  }
  return std::nullopt;
}

#endif
