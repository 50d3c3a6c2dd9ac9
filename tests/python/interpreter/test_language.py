"""Kernels as libraries write them run on the interpreter as they run compiled; what it lacks is said by name, and what is the kernel's own stays so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()

REASONS = {
    "inline_assembly": "Triton's interpreter lacks inline assembly (inline_asm)",
    "a_library_function_that_is_not_there": "Triton's interpreter lacks the library function `__nv_rcp64h`",
    "an_atomic_sum_in_bfloat16": "Triton's interpreter lacks atomic operations in bfloat16",
    "an_attribute_of_a_compiled_kernel": "Triton's interpreter lacks `n_regs` of a compiled kernel",
    "a_chained_comparison": "Triton's compiler refuses a comparison of three values at once",
    "a_condition_on_a_block": "Triton's compiler refuses a condition of several elements",
    "blocks_of_unequal_lengths": "Triton's interpreter raised ValueError: Cannot make_shape_compatible",
    "what_a_wrapper_raises_after_the_interpreter": "Triton's interpreter lacks inline assembly (inline_asm)",
    "an_attribute_that_no_block_has": "own: InterpreterError",
    "an_attribute_that_no_module_has": "own: InterpreterError",
    "a_name_that_nothing_has": "own: InterpreterError",
    "an_assertion_of_the_kernel": "own: InterpreterError",
    "an_assertion_of_the_compiler": "own: InterpreterError",
    "what_a_wrapper_raises": "own: ValueError",
    "a_grid_of_fractions": "own: TypeError",
    "a_launch_without_warps": "own: ValueError",
    "what_torch_raises": "own: RuntimeError",
}
"""Case of language.py → how the reason begins that a check gives, or `own` with what the kernel's author did. All others compute what is right."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Returns what each case of language.py came to."""
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(HERE.parents[3] / "python"), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE.with_name("language.py"))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path_factory.mktemp("language"),
    )
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, str | None] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def test_kernels_compute_what_is_right(results: dict[str, str | None]) -> None:
    wrong = {name: said for name, said in results.items() if name not in REASONS and said is not None}
    assert wrong == {}
    assert len(results) == len(REASONS) + 24


@pytest.mark.parametrize("name", REASONS)
def test_what_is_raised_is_told_apart(name: str, results: dict[str, str | None]) -> None:
    said = results[name]
    assert said is not None and said.startswith(REASONS[name]), said
