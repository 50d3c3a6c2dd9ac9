// Matrix products with accumulators of float32. cuda_hopper.py has the mathematics and the reasons, and launches this.
#include "../../lib/matrix_ptx.cuh"

// By wgmma: a tile of 128 x BLOCK_N, two warpgroups with 64 rows each, and one that copies.
constexpr int BLOCK_M = 128, BLOCK_K = 64;
constexpr int WARPGROUP = 128, THREADS = 3 * WARPGROUP;
constexpr int WARPS_THAT_READ = 8;
// Rows of a box in shared memory have 128 bytes, and are swizzled by eights.
constexpr int BOX_BYTES = 128, EIGHT_ROWS = 8 * BOX_BYTES;
constexpr int A_BYTES = BLOCK_M * BLOCK_K * 2, B_BOX_BYTES = BLOCK_K * BOX_BYTES;
// Tiles whose rows of blocks go along together, so that their columns of b are read from the L2 cache.
constexpr int GROUP = 8;

extern __shared__ unsigned char dynamic_shared[];

// Where a matrix lies, for wgmma: address, two strides between its 8 x 128-byte pieces, and the swizzle of 128 bytes.
__device__ unsigned long long descriptor(unsigned address, int leading, int stride) {
  const auto field = [](unsigned bytes) { return (unsigned long long)(bytes >> 4 & 0x3fff); };
  return field(address) | field(leading) << 16 | field(stride) << 32 | 1ull << 62;
}

struct Tile {
  int m, n;

  __device__ Tile(int tile, int rows, int columns) {
    const int whole = GROUP * columns, first = tile / whole * GROUP, size = min(rows - first, GROUP);
    m = first + tile % whole % size;
    n = tile % whole / size;
  }
};

// The stages of shared memory, and for each whether it is full and whether it is empty.
template <int BLOCK_N, int STAGES>
struct Ring {
  static constexpr int BYTES = A_BYTES + BLOCK_K * BLOCK_N * 2;
  unsigned first, barriers;

  __device__ Ring() {
    first = (shared_address(dynamic_shared) + EIGHT_ROWS - 1) / EIGHT_ROWS * EIGHT_ROWS;
    barriers = first + STAGES * BYTES;
  }
  __device__ unsigned a(int step) const { return first + step % STAGES * BYTES; }
  __device__ unsigned b(int step) const { return a(step) + A_BYTES; }
  __device__ unsigned full(int step) const { return barriers + step % STAGES * 16; }
  __device__ unsigned empty(int step) const { return full(step) + 8; }
  __device__ int parity(int step) const { return step / STAGES & 1; }
};

template <typename T>
__device__ void store_pair(T* out, long long place, float left, float right, bool has_right, bool is_even) {
  if (is_even && has_right) {
    struct alignas(4) Pair {
      T left, right;
    };
    *reinterpret_cast<Pair*>(out + place) = Pair{T(left), T(right)};
    return;
  }
  out[place] = T(left);
  if (has_right) {
    out[place + 1] = T(right);
  }
}

template <int BLOCK_N, int STAGES, typename Product, typename T>
__device__ void multiply_tiles(
    const TensorMap& a_map, const TensorMap& b_map, T* __restrict__ out, int M, int N, int K, Product product) {
  const Ring<BLOCK_N, STAGES> ring;
  const int thread = threadIdx.x;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      barrier_start(ring.full(stage), 1);
      barrier_start(ring.empty(stage), WARPS_THAT_READ);
    }
    barriers_started();
  }
  __syncthreads();

  const int rows = (M + BLOCK_M - 1) / BLOCK_M, columns = (N + BLOCK_N - 1) / BLOCK_N;
  const int steps = (K + BLOCK_K - 1) / BLOCK_K;
  int step = 0;
  if (thread < WARPGROUP) {
    if (thread == 0) {
      for (int t = blockIdx.x; t < rows * columns; t += gridDim.x) {
        const Tile tile(t, rows, columns);
        for (int k = 0; k < steps; k++, step++) {
          // The first round finds all stages empty: what it waits for is the phase before the first.
          barrier_wait(ring.empty(step), ring.parity(step) ^ 1);
          barrier_expect(ring.full(step), ring.BYTES);
          copy_box(a_map, ring.a(step), ring.full(step), k * BLOCK_K, tile.m * BLOCK_M);
          for (int box = 0; box < BLOCK_N / 64; box++) {
            const int column = tile.n * BLOCK_N + box * 64;
            copy_box(b_map, ring.b(step) + box * B_BOX_BYTES, ring.full(step), column, k * BLOCK_K);
          }
        }
      }
    }
    return;
  }

  const int group = thread / WARPGROUP - 1, warp = thread % WARPGROUP / 32, lane = thread % 32;
  float d[BLOCK_N / 2];
  for (int t = blockIdx.x; t < rows * columns; t += gridDim.x) {
    const Tile tile(t, rows, columns);
#pragma unroll
    for (int i = 0; i < BLOCK_N / 2; i++) {
      d[i] = 0.0f;
    }
    for (int k = 0; k < steps; k++, step++) {
      barrier_wait(ring.full(step), ring.parity(step));
      const unsigned long long a = descriptor(ring.a(step) + group * 64 * BOX_BYTES, 16, EIGHT_ROWS);
      const unsigned long long b = descriptor(ring.b(step), B_BOX_BYTES, EIGHT_ROWS);
      products_begin();
#pragma unroll
      for (int part = 0; part < BLOCK_K / 16; part++) {
        // 16 of the inner dim are 32 bytes of a row of a, and 16 rows of b.
        product(d, a + (part * 32 >> 4), b + (part * 2 * EIGHT_ROWS >> 4));
      }
      products_end();
      // One group stays under way; the one before it has read its stage.
      products_wait<1>();
      if (k > 0 && lane == 0) {
        barrier_arrive(ring.empty(step - 1));
      }
    }
    products_wait<0>();
#pragma unroll
    for (int i = 0; i < BLOCK_N / 2; i++) {
      products_done(d[i]);
    }
    if (lane == 0) {
      barrier_arrive(ring.empty(step - 1));
    }

    const int row = tile.m * BLOCK_M + group * 64 + warp * 16 + lane / 4, column = tile.n * BLOCK_N + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < BLOCK_N / 8; i++) {
      const int n = column + i * 8;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int m = row + half * 8;
        if (m < M && n < N) {
          store_pair(out, (long long)m * N + n, d[i * 4 + half * 2], d[i * 4 + half * 2 + 1], n + 1 < N, N % 2 == 0);
        }
      }
    }
  }
}

