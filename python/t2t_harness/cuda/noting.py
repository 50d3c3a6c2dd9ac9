"""What a Python file has torch build, noted where it is called: nothing is built.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator

from t2t_harness.cuda import files, inline
from t2t_harness.cuda.inline import Extension


class Unbuilt(types.ModuleType):
    """Stands for a module that is yet to be built: its functions return their first argument."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Returns a function in the place of the module's own."""
        if name.startswith("__"):
            raise AttributeError(name)
        return first_of


def first_of(*args: object, **kwargs: object) -> object:
    """Returns the first argument, or None."""
    return next(iter((*args, *kwargs.values())), None)


@contextlib.contextmanager
def recording(root: str) -> Iterator[list[Extension]]:
    """Has `load_inline` and `load` build nothing for the length of the context, and yields what they would have built, each once. `root` is the workspace."""
    found: list[Extension] = []

    def noted(own: Extension) -> object:
        if own not in found:
            found.append(own)
        # Of what is no module of Python's torch returns the file.
        return Unbuilt(own.name) if own.is_python_module else f"{own.name}.so"

    def of_texts(*args: object, **kwargs: object) -> object:
        return noted(inline.called(*args, **kwargs))  # type: ignore[arg-type]

    def of_files(*args: object, **kwargs: object) -> object:
        return noted(files.called(root, *args, **kwargs))  # type: ignore[arg-type]

    with replaced(of_texts, of_files):
        yield found


@contextlib.contextmanager
def replaced(load_inline: Callable[..., object], load: Callable[..., object]) -> Iterator[None]:
    """Puts functions in the place of torch's `load_inline` and `load` for the length of the context."""
    from torch.utils import cpp_extension

    before = cpp_extension.load_inline, cpp_extension.load
    cpp_extension.load_inline, cpp_extension.load = load_inline, load
    try:
        yield
    finally:
        cpp_extension.load_inline, cpp_extension.load = before


def wants_operators(error: BaseException) -> bool:
    """Tells whether a file raised for want of an operator in `torch.ops`, which a library would have registered."""
    text = str(error)
    return (isinstance(error, AttributeError) and "_OpNamespace" in text) or ("does not exist" in text and "::" in text)
