// Runs kernels of CUDA C++ on the host, to test their arithmetic and their places: blocks one after another, the threads of a block in turns, each on a stack of
// its own until it waits. It knows barriers, shuffles and shared memory; it is no model of a device's memory, and shows no race that turns do not show.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <setjmp.h>
#include <ucontext.h>
#include <vector>

using std::max;
using std::min;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

// What a launch asks for; a kernel declares it `extern`.
alignas(1024) unsigned char dynamic_shared[256 << 10];

namespace host {

constexpr int WARP_THREADS = 32;
constexpr size_t STACK = 256 << 10;
constexpr long MOST_TURNS = 20'000'000;

// A thread of every block in turn: it begins the next one where it has ended the last.
struct Thread {
  jmp_buf at;
  std::unique_ptr<char[]> stack;
  dim3 place;
  bool is_done;
};

// Whoever has arrived, and how often all did.
struct Barrier {
  int arrived = 0;
  long generation = 0;
};

inline std::vector<Thread> threads;
inline jmp_buf scheduler;
inline int current, count;
inline long turns;
inline Barrier block_barrier;
inline Barrier warp_barriers[WARP_THREADS];
inline uint64_t slots[WARP_THREADS * WARP_THREADS];
inline std::function<void()> body;

// Lets the other threads have their turn. A block whose threads wait for ever ends the process.
inline void yield() {
  if (++turns > MOST_TURNS) {
    std::fprintf(stderr, "a block waits for ever\n");
    std::abort();
  }
  // Of a context only registers change, so no call of the system is needed.
  if (_setjmp(threads[current].at) == 0) {
    _longjmp(scheduler, 1);
  }
}

inline void wait(Barrier& barrier, int members) {
  const long mine = barrier.generation;
  if (++barrier.arrived == members) {
    barrier.arrived = 0;
    barrier.generation++;
    return;
  }
  while (barrier.generation == mine) {
    yield();
  }
}

inline int warp() { return current / WARP_THREADS; }
inline int warp_members() { return std::min(WARP_THREADS, count - warp() * WARP_THREADS); }

inline void enter() {
  for (;;) {
    body();
    threads[current].is_done = true;
    yield();
  }
}

// Runs a thread until it waits or is done.
inline void resume(Thread& thread) {
  if (_setjmp(scheduler) != 0) {
    return;
  }
  if (thread.stack != nullptr) {
    _longjmp(thread.at, 1);
  }
  thread.stack.reset(new char[STACK]);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = thread.stack.get();
  context.uc_stack.ss_size = STACK;
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

inline void run_block() {
  turns = 0;
  for (int t = 0; t < count; t++) {
    threads[t].is_done = false;
    threads[t].place = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
  }
  for (int left = count; left > 0;) {
    for (current = 0; current < count; current++) {
      if (!threads[current].is_done) {
        threadIdx = threads[current].place;
        resume(threads[current]);
        left -= threads[current].is_done;
      }
    }
  }
}

}  // namespace host

inline void __syncthreads() { host::wait(host::block_barrier, host::count); }

inline void __syncwarp(unsigned = ~0u) { host::wait(host::warp_barriers[host::warp()], host::warp_members()); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  const int first = host::warp() * host::WARP_THREADS, lane = host::current - first;
  std::memcpy(&host::slots[host::current], &value, sizeof(T));
  __syncwarp();
  T other;
  std::memcpy(&other, &host::slots[first + (lane ^ mask)], sizeof(T));
  __syncwarp();
  return other;
}

inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }

// Runs a kernel. `words` are its integers and addresses in their order, `floats` its floats: by the calling convention of x86-64 and of 64-bit Arm the two are passed apart.
extern "C" void run_on_host(void* kernel, const int64_t* words, const float* floats, const unsigned* sides) {
  gridDim = {sides[0], sides[1], sides[2]};
  blockDim = {sides[3], sides[4], sides[5]};
  host::count = blockDim.x * blockDim.y * blockDim.z;
  while (int(host::threads.size()) < host::count) {
    host::threads.emplace_back();
  }
  using Function = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
      int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float, float, float, float);
  host::body = [=] {
    const int64_t* w = words;
    const float* f = floats;
    reinterpret_cast<Function>(kernel)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12],
        w[13], w[14], w[15], f[0], f[1], f[2], f[3]);
  };
  for (unsigned z = 0; z < gridDim.z; z++) {
    for (unsigned y = 0; y < gridDim.y; y++) {
      for (unsigned x = 0; x < gridDim.x; x++) {
        blockIdx = {x, y, z};
        host::run_block();
      }
    }
  }
}
