// What kernels use of <cooperative_groups.h>, <cooperative_groups/reduce.h> and
// <cooperative_groups/scan.h>: NVRTC comes without them. Written anew, after the chapter
// "Cooperative Groups" of NVIDIA's CUDA Programming Guide; what is missing here is an unknown name
// there.
namespace cooperative_groups {

namespace details {
__device__ inline unsigned lane() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ inline void sync_block() { asm volatile("barrier.sync 0;" ::: "memory"); }

// A value of any size goes from lane to lane word by word.
template <class T, class Move>
__device__ inline T by_words(T value, Move move) {
  constexpr int words = (sizeof(T) + 3) / 4;
  unsigned parts[words] = {};
  memcpy(parts, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) parts[i] = move(parts[i]);
  memcpy(&value, parts, sizeof(T));
  return value;
}
}  // namespace details

// Any group that is a block or lies within a warp.
class thread_group {
 public:
  __device__ thread_group(unsigned lanes, unsigned rank, unsigned threads)
      : lanes_(lanes), rank_(rank), threads_(threads) {}
  __device__ void sync() const {
    if (lanes_) __syncwarp(lanes_);
    else details::sync_block();
  }
  __device__ unsigned thread_rank() const { return rank_; }
  __device__ unsigned num_threads() const { return threads_; }
  __device__ unsigned size() const { return threads_; }
  __device__ bool is_valid() const { return true; }

 private:
  // None of a block.
  unsigned lanes_, rank_, threads_;
};

class thread_block {
 public:
  __device__ static void sync() { details::sync_block(); }
  __device__ static unsigned thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __device__ static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  __device__ static unsigned size() { return num_threads(); }
  __device__ static bool is_valid() { return true; }
  __device__ static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __device__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  __device__ static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  __device__ static dim3 group_dim() { return dim_threads(); }
  __device__ operator thread_group() const { return thread_group(0, thread_rank(), num_threads()); }
};

__device__ inline thread_block this_thread_block() { return thread_block(); }

namespace details {
// Blocks that have come to the barrier of the grid, and once all have, those that leave it, too:
// the last of those sets it back, so that nothing is kept from one launch to the next. A kernel in
// whose code this is has to be launched cooperatively.
__device__ inline unsigned* grid_barrier() {
  static __device__ unsigned blocks;
  return &blocks;
}

__device__ inline unsigned blocks_at(const unsigned* barrier) {
  unsigned blocks;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(blocks) : "l"(barrier) : "memory");
  return blocks;
}
}  // namespace details

class grid_group {
 public:
  struct arrival_token {};
  __device__ static arrival_token barrier_arrive() {
    details::sync_block();
    if (thread_block::thread_rank() == 0) {
      unsigned* barrier = details::grid_barrier();
      const unsigned blocks = (unsigned)num_blocks();
      // Some may still have to leave it since the last time.
      while (details::blocks_at(barrier) >= blocks) {}
      __threadfence();
      atomicInc(barrier, 2 * blocks - 1);
    }
    return arrival_token();
  }
  __device__ static void barrier_wait() {
    if (thread_block::thread_rank() == 0) {
      unsigned* barrier = details::grid_barrier();
      const unsigned blocks = (unsigned)num_blocks();
      while (details::blocks_at(barrier) < blocks) {}
      __threadfence();
      atomicInc(barrier, 2 * blocks - 1);
    }
    details::sync_block();
  }
  __device__ static void barrier_wait(arrival_token&&) { barrier_wait(); }
  __device__ static void sync() {
    barrier_arrive();
    barrier_wait();
  }
  // Who asks is launched so that it is.
  __device__ static bool is_valid() {
    asm volatile("" ::"l"(details::grid_barrier()));
    return true;
  }
  __device__ static unsigned long long block_rank() {
    return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  __device__ static unsigned long long num_blocks() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
  }
  __device__ static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  __device__ static unsigned long long num_threads() {
    return num_blocks() * thread_block::num_threads();
  }
  __device__ static unsigned long long size() { return num_threads(); }
  __device__ static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __device__ static dim3 group_index() { return block_index(); }
  __device__ static dim3 thread_index() { return thread_block::thread_index(); }
  __device__ static dim3 dim_blocks() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  __device__ static dim3 group_dim() { return dim_blocks(); }
#if __CUDA_ARCH__ >= 900
  __device__ static unsigned long long num_clusters() {
    const dim3 clusters = dim_clusters();
    return (unsigned long long)clusters.x * clusters.y * clusters.z;
  }
  __device__ static unsigned long long cluster_rank() {
    const dim3 cluster = cluster_index(), clusters = dim_clusters();
    return ((unsigned long long)cluster.z * clusters.y + cluster.y) * clusters.x + cluster.x;
  }
  __device__ static dim3 cluster_index() {
    dim3 index;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(index.x));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(index.y));
    asm("mov.u32 %0, %%clusterid.z;" : "=r"(index.z));
    return index;
  }
  __device__ static dim3 dim_clusters() {
    dim3 clusters;
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters.x));
    asm("mov.u32 %0, %%nclusterid.y;" : "=r"(clusters.y));
    asm("mov.u32 %0, %%nclusterid.z;" : "=r"(clusters.z));
    return clusters;
  }
