"""What the code of a function says of its arguments: how many dims they have and what those are called, which are places in others, flags, offsets or numbers.

Sources are parsed and never run. Nothing that it says is certain: whether a call fits is asked of the op.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from t2t_harness.sources import written
from t2t_harness.sources.reading import Reader
from t2t_harness.sources.use import Use

DEEPEST = 4
"""So many calls of functions of one file, each within another, are followed."""


def of_function(source: str, name: str) -> dict[str, Use]:
    """Returns what the code of a function, or of a class's `forward`, and of the functions of the file that it calls, says of each of its parameters; nothing where the source has none of that name, or does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {}
    return _File(source, body).of(name.removesuffix(".apply"))


class _File:
    """The functions and classes of a file."""

    def __init__(self, source: str, body: list[ast.stmt]) -> None:
        self.source = source
        self.named = {one.name: one for one in body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
        for one in [*self.named.values()]:
            # A function within another one is called by its name there, too.
            inner = ast.walk(one) if isinstance(one, ast.FunctionDef) else ()
            for node in (node for node in inner if isinstance(node, ast.FunctionDef)):
                self.named.setdefault(node.name, node)
        self.within: list[str] = []
        """The functions that are read now, each called by the one before."""
        self.told: dict[str, dict[str, Use]] = {}
        """What is known of those that were read to their end."""

    def of(self, name: str) -> dict[str, Use]:
        """Returns what a function, or a class's `forward`, says of its parameters; nothing where it is read already, and beyond `DEEPEST`."""
        node = self.named.get(name)
        if node is None or name in self.within or len(self.within) == DEEPEST:
            return {}
        plain = node.args.args if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.ClassDef):
            methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
            node = methods.get("forward") or methods.get("__call__")
            if node is None:
                return {}
            plain = node.args.args[1:]
        if name not in self.told:
            self.within.append(name)
            self.told[name] = self._of_node(node, plain)
            self.within.pop()
        return {parameter: replace(use) for parameter, use in self.told[name].items()}

    def function(self, name: str) -> ast.FunctionDef | None:
        """Returns a function of the file by its name; None where there is none."""
        found = self.named.get(name)
        return found if isinstance(found, ast.FunctionDef) else None

    def _of_node(self, node: ast.FunctionDef, plain: list[ast.arg]) -> dict[str, Use]:
        parameters = [*node.args.posonlyargs, *plain, *node.args.kwonlyargs]
        reader = Reader([one.arg for one in parameters], self.of, self.function)
        try:
            for statement in node.body:
                reader.visit(statement)
        except RecursionError:
            return {}
        said = written.words(self.source, node)
        for one in parameters:
            use = reader.uses[one.arg]
            kind = "" if one.annotation is None else ast.unparse(one.annotation)
            use.is_tensor |= "Tensor" in kind
            use.is_flag |= kind.startswith("bool")
            use.is_whole |= kind.startswith("int")
            use.is_number |= not use.is_tensor and kind.startswith(("bool", "int", "float"))
            use.dims = use.dims or written.annotated(one.annotation) or written.in_words(said, one.arg, reader.uses)
            use.is_tensor |= use.dims is not None
            use.dtype = use.dtype or written.dtype_in(said, one.arg, reader.uses)
        return reader.uses
