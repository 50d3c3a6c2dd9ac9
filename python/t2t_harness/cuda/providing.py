"""Modules of torch's that compile built, in the process that calls them: `load_inline` and `load` return them, and what they launch is theirs.

torch is imported only inside functions.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from t2t_harness.cuda import inline, modules, operators
from t2t_harness.cuda.modules import Held


def provider(
    held: Mapping[str, Held], folder: Path, called: Callable[..., inline.Extension] = inline.called
) -> Callable[..., object]:
    """Returns what stands in the place of a function of torch's that builds what `called` says of its arguments: it returns modules that are `held`, which are put into `folder`.

    It raises AbiMismatch for one that was built for another torch or Python, NoImage for one of whose kernels none runs on the device, and Refused for one that was not built.
    """
    import torch

    loaded: dict[str, object] = {}

    def provided(*args: object, **kwargs: object) -> object:
        own = called(*args, **kwargs)
        digest = own.digest()
        if digest not in held:
            names = ", ".join(f"`{one.name}`" for one in held.values()) or "nothing"
            raise inline.Refused(
                f"`{own.name}` is given other sources or flags here than where it was compiled, which made {names}: what is built may not depend on the device"
            )
        if digest not in loaded:
            modules.require_abi(held[digest])
            if torch.cuda.is_available():
                modules.require_image(held[digest], torch.cuda.get_device_capability())
            loaded[digest] = load(own, held[digest], folder / digest[:16])
        return loaded[digest]

    return provided


def load(own: inline.Extension, module: Held, folder: Path) -> object:
    """Returns a module, loaded from a file in `folder`, its functions watched, and the operators that it registers with torch; of one that is none of Python's the file's path, as torch does."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{own.name}.so"
    file.write_bytes(module.library)
    before = registered()
    if own.is_python_module:
        spec = importlib.util.spec_from_file_location(own.name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {file}")
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        found: object = modules.Watched(made, module)
    else:
        torch.ops.load_library(str(file))  # type: ignore[no-untyped-call]
        found = str(file)
    for name in sorted(registered() - before):
        watch(name, module)
    return found


def registered() -> set[str]:
    """Returns the names of the operators that torch knows, as in `own::forward` and `own::forward.out`."""
    import torch

    return set(torch._C._dispatch_get_all_op_names())


def watch(name: str, module: Held) -> None:
    """Has calls of an operator that a module registered watched as those of its functions are. An operator in a namespace of torch's own stays as it is."""
    import torch

    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    if space in operators.TORCHS_OWN:
        return
    packet = getattr(getattr(torch.ops, space), base)
    overloaded = getattr(packet, overload or "default")
    told = f"{space}.{base}"
    if f"{space}::{base}" not in operators.BUILT:
        packet._op = modules.called(told, packet._op, module)
    overloaded._op = modules.called(told, overloaded._op, module)
    operators.BUILT |= {name, f"{space}::{base}"}
