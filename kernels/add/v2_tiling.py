"""Addition by tiles: out = input + alpha * other, a program walks over several tiles.

Math. out[i] = input[i] + alpha * other[i]; 12 bytes of traffic for 2 FLOPs in float32.

Technique. A launch of one block per program pays for a program's start (its arguments, its index arithmetic) once per
128 elements. Here a program owns a *chunk* of consecutive tiles and loops over them, so that cost is paid once per
chunk, and the chunk's bounds, not the tile's, decide where the program stops. Loads stay as narrow as in
`v1_baseline`, one element per thread: this file shows what tiling alone gives to an operation that reuses nothing,
which is little. Tiling pays where a tile is read more than once (matrix products) or carries a running result
(softmax, layernorm).

Blocks. BLOCK_SIZE = 128 = 4 warps x 32 threads, one element per thread; CHUNK_SIZE = 1024, eight tiles per program:
at 4096 x 4096 that still leaves 16384 programs for 132 multiprocessors.

Broadcasting and strides are resolved on the host by expanding and writing out. Arithmetic is float32, rounded once at
the store.
"""

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 128
CHUNK_SIZE = 1024


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, CHUNK_SIZE: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    chunk_start = tl.program_id(0).to(tl.int64) * CHUNK_SIZE
    chunk_end = tl.minimum(chunk_start + CHUNK_SIZE, n_elements)
    for tile_start in range(chunk_start, chunk_end, BLOCK_SIZE):
        offsets = tile_start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_add(input: torch.Tensor, other: torch.Tensor | float, *, alpha: float = 1) -> torch.Tensor:
    """Returns `input + alpha * other` over the broadcast shape, in the promoted floating-point dtype."""
    dtype = torch.result_type(input, other)
    if not isinstance(other, torch.Tensor):
        other = torch.full((), other, dtype=dtype, device=input.device)
    x, y = (operand.contiguous() for operand in torch.broadcast_tensors(input, other))
    out = torch.empty_like(x, dtype=dtype)
    if out.numel() > 0:
        grid = (triton.cdiv(out.numel(), CHUNK_SIZE),)
        add_kernel[grid](
            x, y, out, out.numel(), float(alpha), CHUNK_SIZE=CHUNK_SIZE, BLOCK_SIZE=BLOCK_SIZE, num_warps=4
        )
    return out
