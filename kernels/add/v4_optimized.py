"""Addition with wide loads, tiles and tuning: out = input + alpha * other at the speed of a copy.

Math. out[i] = input[i] + alpha * other[i]; 12 bytes of traffic for 2 FLOPs in float32. The bound is the memory's
bandwidth.

Technique. It joins the others and lets the device choose between them:
- wide, coalesced requests as in `v3_coalesced`: every configuration leaves a thread at least 8 neighbouring elements,
  so the loads are 128 bits wide in float32, float16 and bfloat16;
- a loop over the tiles of a chunk as in `v2_tiling`: with TILES_PER_PROGRAM > 1 fewer programs are started, and the
  loads of the next tile may be issued before the stores of the last have drained;
- `evict_first` on the loads: no operand is read twice, so its lines should leave L2 before those of the output, which
  the next operation is likely to read;
- autotuning on the number of elements. Small inputs want many small programs (132 multiprocessors to fill), large
  ones few large programs.

Blocks. Tiles of 1024 elements at 4 warps or 2048 at 8: 8 elements per thread, which is enough independent requests in
flight without costing occupancy. TILES_PER_PROGRAM is a run-time argument that Triton is told not to specialise on,
so configurations that differ only in it share a compilation: five configurations, two compilations per dtype.

Broadcasting and strides are resolved on the host by expanding and writing out. Arithmetic is float32, rounded once at
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


@triton.autotune(configs=CONFIGS, key=["n_elements"])
@triton.jit(do_not_specialize=["TILES_PER_PROGRAM"])
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, TILES_PER_PROGRAM, BLOCK_SIZE: tl.constexpr):
    chunk_start = tl.program_id(0).to(tl.int64) * (BLOCK_SIZE * TILES_PER_PROGRAM)
    chunk_end = tl.minimum(chunk_start + BLOCK_SIZE * TILES_PER_PROGRAM, n_elements)
    for tile_start in range(chunk_start, chunk_end, BLOCK_SIZE):
        offsets = tile_start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask, eviction_policy="evict_first").to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask, eviction_policy="evict_first").to(tl.float32)
        tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_add(input: torch.Tensor, other: torch.Tensor | float, *, alpha: float = 1) -> torch.Tensor:
    """Returns `input + alpha * other` over the broadcast shape, in the promoted floating-point dtype."""
    dtype = torch.result_type(input, other)
    if not isinstance(other, torch.Tensor):
        other = torch.full((), other, dtype=dtype, device=input.device)
    x, y = (operand.contiguous() for operand in torch.broadcast_tensors(input, other))
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    if out.numel() > 0:
        n_elements = out.numel()
        add_kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"] * meta["TILES_PER_PROGRAM"]),)](
            x, y, out, n_elements, float(alpha)
        )
    return out
