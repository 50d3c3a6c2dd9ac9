"""What a compile tells of each launch and each kernel, as its documents have it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.triton import launching, resources, warm

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CompiledKernel
    from t2t_harness.boundary.documents import Launch as LaunchFacts
    from t2t_harness.cases.cases import Case


def launch_facts(launch: launching.Launch, target: str, case: Case) -> LaunchFacts:
    """Returns one launch as the document `launches` holds it."""
    return {
        "target": target,
        "case": case.name,
        "kernel": launch.kernel,
        "config": launch.config,
        "constants": {**launch.constants},
        "grid": launch.grid,
        "compiled": folder_name(launch.compiled.hash),
    }


def kernel_facts(launch: launching.Launch, target: str) -> CompiledKernel:
    """Returns one compiled kernel as the document `resources` holds it. `config` and `constants` are those of its first launch."""
    compiled, metadata = launch.compiled, launch.compiled.metadata
    folder = folder_name(compiled.hash)
    cubin = Path(os.environ["TRITON_CACHE_DIR"]) / folder / f"{metadata.name[:150]}.cubin"
    used = resources.usage(cubin)
    return {
        "compiled": folder,
        "target": target,
        "kernel": launch.kernel,
        "config": launch.config,
        "constants": {**launch.constants},
        "num_warps": metadata.num_warps,
        "num_stages": metadata.num_stages,
        "registers": used["registers"],
        "spills": used["spills"],
        "shared": metadata.shared,
        "stages": {file.suffix[1:]: f"{folder}/{file.name}" for file in warm.stages_of(cubin.with_suffix(".json"))},
    }


def folder_name(hash_: str) -> str:
    """Returns the name of the folder in Triton's cache of the compiled kernel that Triton calls `hash_`."""
    from triton.runtime.cache import _base32

    return str(_base32(hash_))
