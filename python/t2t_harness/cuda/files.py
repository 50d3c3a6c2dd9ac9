"""Files in C++ and CUDA C++ that a Python file has torch build (`load`): what it would build of them, and what they say with what they include.

It compiles nothing, and imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from t2t_harness.cuda import inline, split
from t2t_harness.cuda.inline import Extension, Refused, Texts

Line = tuple[str, int]
"""A file, and a line of it."""

INCLUDE = re.compile(r'#\s*include\s*"([^"\n]+)"')
ONCE = re.compile(r"#\s*pragma\s+once\b")
GUARD = re.compile(r"#\s*ifndef\s+(\w+)\s*(?://.*|/\*.*)?$")


@dataclass(frozen=True)
class Source:
    """What is compiled of a file: its text, with the files of the workspace that it includes in the place of their includes."""

    file: str
    """Its name where it is compiled."""
    text: str
    lines: Sequence[Line] | None = None
    """Of each line of the text where it stands in the workspace; None where it stands in no file."""
    rest: str = ""
    """What tells one state of the files that it may find elsewhere from another."""

    @property
    def is_cuda(self) -> bool:
        """Tells whether nvcc compiles it."""
        return self.file.endswith((".cu", ".cuh"))

    @property
    def marked(self) -> str:
        """Returns the text with directives that say where it stands."""
        if self.lines is None:
            return self.text
        found, last = [], ("", 0)
        for line, (file, number) in zip(self.text.split("\n"), self.lines, strict=True):
            if (file, number) != (last[0], last[1] + 1):
                found.append(f'#line {number} "{file}"')
            found.append(line)
            last = (file, number)
        return "\n".join(found)


def called(
    root: str,
    name: str,
    sources: Texts,
    extra_cflags: Texts = None,
    extra_cuda_cflags: Texts = None,
    extra_sycl_cflags: Texts = None,
    extra_ldflags: Texts = None,
    extra_include_paths: Texts = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Extension:
    """Returns what `load` builds of these arguments, which are torch's but for the workspace `root`. Where it builds and what it prints make no difference.

    Files of the workspace are known by their paths in it: what they say is in the key. Raises Refused for a file elsewhere, for SYCL and for programs.
    """
    if extra_sycl_cflags or with_sycl:
        raise Refused("t2t builds no SYCL")
    if is_standalone:
        raise Refused(f"`{name}` is a program: t2t builds what a Python file loads")
    found = []
    for source in inline.listed(sources):
        file = within(root, source)
        if file is None:
            raise Refused(f"`{name}` is built of `{source}`, which is no file of the workspace: no key would hold it")
        found.append(file)
    return Extension(
        name=name,
        cpp=(),
        cuda=(),
        cflags=flags(root, extra_cflags),
        cuda_cflags=flags(root, extra_cuda_cflags),
        ldflags=flags(root, extra_ldflags),
        include_paths=tuple(within(root, path.strip()) or path.strip() for path in inline.listed(extra_include_paths)),
        with_cuda=any(file.endswith((".cu", ".cuh")) for file in found) if with_cuda is None else with_cuda,
        is_python_module=is_python_module,
        files=tuple(found),
    )


def within(root: str, path: str) -> str | None:
    """Returns the path of what lies at `path` relative to the workspace, where relative paths begin, too; None outside of it."""
    for real in (os.path.abspath, os.path.realpath):
        home = real(root)
        found = os.path.relpath(real(os.path.join(root, path)), home)
        if found != ".." and not found.startswith("../"):
            return found
    return None


def flags(root: str, texts: Texts) -> tuple[str, ...]:
    """Returns flags, in which paths of the workspace are relative to it: those of another clone are the same."""
    found = []
    for flag in inline.listed(texts):
        flag = flag.strip()
        place = flag.find("/")
        path = within(root, flag[place:]) if place >= 0 else None
        found.append(flag if path is None else flag[:place] + path)
    return tuple(found)


def sources_of(extension: Extension, root: Path, known: Collection[str]) -> list[Source]:
    """Returns what is compiled of an extension. Of the workspace at `root` there are the files that are `known`, relative to it; others are not included."""
    if not extension.files:
        kernels = [Source(inline.KERNELS, extension.cuda_text)] if extension.cuda else []
        return [Source(inline.MAIN, extension.main_text), *kernels]
    rest = state_of(root, known) if includes_below(extension) else ""
    found = []
    for place, file in enumerate(extension.files):
        flat = Flat(root, known)
        flat.enter(file, ())
        # Two of them may have the same name, in different folders.
        found.append(Source(f"{place}_{posixpath.basename(file)}", "\n".join(flat.text), flat.lines, rest))
    return found


def includes_below(extension: Extension) -> bool:
    """Tells whether an extension looks for what it includes in folders of the workspace."""
    paths = [
        *extension.include_paths,
        *(flag[2:] for flag in (*extension.cflags, *extension.cuda_cflags) if flag[:2] == "-I"),
    ]
    return bool(extension.files) and any(not path.startswith("/") for path in paths)


def state_of(root: Path, known: Collection[str]) -> str:
    """Returns a digest of files, 64 hexadecimal digits."""
    content = {file: hashlib.sha256((root / file).read_bytes()).hexdigest() for file in known}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass
class Flat:
    """A file with what it includes in the place of the includes."""

    root: Path
    known: Collection[str]
    """Files that may be included, relative to `root`."""
    text: list[str] = field(default_factory=list)
    """Its lines."""
    lines: list[Line] = field(default_factory=list)
    """Where each of them stands."""
    entered: set[str] = field(default_factory=set)
    """Files that are included once, and were."""

    def enter(self, file: str, above: tuple[str, ...]) -> None:
        """Adds a file, which those `above` include, one the other. One that includes itself for ever is left to the compiler to refuse."""
        text = (self.root / file).read_text(encoding="utf-8", errors="surrogateescape")
        try:
            tokens = split.tokens_of(text)
        except split.Whole:
            tokens = []
        directives = [token for token in tokens if token.kind == "directive"]
        dropped = {token.place for token in directives if ONCE.match(token.text)} | guards(tokens)
        if dropped and file in self.entered:
            return
        self.entered.add(file)
        at = 0
        for token in directives:
            named = INCLUDE.match(token.text)
            found = None if named is None else posixpath.normpath(f"{posixpath.dirname(file)}/{named[1]}")
            is_known = found in self.known and found not in (*above, file)
            if not is_known and token.place not in dropped:
                continue
            self.add(file, text, at, token.place)
            at = token.place + len(token.text)
            if is_known and found is not None:
                self.enter(found, (*above, file))
        self.add(file, text, at, len(text))

    def add(self, file: str, text: str, start: int, end: int) -> None:
        """Adds a part of a file's text."""
        first = text.count("\n", 0, start) + 1
        for place, line in enumerate(text[start:end].split("\n")):
            self.text.append(line)
            self.lines.append((file, first + place))


def guards(tokens: Sequence[split.Token]) -> set[int]:
    """Returns the places of the directives that have a file included once: an `#ifndef` around all of it, of a macro that it defines first. None where it has no such."""
    if len(tokens) < 3 or any(one.kind != "directive" for one in (tokens[0], tokens[1], tokens[-1])):
        return set()
    guard = GUARD.match(tokens[0].text)
    if guard is None or not re.match(rf"#\s*define\s+{guard[1]}\b", tokens[1].text):
        return set()
    depth = 0
    for token in tokens:
        word = re.match(r"#\s*(\w+)", token.text) if token.kind == "directive" else None
        if word is not None and depth == 1 and word[1] in ("else", "elif"):
            return set()
        depth += 0 if word is None else word[1].startswith("if") - (word[1] == "endif")
        if depth == 0 and token is not tokens[-1]:
            return set()
    return {tokens[0].place, tokens[-1].place} if depth == 0 else set()
