// Clusters of two by two blocks: each block has the entries of its rows that are its turn, and the first adds up.
// launch: spmv<<<dim3(2 * ceil(num_rows / 32), 2), 32>>>(row_offsets, columns, values, x, y, num_rows)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 2, 1)
    spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ float part[32];
  cg::cluster_group cluster = cg::this_cluster();
  const dim3 at = cluster.block_index(), blocks = cluster.dim_blocks(), thread = cluster.thread_index();
  const int turn = at.y * blocks.x + at.x, turns = cluster.num_blocks();
  const bool is_known = thread.x == at.x * 32 + threadIdx.x && cluster.dim_threads().x == 64 && cluster.is_valid();
  const int row = cg::this_grid().cluster_index().x * 32 + threadIdx.x;
  float sum = 0;
  if (row < rows && is_known)
    for (int i = offsets[row] + turn; i < offsets[row + 1]; i += turns) sum += values[i] * x[columns[i]];
  part[threadIdx.x] = sum;
  cluster.sync();
  if (turn == 0 && row < rows) {
    float all = 0;
    for (int rank = 0; rank < turns; ++rank) all += cluster.map_shared_rank(part, rank)[threadIdx.x];
    y[row] = all;
  }
  cluster.sync();
}