#endif
};

__device__ inline grid_group this_grid() { return grid_group(); }

#if __CUDA_ARCH__ >= 900
class cluster_group {
 public:
  struct arrival_token {};
  __device__ static arrival_token barrier_arrive() {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    return arrival_token();
  }
  __device__ static void barrier_wait() {
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
  }
  __device__ static void barrier_wait(arrival_token&&) { barrier_wait(); }
  __device__ static void sync() {
    barrier_arrive();
    barrier_wait();
  }
  __device__ static unsigned block_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
  }
  __device__ static unsigned num_blocks() {
    unsigned blocks;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
  }
  __device__ static unsigned thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  __device__ static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
  __device__ static unsigned size() { return num_threads(); }
  __device__ static bool is_valid() { return true; }
  __device__ static dim3 block_index() {
    dim3 index;
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(index.x));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(index.y));
    asm("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(index.z));
    return index;
  }
  __device__ static dim3 dim_blocks() {
    dim3 blocks;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks.x));
    asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(blocks.y));
    asm("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(blocks.z));
    return blocks;
  }
  __device__ static dim3 thread_index() {
    const dim3 block = block_index();
    return dim3(block.x * blockDim.x + threadIdx.x, block.y * blockDim.y + threadIdx.y,
                block.z * blockDim.z + threadIdx.z);
  }
  __device__ static dim3 dim_threads() {
    const dim3 blocks = dim_blocks();
    return dim3(blocks.x * blockDim.x, blocks.y * blockDim.y, blocks.z * blockDim.z);
  }
  template <class T>
  __device__ static T* map_shared_rank(T* address, int rank) {
    T* mapped;
    asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(address), "r"(rank));
    return mapped;
  }
  __device__ static unsigned query_shared_rank(const void* address) {
    unsigned rank;
    asm("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(address));
    return rank;
  }
};

__device__ inline cluster_group this_cluster() { return cluster_group(); }
#endif

// Threads of a warp, in the order of their lanes.
class coalesced_group {
 public:
  __device__ explicit coalesced_group(unsigned lanes, unsigned meta_rank = 0, unsigned meta_size = 1)
      : lanes_(lanes), meta_rank_(meta_rank), meta_size_(meta_size) {}
  __device__ void sync() const { __syncwarp(lanes_); }
  __device__ unsigned thread_rank() const {
    return __popc(lanes_ & ((1u << details::lane()) - 1));
  }
  __device__ unsigned num_threads() const { return __popc(lanes_); }
  __device__ unsigned size() const { return num_threads(); }
  __device__ unsigned meta_group_rank() const { return meta_rank_; }
  __device__ unsigned meta_group_size() const { return meta_size_; }
  template <class T>
  __device__ T shfl(T value, unsigned rank) const {
    const unsigned lanes = lanes_, from = lane_of(rank % num_threads());
    return details::by_words(value, [=](unsigned part) { return __shfl_sync(lanes, part, from); });
  }
  template <class T>
  __device__ T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank >= delta ? rank - delta : rank);
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return shfl(value, rank + delta < num_threads() ? rank + delta : rank);
  }
  __device__ int any(int predicate) const { return __any_sync(lanes_, predicate); }
  __device__ int all(int predicate) const { return __all_sync(lanes_, predicate); }
  __device__ unsigned ballot(int predicate) const {
    const unsigned holds = __ballot_sync(lanes_, predicate);
    unsigned packed = 0, bit = 1;
    for (unsigned left = lanes_; left; left &= left - 1, bit <<= 1)
      if (holds & left & -left) packed |= bit;
    return packed;
  }
  __device__ operator thread_group() const {
    return thread_group(lanes_, thread_rank(), num_threads());
  }
  __device__ unsigned details_lanes() const { return lanes_; }

 private:
  __device__ unsigned lane_of(unsigned rank) const {
    unsigned left = lanes_;
    for (unsigned i = 0; i < rank; ++i) left &= left - 1;
    return __ffs(left) - 1;
  }
  unsigned lanes_, meta_rank_, meta_size_;
};

__device__ inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

// As many neighbouring threads, of a warp.
template <unsigned Size, class Parent = void>
class thread_block_tile {
  static_assert(Size > 0 && Size <= 32 && (Size & (Size - 1)) == 0,
                "tiles of 1, 2, 4, 8, 16 or 32 threads are known here");

