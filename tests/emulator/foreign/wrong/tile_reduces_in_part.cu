// Some threads of a tile do not come to its reduction.
// launch: spmv<<<ceil(num_rows / 4), 128>>>(row_offsets, columns, values, x, y, num_rows)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * 4 + tile.meta_group_rank();
  if (row >= n) return;
  float sum = 0;
  const int begin = rp[row], end = rp[row + 1];
  for (int i = begin + tile.thread_rank(); i < end; i += 32) sum += va[i] * x[ci[i]];
  if (begin + (int)tile.thread_rank() < end) {
    sum = cg::reduce(tile, sum, cg::plus<float>());  // BUG
    if (tile.thread_rank() == 0) y[row] = sum;
  } else if (tile.thread_rank() == 0) {
    y[row] = 0;
  }
}
