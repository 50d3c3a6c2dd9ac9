"""Makes a pointwise wrapper from a scalar `@triton.jit` function: the kernel around it is written at run time, into a temporary folder."""

import importlib.util
import tempfile
from pathlib import Path

import torch
import triton
from triton.runtime.jit import JITFunction

TEMPLATE = """
import triton
import triton.language as tl


@triton.jit
def {name}_kernel({pointers}, out_ptr, {scalars}n, FN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    {loads}
    tl.store(out_ptr + offsets, {name}({arguments}), mask=mask)
"""


class Pointwise:
    """A wrapper that has its kernel written when it is first called."""

    def __init__(self, fn, tensors, block=256):
        assert isinstance(fn, JITFunction), "a pointwise function is jitted first"
        self.fn, self.tensors, self.block, self.kernel = fn, tensors, block, None

    def source(self):
        """Returns the text of the kernel."""
        names = self.fn.arg_names
        pointers, scalars = names[: self.tensors], names[self.tensors :]
        return TEMPLATE.format(
            name=self.fn.__name__,
            pointers=", ".join(f"{name}_ptr" for name in pointers),
            scalars="".join(f"{name}, " for name in scalars),
            loads="\n    ".join(f"{name} = tl.load({name}_ptr + offsets, mask=mask)" for name in pointers),
            arguments=", ".join(names),
        ).replace("FN: tl.constexpr, ", "")

    def compiled(self):
        """Returns the kernel, imported from a file of its own."""
        if self.kernel is None:
            name = self.fn.__name__
            file = Path(tempfile.mkdtemp()) / f"{name}_pointwise.py"
            file.write_text(self.source())
            spec = importlib.util.spec_from_file_location(file.stem, file)
            module = importlib.util.module_from_spec(spec)
            setattr(module, name, self.fn)
            spec.loader.exec_module(module)
            self.kernel = getattr(module, f"{name}_kernel")
        return self.kernel

    def __call__(self, *arguments, dtype=None):
        operands = torch.broadcast_tensors(*arguments[: self.tensors])
        operands = [operand.contiguous() for operand in operands]
        out = torch.empty(operands[0].shape, dtype=dtype or operands[0].dtype, device=operands[0].device)
        if out.numel() > 0:
            grid = (triton.cdiv(out.numel(), self.block),)
            scalars = arguments[self.tensors :]
            self.compiled()[grid](*operands, out, *scalars, out.numel(), BLOCK=self.block)
        return out


def pointwise(tensors):
    """Returns a decorator for a jitted scalar function whose first `tensors` parameters are tensors."""
    return lambda fn: Pointwise(fn, tensors)
