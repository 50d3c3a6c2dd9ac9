"""Splits a CUDA C++ file that includes torch's headers in two, so that neither nvcc nor a second look at the kernels has to read those headers.

The device half has the kernels and what they may use; nvcc compiles it in a second or two. The host half has all else, with kernels declared alone and launches
written as calls of `t2t_launch`; a C++ compiler compiles it, and it stays as it is when the body of a kernel changes. Both halves keep the lines of the file.

A half that lacks something does not compile, or does not link: then the file is compiled whole. What could compile and mean something else raises Whole here:
conditions that torch's headers may decide, and kernels that have no name outside of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+|\\\n)
    |(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)
    |(?P<text>(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"
        |(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
    |(?P<sign><<<|>>>|::|.)""",
    re.VERBOSE | re.DOTALL,
)

DIRECTIVE = re.compile(r"#(?:[^\n\\]|\\\n|\\.)*")

OF_TORCH = re.compile(r"(?:torch|at|c10|aten|caffe2|pybind11|py|Tensor|TensorOptions|(?:AT|TORCH|C10|PYBIND11)_\w+)")
"""The names of torch's namespaces and macros, and of its tensors."""

HEADER_OF_TORCH = re.compile(r"#\s*include\s*[<\"](?:torch/|ATen/|c10/|caffe2/|pybind11/|Python\.h)")

SHARED_WORDS = frozenset("template struct class union enum using typedef inline constexpr const static".split())
"""What the declarations begin with that both halves may have: the linker sees one of them, or none."""

KNOWN_CONDITIONS = frozenset("defined __CUDA_ARCH__ __CUDACC__ __cplusplus".split())
"""What a condition inside of a function may ask for, beside macros of the file."""

LAUNCH = """\
#include <cuda_runtime.h>
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
namespace t2t {
template <typename... Parameters>
struct Launch {
  void (*kernel)(Parameters...);
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  void operator()(Parameters... given) const {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&given))..., nullptr};
    cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, shared, stream);
  }
};
}  // namespace t2t
template <typename... Parameters>
t2t::Launch<Parameters...> t2t_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared = 0,
                                      cudaStream_t stream = nullptr) {
  return {kernel, grid, block, shared, stream};
}
"""
"""What a launch is in the host half, and what CUDA's headers define for nvcc alone. Arguments become parameters as in any call."""

DEVICE = """\
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
"""
"""What torch's headers would have included for kernels."""

OF_ELEMENTS = "#include <c10/util/BFloat16.h>\n#include <c10/util/Half.h>\n"
"""torch's element types, where a kernel is made for one of them."""


class Whole(Exception):
    """The file has to be compiled whole; says why."""


@dataclass
class Halves:
    """A file in two."""

    host: str = ""
    device: str = ""
    templates: set[str] = field(default_factory=set)
    """The names of kernels that are templates: the host half says which of them there are to be."""


@dataclass(frozen=True)
class Token:
    """A token, and where it is."""

    kind: str
    text: str
    place: int


def tokens_of(text: str) -> list[Token]:
    """Returns the tokens of a text, a directive as one, without space and comments."""
    found: list[Token] = []
    place, is_first = 0, True
    while place < len(text):
        if text[place] == "#" and is_first and (directive := DIRECTIVE.match(text, place)):
            found.append(Token("directive", directive.group(), place))
            place = directive.end()
            continue
        token = TOKEN.match(text, place)
        if token is None:
            raise Whole("it cannot be read")
        kind = str(token.lastgroup)
        if kind == "space":
            is_first = is_first or "\n" in token.group()
        elif kind != "comment":
            if kind == "word" and token.group().endswith("R") and text[token.end() : token.end() + 1] == '"':
                raise Whole("a raw string does not end")
            is_first = False
            found.append(Token(kind, token.group(), place))
        place = token.end()
    return found


