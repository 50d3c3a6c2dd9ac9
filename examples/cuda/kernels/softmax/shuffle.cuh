// Reductions over the 32 lanes of a warp. Every lane calls them, and every lane gets the result.
#pragma once

__device__ inline float largest_of_warp(float value) {
  for (int far = 16; far > 0; far /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, far));
  return value;
}

__device__ inline float sum_of_warp(float value) {
  for (int far = 16; far > 0; far /= 2) value += __shfl_xor_sync(0xffffffffu, value, far);
  return value;
}
