// The functions of `lib/matrix_ptx.cuh` on the host, written after the PTX manual: layouts of fragments, swizzle, descriptors, phases of barriers.
// Products and copies are done at once, so that this shows wrong places and waits for ever, and no product that is read too early.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Of the host: address, two lengths, bytes between rows, box (columns, rows).
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

inline unsigned shared_address(const void* place) {
  return unsigned(static_cast<const unsigned char*>(place) - dynamic_shared);
}

template <typename T>
T half_of(unsigned pair, int which) {
  const uint16_t bits = pair >> 16 * which;
  T value;
  std::memcpy(&value, &bits, 2);
  return value;
}

// Every thread shows its parts of a and b to the others of its warp.
template <typename T>
void multiply_16_8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], T) {
  static unsigned a_parts[32 * 32][4], b_parts[32 * 32][2];
  std::memcpy(a_parts[host::current], a, sizeof(a));
  std::memcpy(b_parts[host::current], b, sizeof(b));
  __syncwarp();
  const int first = host::warp() * 32, lane = host::current - first;
  for (int i = 0; i < 4; i++) {
    const int m = lane / 4 + i / 2 * 8, n = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; k++) {
      const unsigned left = a_parts[first + m % 8 * 4 + k % 8 / 2][m / 8 + k / 8 * 2];
      const unsigned right = b_parts[first + n * 4 + k % 8 / 2][k / 8];
      d[i] += float(half_of<T>(left, k % 2)) * float(half_of<T>(right, k % 2));
    }
  }
  __syncwarp();
}

struct PhaseBarrier {
  int32_t bytes;
  uint8_t pending, count, phase, unused;

  void settle() {
    if (pending == 0 && bytes == 0) {
      phase ^= 1;
      pending = count;
    }
  }
};

inline PhaseBarrier& barrier_at(unsigned barrier) {
  return *reinterpret_cast<PhaseBarrier*>(dynamic_shared + barrier);
}
inline void barrier_start(unsigned barrier, int count) {
  barrier_at(barrier) = {0, uint8_t(count), uint8_t(count), 0, 0};
}
inline void barriers_started() {}
inline void barrier_arrive(unsigned barrier) {
  barrier_at(barrier).pending--;
  barrier_at(barrier).settle();
}
inline void barrier_expect(unsigned barrier, int bytes) {
  barrier_at(barrier).bytes += bytes;
  barrier_arrive(barrier);
}
inline void barrier_wait(unsigned barrier, int parity) {
  while (barrier_at(barrier).phase == parity) {
    host::yield();
  }
}

// Exchanges the 16-byte pieces of 128 bytes, by the number of the 128 bytes among eight.
inline unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }

inline void copy_box(const TensorMap& map, unsigned to, unsigned barrier, int x, int y) {
  const auto [base, width, height, pitch, box_x, box_y] =
      std::array<unsigned long long, 6>{map.words[0], map.words[1], map.words[2], map.words[3], map.words[4], map.words[5]};
  for (unsigned j = 0; j < box_y; j++) {
    for (unsigned i = 0; i < box_x; i++) {
      uint16_t value = 0;
      if (x + i < width && y + j < height) {
        std::memcpy(&value, reinterpret_cast<const char*>(base) + (y + j) * pitch + (x + i) * 2, 2);
      }
      std::memcpy(dynamic_shared + swizzled(to + j * 128 + i * 2), &value, 2);
    }
  }
  barrier_at(barrier).bytes -= box_x * box_y * 2;
  barrier_at(barrier).settle();
}

inline void products_begin() {}
inline void products_end() {}
template <int LEFT>
void products_wait() {}
inline void products_done(float&) {}

struct Descriptor {
  unsigned address, leading, stride;

  explicit Descriptor(unsigned long long word) {
    address = (word & 0x3fff) << 4;
    leading = (word >> 16 & 0x3fff) << 4;
    stride = (word >> 32 & 0x3fff) << 4;
    if (word >> 62 != 1) {
      std::abort();
    }
  }
};

template <typename T>
float shared_value(unsigned address) {
  T value;
  std::memcpy(&value, dynamic_shared + swizzled(address), 2);
  return float(value);
}

template <typename T, int COUNT>
void multiply_64(float (&d)[COUNT], unsigned long long a_word, unsigned long long b_word) {
  const Descriptor a(a_word), b(b_word);
  const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
  for (int k = 0; k < 16; k++) {
    float left[2];
    for (int half = 0; half < 2; half++) {
      const int m = row + half * 8;
      left[half] = shared_value<T>(a.address + m / 8 * a.stride + m % 8 * 128 + k * 2);
    }
    for (int i = 0; i < COUNT; i++) {
      const int n = i / 4 * 8 + thread % 4 * 2 + i % 2;
      d[i] += left[i / 2 % 2] *
          shared_value<T>(b.address + n / 64 * b.leading + n % 64 * 2 + k / 8 * b.stride + k % 8 * 128);
    }
  }
}

template <typename T>
void multiply_64_128(float (&d)[64], unsigned long long a, unsigned long long b, T) {
  multiply_64<T>(d, a, b);
}
template <typename T>
void multiply_64_256(float (&d)[128], unsigned long long a, unsigned long long b, T) {
  multiply_64<T>(d, a, b);
}