// What only devices of compute capability 9.0 have; elsewhere nobody launches it.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define IF_HOPPER(...) __VA_ARGS__
#else
#define IF_HOPPER(...)
#endif

#define TILES(name, T, columns, stages)                                                                             \
  extern "C" __global__ void __launch_bounds__(THREADS, 1) tiles_##name##_##columns(                                \
      const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, T* out, int M, int N, int K) {      \
    IF_HOPPER(multiply_tiles<columns, stages>(                                                                      \
        a, b, out, M, N, K,                                                                                         \
        [](auto& d, unsigned long long a, unsigned long long b) { multiply_64_##columns(d, a, b, T()); });)         \
  }

TILES(float16, __half, 128, 6)
TILES(float16, __half, 256, 4)
TILES(bfloat16, __nv_bfloat16, 128, 6)
TILES(bfloat16, __nv_bfloat16, 256, 4)

// By mma.sync: a tile of 64 x 64, four warps with 32 x 32 each; any strides.
constexpr int SIDE = 64, DEPTH = 32, SMALL_THREADS = 128;
// A row of shared memory is longer by 16 bytes, so that the rows that a warp reads at once lie in different banks.
constexpr int PITCH = DEPTH + 8;
constexpr int EACH = SIDE * DEPTH / SMALL_THREADS;

template <typename T>
struct Strided {
  const T* values;
  long long row, column;

  __device__ T at(int i, int j, int rows, int columns) const {
    return i < rows && j < columns ? values[i * row + j * column] : T(0.0f);
  }
};

template <typename T>
__device__ unsigned pair_at(const T* place) {
  return *reinterpret_cast<const unsigned*>(place);
}

template <typename T>
__device__ void multiply_any(Strided<T> a, Strided<T> b, T* __restrict__ out, int M, int N, int K) {
  __shared__ __align__(16) T a_tile[SIDE][PITCH];
  __shared__ __align__(16) T b_tile[SIDE][PITCH];
  const int columns = (N + SIDE - 1) / SIDE, first_m = blockIdx.x / columns * SIDE, first_n = blockIdx.x % columns * SIDE;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
  float d[2][4][4] = {};
  T next_a[EACH], next_b[EACH];
  const auto read = [&](int k) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int place = thread + i * SMALL_THREADS;
      next_a[i] = a.at(first_m + place / DEPTH, k + place % DEPTH, M, K);
      next_b[i] = b.at(k + place / SIDE, first_n + place % SIDE, K, N);
    }
  };

  read(0);
  for (int k = 0; k < K; k += DEPTH) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int place = thread + i * SMALL_THREADS;
      a_tile[place / DEPTH][place % DEPTH] = next_a[i];
      b_tile[place % SIDE][place / SIDE] = next_b[i];
    }
    __syncthreads();
    if (k + DEPTH < K) {
      read(k + DEPTH);
    }
#pragma unroll
    for (int part = 0; part < DEPTH; part += 16) {
      const int inner = part + lane % 4 * 2;
      unsigned b_part[4][2];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const T* row = b_tile[warp_n + j * 8 + lane / 4];
        b_part[j][0] = pair_at(row + inner);
        b_part[j][1] = pair_at(row + inner + 8);
      }
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const T *upper = a_tile[warp_m + i * 16 + lane / 4], *lower = a_tile[warp_m + i * 16 + lane / 4 + 8];
        const unsigned a_part[4] = {
            pair_at(upper + inner), pair_at(lower + inner), pair_at(upper + inner + 8), pair_at(lower + inner + 8)};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          multiply_16_8(d[i][j], a_part, b_part[j], T());
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 2; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int m = first_m + warp_m + i * 16 + lane / 4 + half * 8, n = first_n + warp_n + j * 8 + lane % 4 * 2;
        if (m < M && n < N) {
          store_pair(out, (long long)m * N + n, d[i][j][half * 2], d[i][j][half * 2 + 1], n + 1 < N, N % 2 == 0);
        }
      }
    }
  }
}

#define ANY(name, T)                                                                                                \
  extern "C" __global__ void __launch_bounds__(SMALL_THREADS) any_##name(                                           \
      const T* a, const T* b, T* out, int M, int N, int K, long long a_row, long long a_column, long long b_row,    \
      long long b_column) {                                                                                         \
    multiply_any(Strided<T>{a, a_row, a_column}, Strided<T>{b, b_row, b_column}, out, M, N, K);                     \
  }

ANY(float16, __half)
ANY(bfloat16, __nv_bfloat16)
