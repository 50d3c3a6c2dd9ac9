"""What torch's own documentation of a callable says: signature, first paragraph, formulas, arguments; no markup.

Reads docstrings only; everything that a docstring does not say is None.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

_ROLE = re.compile(r":[a-z:]+:`([^`]+)`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^>]+>`_{1,2}")
_LITERAL = re.compile(r"``([^`]+)``")
_ARGUMENT = re.compile(r"^(\s+)(\w+)\s*(?:\([^)]*\))?\s*:\s+(.*)$")


def signature(function: Callable[..., object]) -> str | None:
    """Return the signature, `(input, dim, *, dtype=None) -> Tensor`: Python's own, a builtin's from its docstring."""
    try:
        found = str(inspect.signature(function))
    except (TypeError, ValueError):
        found = "(*args, **kwargs)"
    if not found.startswith("(*args, **kwargs)"):
        return found
    documented = _signature_line(inspect.getdoc(function) or "")
    return documented.partition("(")[1] + documented.partition("(")[2] if documented else None


def summary(function: Callable[..., object]) -> str | None:
    """Return the first paragraph of prose as one line."""
    for paragraph in _paragraphs(function):
        if not paragraph.startswith("..") and (text := plain(paragraph)):
            return text
    return None


def formulas(function: Callable[..., object]) -> list[str]:
    """Return the formulas in LaTeX, one line each: `.. math::` blocks, and equations that are a whole paragraph."""
    found = []
    for paragraph in re.split(r"\n(?=\s*\.\. )|\n\s*\n(?!\s{4,}\S)", inspect.getdoc(function) or ""):
        block = paragraph.strip()
        if block.startswith(".. math::"):
            found.append(" ".join(block.removeprefix(".. math::").split("\n\n\n")[0].split()))
        elif (inline := re.fullmatch(r":math:`([^`]+=[^`]+)`\.?", block)) is not None:
            found.append(" ".join(inline.group(1).split()))
    return found


def arguments(function: Callable[..., object]) -> dict[str, str]:
    """Return what the `Args:` section says of each argument: the first line and those that continue it, as one line."""
    lines = (inspect.getdoc(function) or "").splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip() in ("Args:", "Arguments:")), len(lines))
    told: dict[str, str] = {}
    name, margin = "", 0
    for line in lines[start + 1 :]:
        if line.strip() and not line[0].isspace():
            break
        entry = _ARGUMENT.match(line)
        if entry is not None and (not margin or len(entry.group(1)) == margin):
            margin, name = len(entry.group(1)), entry.group(2)
            told[name] = entry.group(3)
        elif name and line.strip() and not line.strip().startswith(".."):
            told[name] += " " + line.strip()
        else:
            name = ""
    return {name: plain(text) for name, text in told.items()}


def plain(text: str) -> str:
    """Return `text` as one line without roles, links, literal quotes and emphasis."""
    for pattern in (_ROLE, _LINK, _LITERAL):
        text = pattern.sub(lambda match: match.group(1).removeprefix("~").strip(), text)
    return " ".join(text.replace("**", "").replace(r"\_", "_").split())


def _paragraphs(function: Callable[..., object]) -> list[str]:
    """Return the paragraphs of the docstring, without the signature that builtins open it with."""
    paragraphs = [one for one in re.split(r"\n\s*\n", inspect.getdoc(function) or "") if one.strip()]
    return paragraphs[1:] if _signature_line("\n\n".join(paragraphs)) else paragraphs


def _signature_line(text: str) -> str | None:
    """Return the signature that opens a builtin's docstring, as one line, or None."""
    opening = " ".join(re.split(r"\n\s*\n", text.strip())[0].split()).rstrip(":")
    return opening if re.fullmatch(r"[\w.]+\(.*\)(\s*->.*)?", opening) else None