def halves(text: str, file: str, lines: Sequence[tuple[str, int]] | None = None) -> Halves:
    """Returns the halves of the text of `file`, the name that messages shall have; or of each of the text's lines its file and number there are `lines`. Raises Whole where it has to be compiled whole."""
    found = Halves()
    macros = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.MULTILINE))
    for item in items(tokens_of(text)):
        first, last = item[0], item[-1]
        own = text[first.place : last.place + len(last.text)]
        line = text.count("\n", 0, first.place) + 1
        name, number = (file, line) if lines is None else lines[line - 1]
        marked = f'#line {number} "{name}"\n'
        of_host, of_device = sides(item, own, macros, found)
        found.host += marked + of_host + "\n" if of_host else ""
        found.device += marked + of_device + "\n" if of_device else ""
    return found


def items(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yields the declarations at file scope and inside of namespaces, and what opens and closes those. Raises Whole where braces do not match."""
    item: list[Token] = []
    depth = parens = spaces = 0
    for token in tokens:
        if token.kind == "directive" and not item:
            yield [token]
            continue
        item.append(token)
        if token.text in ("(", "["):
            parens += 1
        elif token.text in (")", "]"):
            parens -= 1
        elif token.text == "{":
            if depth == 0 and opens_namespace(item):
                yield item
                item, spaces = [], spaces + 1
            else:
                depth += 1
        elif token.text == "}":
            depth -= 1
            if depth < 0 and spaces > 0 and len(item) == 1:
                yield item
                item, spaces, depth = [], spaces - 1, 0
            elif depth < 0:
                raise Whole("its braces do not match")
            elif depth == 0 and parens == 0 and not ends_with_semicolon(item):
                yield item
                item = []
        elif token.text == ";" and depth == 0 and parens == 0:
            yield item
            item = []
    if item or spaces:
        raise Whole("its braces do not match")


def opens_namespace(item: list[Token]) -> bool:
    """Tells whether tokens that end with a brace open a namespace, or a block of C names."""
    words = [token.text for token in item]
    return "namespace" in words[:2] or words[:-1] == ["extern", '"C"']


def ends_with_semicolon(item: list[Token]) -> bool:
    """Tells whether a declaration goes on after its brace: a type, or a value."""
    words = [token.text for token in item]
    body = words.index("{")
    head = words[:body]
    return (any(word in ("struct", "class", "union", "enum") for word in head) and "(" not in head) or "=" in outside(
        head
    )


def outside(words: list[str]) -> list[str]:
    """Returns the words that are in no parentheses and no template parameters."""
    found, depth = [], 0
    for word in words:
        depth -= word in (")", ">")
        if depth == 0:
            found.append(word)
        depth += word in ("(", "<")
    return found


def sides(item: list[Token], own: str, macros: set[str], found: Halves) -> tuple[str, str]:
    """Returns what of a declaration, whose text is `own`, is in the host half and in the device half. Raises Whole where that cannot be told."""
    words = [token.text for token in item if token.kind == "word"]
    if item[0].kind == "directive":
        return of_directive(own)
    if item[-1].text == "{":
        if words == ["namespace"]:
            raise Whole("it has a namespace without a name")
        return own, own
    if len(item) == 1 and own in ("}", ";"):
        return own, own
    require_known(item, macros)
    is_of_torch = any(OF_TORCH.fullmatch(word) for word in words)
    is_on_device = "__device__" in words or "__constant__" in words or "__managed__" in words
    launches = any(token.text == "<<<" for token in item)
    if "__global__" in words:
        if is_of_torch or launches:
            raise Whole("a kernel speaks of torch, or launches")
        return declared(item, own, found), own
    if is_on_device and "__host__" not in words:
        if is_of_torch or launches:
            raise Whole("what runs on the device speaks of torch, or launches")
        return "", own
    if is_of_torch or launches or words[:1] == [] or not SHARED_WORDS & {words[0]}:
        return launching(item, own), ""
    return own, own


def of_directive(own: str) -> tuple[str, str]:
    """Returns in which halves a directive at file scope is. Raises Whole for conditions."""
    found = re.match(r"#\s*(\w*)", own)
    kind = "" if found is None else found.group(1)
    if kind not in ("include", "define", "undef", "pragma") or "<<<" in own:
        raise Whole(f"it has `#{kind}` outside of functions")
    return own, "" if HEADER_OF_TORCH.match(own) else own


def require_known(item: list[Token], macros: set[str]) -> None:
    """Raises Whole for a condition inside of a declaration that headers may decide."""
    for token in item:
        if token.kind == "directive" and re.match(r"#\s*(?:if|elif|ifdef|ifndef)", token.text):
            words = set(re.findall(r"[A-Za-z_]\w*", token.text)) - {"if", "elif", "ifdef", "ifndef"}
            if not words <= KNOWN_CONDITIONS | macros:
                raise Whole("a condition of the preprocessor may depend on headers")


def declared(item: list[Token], own: str, found: Halves) -> str:
    """Returns the declaration of a kernel. Raises Whole for one that the other half cannot name."""
    body = next((token for token in item if token.text == "{"), None)
    head = [token.text for token in item if body is None or token.place < body.place]
    if "static" in head:
        raise Whole("a kernel is `static`")
    if head[0] == "template":
        if "<" in head and head[1:3] == ["<", ">"]:
            raise Whole("a template of a kernel is specialized")
        found.templates.add(name_of(head))
    return own if body is None else own[: body.place - item[0].place] + ";"


def name_of(head: list[str]) -> str:
    """Returns the name of a kernel that `head` declares: it stands before its parameters, which `__launch_bounds__(…)` are not."""
    place = head.index("__global__")
    while place < len(head):
        if head[place] == "(":
            if head[place - 1] != "__launch_bounds__":
                return head[place - 1]
            place = closing(head, place)
        place += 1
    raise Whole("a kernel has no parameters")


def closing(words: list[str], opening: int) -> int:
    """Returns the place of the parenthesis that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if depth == 0:
            return place
    raise Whole("its parentheses do not match")


def launching(item: list[Token], own: str) -> str:
    """Returns a declaration with its launches written as calls. Raises Whole for a launch that cannot be read."""
    base = item[0].place
    changes: list[tuple[int, int, str]] = []
    for place, token in enumerate(item):
        if token.text != "<<<":
            continue
        first = callee(item, place)
        end = next((at for at in range(place, len(item)) if item[at].text == ">>>"), None)
        if end is None:
            raise Whole("a launch does not end")
        start = item[first].place - base
        changes.append((start, start, "t2t_launch("))
        changes.append((token.place - base, token.place - base + 3, ", "))
        changes.append((item[end].place - base, item[end].place - base + 3, ")"))
    for start, stop, text in sorted(changes, reverse=True):
        own = own[:start] + text + own[stop:]
    return own


def callee(item: list[Token], launch: int) -> int:
    """Returns the place of the first token of what is launched at `launch`: a name with its namespaces and template arguments. Raises Whole for anything else."""
    place, depth = launch - 1, 0
    if place >= 0 and item[place].text == ">":
        while place >= 0:
            depth += (item[place].text == ">") - (item[place].text == "<")
            place -= 1
            if depth == 0:
                break
    if place < 0 or depth or item[place].kind != "word":
        raise Whole("what is launched is no name")
    while place >= 2 and item[place - 1].text == "::" and item[place - 2].kind == "word":
        place -= 2
    return place - 1 if place >= 1 and item[place - 1].text == "::" else place


def with_launches(host: str) -> str:
    """Returns the whole host half: with what launches are."""
    return LAUNCH + host


def instantiated(halves_: Halves, symbols: list[str]) -> str:
    """Returns the whole device half: with what torch's headers would have included, and with those templates of kernels that the host half asks for. `symbols` are its undefined symbols, demangled."""
    wanted = [
        f"template __global__ {symbol};\n"
        for symbol in sorted(set(symbols))
        if (name := re.match(r"void (?:\w+::)*(\w+)<", symbol)) and name.group(1) in halves_.templates
    ]
    of_elements = OF_ELEMENTS if any("c10::" in one for one in wanted) else ""
    return DEVICE + of_elements + halves_.device + "".join(wanted)
