// A warp takes 8 rows, 4 lanes each.
// SAYS: with <8, 4> for <4, 8> at line 12
// launch: spmv<<<ceil(num_rows / 32), 128>>>(row_offsets, columns, values, x, y, num_rows)
template <int ROWS, int LANES>
struct Tile {
    static constexpr int kRows = ROWS;
    static constexpr int kLanes = LANES;
    __device__ static int row() { return threadIdx.x % 32 / kLanes; }
    __device__ static int lane() { return threadIdx.x % 32 % kLanes; }
};

using WarpTile = Tile<4, 8>;

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int warp = (blockIdx.x * 128 + threadIdx.x) / 32;
    const int row = warp * 8 + WarpTile::row();
    const int lane = WarpTile::lane();
    float sum = 0.0f;
    if (row < num_rows)
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += WarpTile::kLanes)
            sum += values[j] * x[columns[j]];
    for (int d = WarpTile::kLanes / 2; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, d, WarpTile::kLanes);
    if (row < num_rows && lane == 0) y[row] = sum;
}
