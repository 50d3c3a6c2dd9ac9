"""GELU with wide loads, tiles and tuning: the speed of a copy.

Math. With `approximate="none"`, gelu(x) = x * Phi(x) = x/2 * (1 + erf(x / sqrt(2))). With `approximate="tanh"`,
gelu(x) = x/2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3). Since (1 + tanh(u)) / 2 = sigmoid(2u) = 1 / (1 +
exp(-2u)), the second is computed as x * sigmoid(2u): one exponential, and no inf/inf, because exp(-2u) may overflow
to inf (sigmoid 0) or vanish (sigmoid 1) but is never divided by itself. Around ten operations for 8 bytes of traffic
in float32: memory-bound all the same.

Technique. It joins the others and lets the device choose between them:
- wide, coalesced requests as in `v3_coalesced`: every configuration leaves a thread at least 8 neighbouring elements;
- a loop over the tiles of a chunk as in `v2_tiling`: with TILES_PER_PROGRAM > 1 fewer programs are started, and the
  next tile's loads overlap this tile's exponentials;
- `evict_first` on the load: the input is read once, so its lines should leave L2 before those of the output, which
  the next operation is likely to read;
- autotuning on the number of elements: small inputs want many small programs, large ones few large programs.

Blocks. Tiles of 1024 elements at 4 warps or 2048 at 8: 8 elements per thread. TILES_PER_PROGRAM is a run-time
argument that Triton is told not to specialise on, so configurations that differ only in it share a compilation: five
configurations, two compilations per dtype and formula.

A non-contiguous input is written out contiguously first. Arithmetic is float32 whatever the dtype, rounded once at
the store.
"""

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_SIZE": 1024, "TILES_PER_PROGRAM": 1}, num_warps=4),
    triton.Config({"BLOCK_SIZE": 1024, "TILES_PER_PROGRAM": 4}, num_warps=4),
    triton.Config({"BLOCK_SIZE": 2048, "TILES_PER_PROGRAM": 1}, num_warps=8),
    triton.Config({"BLOCK_SIZE": 2048, "TILES_PER_PROGRAM": 2}, num_warps=8),
    triton.Config({"BLOCK_SIZE": 2048, "TILES_PER_PROGRAM": 4}, num_warps=8),
]


@triton.jit
def gelu(x, APPROXIMATE_TANH: tl.constexpr):
    if APPROXIMATE_TANH:
        return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    else:
        return 0.5 * x * (1.0 + tl.erf(0.7071067811865476 * x))


@triton.autotune(configs=CONFIGS, key=["n_elements", "APPROXIMATE_TANH"])
@triton.jit(do_not_specialize=["TILES_PER_PROGRAM"])
def gelu_kernel(
    x_ptr, out_ptr, n_elements, TILES_PER_PROGRAM, APPROXIMATE_TANH: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    chunk_start = tl.program_id(0).to(tl.int64) * (BLOCK_SIZE * TILES_PER_PROGRAM)
    chunk_end = tl.minimum(chunk_start + BLOCK_SIZE * TILES_PER_PROGRAM, n_elements)
    for tile_start in range(chunk_start, chunk_end, BLOCK_SIZE):
        offsets = tile_start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask, eviction_policy="evict_first").to(tl.float32)
        tl.store(out_ptr + offsets, gelu(x, APPROXIMATE_TANH), mask=mask)


def triton_gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Returns the Gaussian error linear unit of every element; `approximate` is "none" or "tanh"."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate must be `none` or `tanh`, not `{approximate}`")
    x = input.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        n_elements = out.numel()
        gelu_kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"] * meta["TILES_PER_PROGRAM"]),)](
            x, out, n_elements, APPROXIMATE_TANH=approximate == "tanh"
        )
    return out
