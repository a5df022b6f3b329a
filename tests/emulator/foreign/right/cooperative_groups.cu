// Tiles of 8 threads, of a warp each; a block of warps takes long rows together.
// launch: spmv<<<ceil(num_rows / 16), 128>>>(row_offsets, columns, values, x, y, num_rows)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__device__ float added(const cg::thread_block_tile<8>& tile, float value) {
  for (int d = tile.size() / 2; d > 0; d /= 2) value += tile.shfl_down(value, d);
  return tile.shfl(value, 0);
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float staged[16][8];
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto tile = cg::tiled_partition<8>(warp);
  const int own = warp.meta_group_rank() * 4 + tile.meta_group_rank();
  const int row = block.group_index().x * 16 + own;
  const bool is_row = row < n;
  float sum = 0;
  if (is_row)
    for (int i = rp[row] + tile.thread_rank(); i < rp[row + 1]; i += tile.num_threads()) sum += va[i] * x[ci[i]];
  staged[own][tile.thread_rank()] = sum;
  tile.sync();
  const float mirrored = staged[own][7 - tile.thread_rank()];
  const double half = cg::reduce(tile, (double)mirrored / 2, cg::plus<double>());
  const float rest = added(tile, sum / 2);
  block.sync();
  if (is_row && warp.any(is_row)) {
    const cg::coalesced_group active = cg::coalesced_threads();
    const auto same = cg::labeled_partition(active, own);
    const int threads = cg::inclusive_scan(same, 1) - cg::exclusive_scan(same, 1);
    if (same.thread_rank() == 0) y[row] = (float)half + rest * threads;
  }
}
