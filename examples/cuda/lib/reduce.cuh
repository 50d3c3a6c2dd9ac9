// Reductions by shuffles within warps, and through shared memory between them. Every thread of the block calls them; each gets the result of its row.
#pragma once

constexpr int WARP = 32;
constexpr unsigned ALL = 0xffffffffu;

struct Max {
  static constexpr float nothing = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
  static constexpr float nothing = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Over `lanes` neighbours of a warp, a power of two. All of them get the same bits, since a step combines the same two values in either order.
template <typename Operation>
__device__ float across_lanes(float value, Operation combine, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(ALL, value, step));
  }
  return value;
}

// Over the blockDim.x threads of a row: a power of two up to a warp, or warps of a block that has one row (blockDim.y = 1).
// Between two calls with the same SLOT there is one with another, or a barrier: that is what keeps a fast warp from writing where a slow one still reads.
template <int SLOT, typename Operation>
__device__ float across_row(float value, Operation combine) {
  if (blockDim.x <= WARP) {
    return across_lanes(value, combine, blockDim.x);
  }
  __shared__ float parts[WARP];
  const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
  value = across_lanes(value, combine, WARP);
  if (lane == 0) {
    parts[warp] = value;
  }
  __syncthreads();
  return across_lanes(lane < warps ? parts[lane] : Operation::nothing, combine, WARP);
}

// Over threadIdx.y, where neighbouring threadIdx.x are neighbouring columns. blockDim.x divides a warp, and the block is up to 32 whole warps.
template <typename Operation>
__device__ float across_column(float value, Operation combine) {
  const int columns = blockDim.x, warps = blockDim.x * blockDim.y / WARP;
  const int thread = threadIdx.y * columns + threadIdx.x, warp = thread / WARP, lane = thread % WARP;
  for (int step = columns; step < WARP; step *= 2) {
    value = combine(value, __shfl_xor_sync(ALL, value, step));
  }
  if (warps == 1) {
    return value;
  }
  // One more than the columns, so that the values of a column lie in different banks.
  __shared__ float parts[WARP * (WARP + 1)];
  __shared__ float results[WARP];
  if (lane < columns) {
    parts[warp * (columns + 1) + lane] = value;
  }
  __syncthreads();
  for (int column = warp; column < columns; column += warps) {
    const float part = lane < warps ? parts[lane * (columns + 1) + column] : Operation::nothing;
    const float result = across_lanes(part, combine, WARP);
    if (lane == 0) {
      results[column] = result;
    }
  }
  __syncthreads();
  return results[threadIdx.x];
}
