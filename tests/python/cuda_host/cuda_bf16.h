// bfloat16 on the host, under CUDA's name: the upper half of a float, rounded to the nearest even one.
#pragma once
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
  uint16_t bits;

  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) {
    uint32_t whole;
    std::memcpy(&whole, &value, 4);
    bits = value == value ? uint16_t((whole + 0x7fff + (whole >> 16 & 1)) >> 16) : 0x7fff;
  }
  operator float() const {
    const uint32_t whole = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &whole, 4);
    return value;
  }
};
