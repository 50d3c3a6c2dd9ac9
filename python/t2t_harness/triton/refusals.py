"""What Triton and CUDA refuse to compile or to launch: why, in words, and where in the user's file. It launches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2t_harness.faults import failure

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Failure, SourcePlace

GRID = (2**31 - 1, 65535, 65535)
"""The most programs along each axis of a launch (CUDA C++ Programming Guide, technical specifications per compute capability)."""


def misfits() -> tuple[type[Exception], ...]:
    """Returns the errors for which Triton's autotuner passes over a configuration."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return OutOfResources, CompileTimeAssertionFailure, PTXASError


def misfit_reason(error: Exception) -> str:
    """Returns in words why a configuration does not fit."""
    from triton.runtime.errors import OutOfResources

    if isinstance(error, OutOfResources):
        unit = "bytes of " if error.name == "shared memory" else ""
        return f"needs {error.required} {unit}{error.name}, has {error.limit}"
    return " ".join(str(error).split())[:400]


def require_fit(compiled: Any) -> None:
    """Raises Triton's OutOfResources for a compiled kernel that needs more shared memory than the active driver's device has.

    Triton asks the same when it loads a kernel on a device.
    """
    from triton.runtime.driver import driver
    from triton.runtime.errors import OutOfResources

    device = driver.active.get_current_device()
    limit = driver.active.utils.get_device_properties(device)["max_shared_mem"]
    if compiled is not None and compiled.metadata.shared > limit:
        raise OutOfResources(compiled.metadata.shared, limit, "shared memory")


class GridTooLarge(ValueError):
    """CUDA refuses a launch of so many programs."""


def require_grid(grid: list[int] | None) -> None:
    """Raises GridTooLarge for a grid that CUDA does not launch, which Triton's interpreter and compiler know nothing of."""
    for axis, (programs, most) in enumerate(zip(grid or (), GRID, strict=False)):
        if programs > most:
            raise GridTooLarge(f"the grid has {programs} programs along axis {axis}, and CUDA launches {most} at most")


def compile_failure(error: BaseException, root: str, case: str) -> Failure:
    """Returns the failure of what Triton raised: its place is the user's own line and column where Triton names one."""
    from triton.runtime.errors import OutOfResources, PTXASError

    first = failure.chain(error)[-1]
    place, function = kernel_place(error, root)
    hint = None
    if isinstance(error, OutOfResources):
        message, hint = (
            f"the kernel {misfit_reason(error)}",
            "smaller blocks or a lower `num_stages` need less",
        )
    elif isinstance(error, PTXASError):
        message = "ptxas: " + " ".join(str(error.error_message).split())
    elif isinstance(text := getattr(first, "error_message", None), str):
        message = " ".join(text.split())
    else:
        message = failure.describe(error)
    record = failure.failure("compile-error", message, root=root, case=case, error=error, place=place, hint=hint)
    if place is not None:
        record["traceback"].append(f"{place['file']}:{place['line']} in {function}")
    return record


def kernel_place(error: BaseException, root: str) -> tuple[SourcePlace | None, str | None]:
    """Returns the place in the user's file that the innermost of Triton's compile errors names, and the kernel's name; else None twice.

    The error names a place of the normalized source, by which its function is found.
    """
    for one in reversed(failure.chain(error)):
        source, node = getattr(one, "src", None), getattr(one, "node", None)
        for function in failure.jit_functions(root):
            if node is None or not hasattr(node, "lineno") or function.src != source:
                continue
            file = failure.workspace_file(function.t2t_origin.file, root)
            if file is None:
                continue
            known = function.t2t_origin.places.get((node.lineno, node.col_offset))
            line, column = known or (failure.nearest(function.t2t_origin.lines, node.lineno), None)
            return (
                {"file": file, "line": line, "column": None if column is None else column + 1},
                str(function.fn.__name__),
            )
    return None, None
