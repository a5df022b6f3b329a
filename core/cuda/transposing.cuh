// A column-major matrix of COLUMNS columns, each `ld` elements behind the one before it, and a
// row-major one without gaps. A block copies tiles of one to the other by way of shared memory, so
// that neighbouring threads read neighbouring elements and write neighbouring elements.
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 BLOCK = 256;
// A tile has columns for as many threads as there are in a warp, or all that there are: it is whole
// rows then, which follow each other in memory.
constexpr u32 COLUMN_TILES = (COLUMNS + 31) / 32;
constexpr u32 WIDTH = (COLUMNS + COLUMN_TILES - 1) / COLUMN_TILES;
// Threads side by side over columns, a power of 2: the last may have none.
constexpr u32 LANES = WIDTH > 16 ? 32 : WIDTH > 8 ? 16 : WIDTH > 4 ? 8 : WIDTH > 2 ? 4 : WIDTH;
// The fewer columns, the more rows.
constexpr u32 HEIGHT = 1024 / LANES;
// A column of the tile begins so many elements behind the one before it that those of a row lie in
// different banks.
constexpr u32 PITCH = HEIGHT + 32 / LANES;

template <bool TO_ROWS>
__device__ __forceinline__ void transpose(const Element* from, Element* to, u64 rows, u64 ld) {
  __shared__ Element tile[WIDTH * PITCH];
  const u64 tiles = (rows + HEIGHT - 1) / HEIGHT * COLUMN_TILES;
  for (u64 index = blockIdx.x; index < tiles; index += gridDim.x) {
    const u64 first_row = index / COLUMN_TILES * HEIGHT;
    const u32 first_column = u32(index % COLUMN_TILES) * WIDTH;
#pragma unroll
    for (u32 pass = 0; pass < 2; ++pass) {
      // Reads along columns and writes along rows, or the other way round.
      const bool along_columns = (pass == 0) == TO_ROWS;
      for (u32 i = threadIdx.x; i < LANES * HEIGHT; i += BLOCK) {
        const u32 r = along_columns ? i % HEIGHT : i / LANES;
        const u32 c = along_columns ? i / HEIGHT : i % LANES;
        const u64 row = first_row + r, column = first_column + c;
        if (c >= WIDTH || column >= COLUMNS || row >= rows) continue;
        const u64 at = along_columns ? column * ld + row : row * COLUMNS + column;
        if (pass == 0) {
          tile[c * PITCH + r] = from[at];
        } else {
          to[at] = tile[c * PITCH + r];
        }
      }
      __syncthreads();
    }
  }
}
