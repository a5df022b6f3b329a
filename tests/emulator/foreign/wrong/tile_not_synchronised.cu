// Threads of a tile read what others of it have left in shared memory without having synchronised with them.
// launch: spmv<<<ceil(num_rows / 16), 128>>>(row_offsets, columns, values, x, y, num_rows)
#include <cooperative_groups.h>
using namespace cooperative_groups;

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float staged[16][8];
  const auto tile = tiled_partition<8>(this_thread_block());
  const int own = tile.meta_group_rank(), row = blockIdx.x * 16 + own;
  float sum = 0;
  if (row < n)
    for (int i = rp[row] + tile.thread_rank(); i < rp[row + 1]; i += 8) sum += va[i] * x[ci[i]];
  staged[own][tile.thread_rank()] = sum;  // BUG
  if (tile.thread_rank() == 0 && row < n) {
    float all = 0;
    for (int i = 0; i < 8; ++i) all += staged[own][i];  // BUG
    y[row] = all;
  }
}
