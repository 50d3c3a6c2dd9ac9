"""A reader of a function's statements, which follows its arguments and notes what is done with them.

It knows no files, and of no function more than how it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from t2t_harness.sources import launched
from t2t_harness.sources.use import Use, joined

KEEP = frozenset("float double half bfloat16 long int to type contiguous detach clone type_as".split())
"""Methods whose result has its tensor's shape."""

PLACED = frozenset(
    "gather index_select index_add index_add_ scatter scatter_ scatter_add scatter_add_ index_copy_".split()
)
"""Methods, and functions of torch, that take a dim and places along it."""

TURNED = frozenset("T mT t".split())
"""Attributes of what has two dims."""

ALONG = frozenset(
    "sum mean amax amin argmax argmin cumsum softmax log_softmax max min transpose sort norm all any".split()
)
"""Methods that take dims first."""

SHAPED = frozenset(
    "zeros ones full empty view reshape expand new_zeros new_empty new_full repeat arange topk one_hot".split()
)
"""Functions and methods whose bare arguments, but for the tensor, are numbers."""


class Reader(ast.NodeVisitor):
    """Reads the statements of a function in their order, and follows its parameters as far as their shapes stay."""

    def __init__(
        self, names: list[str], helper: Callable[[str], dict[str, Use]], functions: launched.Functions
    ) -> None:
        self.uses = {name: Use() for name in names}
        self.helper = helper
        """Returns what a function that is called says of its own parameters, in order; nothing of one that is not known."""
        self.functions = functions
        """Returns a function of the file by its name; None where there is none."""
        self.known: dict[str, str | None] = {name: name for name in names}
        self.derived: dict[str, str] = {}
        """Names of what is a part of a parameter, or its quotient."""

    def of(self, node: ast.AST | None) -> str | None:
        """Returns the parameter that an expression is, or has the shape of."""
        match node:
            case ast.Name(id=name):
                return self.known.get(name)
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in KEEP:
                return self.of(value)
        return None

    def shape_of(self, node: ast.AST) -> str | None:
        """Returns the parameter whose shape an expression is: `x.shape`, or `x.size()`."""
        match node:
            case ast.Attribute(value=value, attr="shape"):
                return self.of(value)
            case ast.Call(func=ast.Attribute(value=value, attr="size"), args=[]):
                return self.of(value)
        return None

    def dim_of(self, node: ast.AST) -> tuple[str, int] | None:
        """Returns the parameter and the dim whose length an expression is: `x.shape[0]`, or `x.size(0)`."""
        match node:
            case ast.Subscript(value=value, slice=place) if (name := self.shape_of(value)) is not None:
                at = _number(place)
                return None if at is None else (name, at)
            case ast.Call(func=ast.Attribute(value=value, attr="size" | "stride"), args=[place]):
                at, own = _number(place), self.of(value)
                return None if at is None or own is None else (own, at)
        return None

    def visit_Assign(self, node: ast.Assign) -> None:
        """Reads an assignment: `M, N = x.shape`, `M = x.shape[0]`, `y = x.float()`."""
        self.visit(node.value)
        for target in node.targets:
            self.assign(target, node.value)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Reads one target of an assignment."""
        match target, value:
            case ast.Tuple(elts=names), _ if (own := self.shape_of(value)) is not None:
                use = self.uses[own]
                if any(isinstance(one, ast.Starred) for one in names):
                    use.least = max(use.least, len(names) - 1)
                elif use.dims is None:
                    use.dims = [one.id if isinstance(one, ast.Name) else "_" for one in names]
            case ast.Tuple(elts=names), ast.Call(func=ast.Attribute(value=whole, attr="unbind"), args=given) if (
                own := self.of(whole)
            ) is not None:
                at = _number(given[0]) if given else 0
                if at is not None:
                    self.uses[own].fixed[at] = len(names)
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                for name, one in zip(names, values, strict=True):
                    self.assign(name, one)
            case ast.Name(id=name), _:
                meant = [*self.within(value)]
                self.known[name] = self.of(value)
                self.derived.pop(name, None)
                if self.known[name] is None and len(meant) == 1:
                    self.derived[name] = meant[0]
            case ast.Tuple(elts=names), _:
                # What several names are bound to at once is no longer what one of them was.
                for name in names:
                    self.known[ast.unparse(name)] = None
            case ast.Subscript(), _:
                self.visit(target)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Reads that what has attributes is a tensor."""
        own = self.of(node.value)
        if own is not None:
            self.uses[own].is_tensor = True
            if node.attr in TURNED:
                self.uses[own].least = max(self.uses[own].least, 2)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Reads the dims that an index names, and which arguments hold places in it."""
        found = self.dim_of(node)
        if found is not None:
            self.reach(*found)
        elif (own := self.of(node.value)) is not None:
            self.index(own, node.slice, is_store=isinstance(node.ctx, ast.Store))
        self.generic_visit(node)

    def index(self, own: str, place: ast.expr, *, is_store: bool) -> None:
        """Reads one index into an argument."""
        use = self.uses[own]
        use.is_tensor = True
        parts = place.elts if isinstance(place, ast.Tuple) else [place]
        at, has_rest = 0, False
        for number, part in enumerate(parts):
            if isinstance(part, ast.Constant) and part.value in (None, ...):
                has_rest |= part.value is ...
                continue
            named = _number(part)
            if named is not None and named >= 0 and (at > 0 or has_rest):
                # From the end, where what stands before it is `...`.
                where = number - len(parts) if has_rest else at
                use.fixed[where] = max(use.fixed.get(where, 0), named + 1)
            for name in self.within(part):
                # Where there is a mask and where there are places looks alike; a name tells.
                if not has_rest and not self.uses[name].is_mask:
                    self.uses[name].places.append((own, at))
                    self.uses[name].is_written_at |= is_store
            at += 1
        use.least = max(use.least, at)
        added = [isinstance(one, ast.Constant) and one.value is None for one in parts]
        if any(added) and not added[-1] and not has_rest and use.most is None:
            # Who adds dims by `None` before the last one names all that there are.
            use.most = at

    def within(self, node: ast.expr) -> Iterator[str]:
        """Yields the arguments that an index consists of: itself, its `clamp`, its quotient by a number."""
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="clamp" | "clamp_min" | "reshape" | "view" | "flatten")):
                yield from self.within(value)
            case ast.Subscript(value=value) if self.shape_of(value) is None:
                yield from self.within(value)
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod()):
                yield from self.within(left)
            case ast.Name(id=name) if name in self.derived:
                yield self.derived[name]
            case _ if (own := self.of(node)) is not None:
                yield own

    def visit_Call(self, node: ast.Call) -> None:
        """Reads calls whose arguments are places, masks or numbers."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in ("torch", "F")
        given = [node.func.value, *node.args] if is_method and isinstance(node.func, ast.Attribute) else node.args
        own = self.of(given[0]) if given else None
        if called in PLACED and len(given) > 2:
            self.placed(given[2], own, _number(given[1]), is_store=called in ("index_copy_", "scatter_"))
        elif called in ("embedding", "one_hot") and own is not None:
            self.placed(given[0], self.of(given[1]) if called == "embedding" and len(given) > 1 else None, 0)
        elif called in ("cross_entropy", "nll_loss") and len(given) > 1:
            self.placed(given[1], own, 1)
        elif called in ("masked_fill", "masked_fill_", "masked_select") and len(given) > 1:
            self.mask(given[1])
        elif called == "where" and given and not is_method:
            self.mask(given[0])
        elif called == "range":
            self.number(node.args)
        elif called == "chunk" and own is not None and len(given) > 1:
            self.cut(own, given[1], next((one.value for one in node.keywords if one.arg == "dim"), None) or given[2:3])
        elif called == "split" and len(given) > 1:
            self.number(given[1:])
        if called in SHAPED:
            self.number(given[1:] if is_method or called in ("topk", "one_hot") else given)
        elif isinstance(node.func, ast.Name):
            self.passed_on(node)
        elif isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
            self.launch(node, self.functions(node.func.value.id))
        found = self.dim_of(node)
        if found is not None:
            self.reach(*found)
        elif called in ALONG and is_method and own is not None:
            for at in map(_number, node.args):
                if at is not None:
                    self.reach(own, at)
        elif own is not None and is_method and _makes_floats(called, node.args):
            self.uses[own].is_widened = True
        self.generic_visit(node)

    def launch(self, node: ast.Call, kernel: ast.FunctionDef | None) -> None:
        """Reads what a kernel does with the arguments that it is launched with as they are: `kernel[grid](x, n, …)`. A single `*x.stride()` stands for as many parameters as are left."""
        if kernel is None:
            return
        names, read = launched.parameters(kernel), launched.pointers(kernel, self.functions)
        by_name = {one.arg for one in node.keywords}
        names = [name for name in names if name not in by_name]
        starred = [place for place, one in enumerate(node.args) if isinstance(one, ast.Starred)]
        left = len(names) - (len(node.args) - len(starred))
        # What follows the last `*` is counted from the end, as far as no default is left out.
        pairs = [*zip(node.args[: starred[0]] if starred else node.args, names, strict=False)]
        pairs += zip(reversed(node.args[starred[-1] + 1 :]), reversed(names), strict=False) if starred else ()
        for one, name in pairs:
            own = self.of(one)
            if own is not None:
                self.uses[own].is_tensor |= name in read
                self.uses[own].is_number |= name not in read
        match node.args[starred[0]] if len(starred) == 1 else None:
            case ast.Starred(value=ast.Call(func=ast.Attribute(value=value, attr="stride"), args=[])):
                own = self.of(value)
                if own is not None and left > 0:
                    self.reach(own, left - 1)
                    self.uses[own].most = left

    def passed_on(self, node: ast.Call) -> None:
        """Reads what a function does with the arguments that it is given as they are."""
        told = self.helper(node.func.id) if isinstance(node.func, ast.Name) else {}
        if not told or any(isinstance(one, ast.Starred) for one in node.args):
            return
        given = [
            *zip(told, node.args, strict=False),
            *((one.arg, one.value) for one in node.keywords if one.arg in told),
        ]
        meant = {own: name for name, value in given if name is not None and (own := self.of(value)) is not None}
        for own, name in meant.items():
            self.uses[own] = joined(self.uses[own], told[name], meant)

    def reach(self, own: str, at: int) -> None:
        """Reads that an argument has a dim."""
        use = self.uses[own]
        use.least = max(use.least, at + 1 if at >= 0 else -at)

    def placed(self, node: ast.expr, own: str | None, at: int | None, *, is_store: bool = False) -> None:
        """Reads that an argument holds places along a dim of another."""
        for name in self.within(node):
            self.uses[name].is_tensor = True
            self.uses[name].places.append((own or "", -1 if at is None else at))
            self.uses[name].is_written_at |= is_store

    def cut(self, own: str, parts: ast.expr, dim: ast.expr | list[ast.expr]) -> None:
        """Reads into how many parts a dim is cut."""
        places = dim if isinstance(dim, list) else [dim]
        count, at = _number(parts), _number(places[0]) if places else 0
        if count is not None and at is not None:
            self.uses[own].parts[at] = count

    def mask(self, node: ast.expr) -> None:
        """Reads that an argument is one of booleans."""
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        if isinstance(node, ast.Subscript):
            node = node.value
        own = self.of(node)
        if own is not None:
            self.uses[own].is_mask = self.uses[own].is_tensor = True

    def number(self, nodes: list[ast.expr]) -> None:
        """Reads that arguments are whole numbers: lengths, or how many."""
        for node in nodes:
            for one in node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]:
                if isinstance(one, ast.BinOp):
                    self.number([one.left, one.right])
                own = self.of(one)
                if own is not None:
                    self.uses[own].is_number = self.uses[own].is_whole = True

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Reads that bits of an argument are shifted or masked."""
        if isinstance(node.op, ast.Sub):
            self.difference(node.left, node.right)
        elif isinstance(node.op, ast.MatMult):
            # Rows times a vector have one dim: what is multiplied so is a matrix.
            for factor in (self.of(node.left), self.of(node.right)):
                if factor is not None:
                    self.reach(factor, 1)
        left = node.left
        while isinstance(left, ast.Subscript):
            left = left.value
        own = self.of(left)
        if own is not None and isinstance(node.op, (ast.RShift, ast.LShift)):
            self.bits(own, node.right, most=7)
        if own is not None and isinstance(node.op, ast.BitAnd) and isinstance(node.right, ast.Constant):
            self.bits(own, node.right, most=255)
        self.generic_visit(node)

    def bits(self, own: str, number: ast.expr, *, most: int) -> None:
        """Reads that bits of an argument are looked at; those of a byte where the number is known to be at most `most`."""
        value = _number(number)
        self.uses[own].is_bits = True
        self.uses[own].is_wide |= value is None or value > most

    def difference(self, left: ast.expr, right: ast.expr) -> None:
        """Reads `offsets[1:] - offsets[:-1]`, the lengths of segments."""
        match left, right:
            case ast.Subscript(value=first, slice=after), ast.Subscript(value=second, slice=before):
                own = self.of(first)
                is_lengths = (ast.unparse(after), ast.unparse(before)) == ("1:", ":-1")
                if own is not None and own == self.of(second) and is_lengths:
                    self.uses[own].is_offsets = True

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Reads `~mask`."""
        if isinstance(node.op, ast.Invert):
            self.mask(node.operand)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Reads what a branch depends on."""
        self.branch(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Reads what a value depends on."""
        self.branch(node.test)
        self.generic_visit(node)

    def branch(self, test: ast.expr) -> None:
        """Reads that what decides between branches by itself is a flag."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        for one in test.values if isinstance(test, ast.BoolOp) else [test]:
            own = self.of(one)
            if own is not None:
                self.uses[own].is_flag = self.uses[own].is_number = True


def _number(node: ast.expr) -> int | None:
    """Returns the whole number that an expression is, None where it is none."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if type(value) is int else None


def _makes_floats(called: str, given: list[ast.expr]) -> bool:
    """Tells whether a method's result has floats: `float()`, `to(torch.float32)`."""
    return called == "float" or (called == "to" and len(given) == 1 and ast.unparse(given[0]) == "torch.float32")