 public:
  __device__ thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : meta_rank_(meta_rank), meta_size_(meta_size) {}
  template <class Other>
  __device__ thread_block_tile(const thread_block_tile<Size, Other>& other)
      : meta_rank_(other.meta_group_rank()), meta_size_(other.meta_group_size()) {}
  __device__ static void sync() { __syncwarp(lanes()); }
  __device__ static unsigned thread_rank() { return details::lane() % Size; }
  __device__ static constexpr unsigned num_threads() { return Size; }
  __device__ static constexpr unsigned size() { return Size; }
  __device__ unsigned meta_group_rank() const { return meta_rank_; }
  __device__ unsigned meta_group_size() const { return meta_size_; }
  template <class T>
  __device__ static T shfl(T value, int rank) {
    return details::by_words(value, [=](unsigned part) { return __shfl_sync(lanes(), part, rank, Size); });
  }
  template <class T>
  __device__ static T shfl_up(T value, unsigned delta) {
    return details::by_words(value, [=](unsigned part) { return __shfl_up_sync(lanes(), part, delta, Size); });
  }
  template <class T>
  __device__ static T shfl_down(T value, unsigned delta) {
    return details::by_words(value, [=](unsigned part) { return __shfl_down_sync(lanes(), part, delta, Size); });
  }
  template <class T>
  __device__ static T shfl_xor(T value, unsigned mask) {
    return details::by_words(value, [=](unsigned part) { return __shfl_xor_sync(lanes(), part, mask, Size); });
  }
  __device__ static int any(int predicate) { return __any_sync(lanes(), predicate); }
  __device__ static int all(int predicate) { return __all_sync(lanes(), predicate); }
  __device__ static unsigned ballot(int predicate) {
    return __ballot_sync(lanes(), predicate) >> first();
  }
  template <class T>
  __device__ static unsigned match_any(T value) {
    return __match_any_sync(lanes(), value) >> first();
  }
  template <class T>
  __device__ static unsigned match_all(T value, int& predicate) {
    return __match_all_sync(lanes(), value, &predicate) >> first();
  }
  __device__ operator thread_group() const { return thread_group(lanes(), thread_rank(), Size); }
  __device__ operator coalesced_group() const {
    return coalesced_group(lanes(), meta_rank_, meta_size_);
  }
  __device__ static unsigned details_lanes() { return lanes(); }

 private:
  __device__ static unsigned first() { return details::lane() / Size * Size; }
  __device__ static unsigned lanes() { return (Size < 32 ? (1u << Size % 32) - 1 : ~0u) << first(); }
  unsigned meta_rank_, meta_size_;
};

template <unsigned Size>
__device__ inline thread_block_tile<Size, thread_block> tiled_partition(const thread_block& block) {
  return thread_block_tile<Size, thread_block>(block.thread_rank() / Size,
                                               (block.num_threads() + Size - 1) / Size);
}

template <unsigned Size, unsigned Of, class Parent>
__device__ inline thread_block_tile<Size, thread_block_tile<Of, Parent>> tiled_partition(
    const thread_block_tile<Of, Parent>& tile) {
  static_assert(Size <= Of, "a tile is no larger than what it is a part of");
  return thread_block_tile<Size, thread_block_tile<Of, Parent>>(tile.thread_rank() / Size, Of / Size);
}

template <class Group, class Label>
__device__ inline coalesced_group labeled_partition(const Group& group, Label label) {
  return coalesced_group(__match_any_sync(group.details_lanes(), label));
}

template <class Group>
__device__ inline coalesced_group binary_partition(const Group& group, bool predicate) {
  const unsigned lanes = group.details_lanes(), holds = __ballot_sync(lanes, predicate);
  return coalesced_group(predicate ? holds : lanes & ~holds, predicate, 2);
}

template <class Group>
__device__ inline void sync(const Group& group) { group.sync(); }

template <class Group>
__device__ inline unsigned thread_rank(const Group& group) { return group.thread_rank(); }

template <class T>
struct plus {
  __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  __device__ T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  __device__ T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  __device__ T operator()(T a, T b) const { return a ^ b; }
};

template <unsigned Size, class Parent, class T, class Operation>
__device__ inline T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operation&& operation) {
#pragma unroll
  for (unsigned mask = Size / 2; mask > 0; mask /= 2) value = operation(value, tile.shfl_xor(value, mask));
  return value;
}

template <class T, class Operation>
__device__ inline T reduce(const coalesced_group& group, T value, Operation&& operation) {
  T all = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.num_threads(); ++rank) all = operation(all, group.shfl(value, rank));
  return all;
}

template <class Group, class T, class Operation>
__device__ inline T inclusive_scan(const Group& group, T value, Operation&& operation) {
  for (unsigned delta = 1; delta < group.num_threads(); delta *= 2) {
    const T before = group.shfl_up(value, delta);
    if (group.thread_rank() >= delta) value = operation(before, value);
  }
  return value;
}

template <class Group, class T>
__device__ inline T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}

// The first thread has no value before its own: it gets that of no addition.
template <class Group, class T, class Operation>
__device__ inline T exclusive_scan(const Group& group, T value, Operation&& operation) {
  const T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
  return group.thread_rank() == 0 ? T() : before;
}

template <class Group, class T>
__device__ inline T exclusive_scan(const Group& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups
