"""Circles between the files of a Rust crate, which the compiler allows and a reader pays for.

An edge is a name that one file takes from another, by `use` or by a path in the code. A name that a file only passes on
is taken from the file that has it, and `mod child;` takes nothing. Tests are left out.

    python tests/rust_circles.py            the files of each circle; exit code 1 if there is one
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Module = tuple[str, ...]  # ("breakdown", "slices"); () is the crate's root
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod \w+(?:;|\s*\{.*\Z)", re.DOTALL)
USE = re.compile(r"(pub\s+)?\buse\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


def circles(source: Path) -> list[list[str]]:
    """The files of each circle among those below a crate's `src`, by their names below it."""
    files = _modules(source)
    texts = {module: _plain(path.read_text()) for module, path in files.items()}
    passed_on = {module: _passed_on(module, text, files) for module, text in texts.items()}
    names = sorted(files)
    place = {module: number for number, module in enumerate(names)}
    edges = {
        (place[module], place[other])
        for module, text in texts.items()
        for path in _taken(module, text, files)
        if (other := _home(path, files, passed_on)) is not None and other != module
    }
    if not edges:
        return []
    rows, columns = np.array(sorted(edges)).T
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    _, label = connected_components(graph, directed=True, connection="strong")
    found = defaultdict(list)
    for module in names:
        found[label[place[module]]].append(str(files[module].relative_to(source)))
    return [sorted(circle) for circle in found.values() if len(circle) > 1]


def _plain(text: str) -> str:
    """Without comments, tests, and how far a name is seen."""
    return re.sub(r"\bpub\s*\([^)]*\)", "pub", TESTS.sub("", COMMENT.sub("", text)))


def _modules(source: Path) -> dict[Module, Path]:
    found = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] in ("mod", "lib", "main"):
            parts = parts[:-1]
        if parts[-1:] != ("tests",):
            found[parts] = path
    return found


def _taken(module: Module, text: str, files: dict[Module, Path]) -> Iterator[Module]:
    """Every path that a file names, from the crate's root."""
    for name, inside in _inline(text):
        text = text.replace(inside, "")
        yield from _taken((*module, name), inside, files)
    for is_public, tree in USE.findall(text):
        if not is_public:
            yield from filter(None, (_absolute(module, path, files) for path in _expanded(tree)))
    code = USE.sub("", text)
    for found in PATH.findall(code):
        if (path := _absolute(module, found.split("::"), files)) is not None:
            yield path
    for child in (one[-1] for one in files if one[:-1] == module and one):
        for item in re.findall(rf"(?<![\w:]){child}::(\w+)", code):
            yield (*module, child, item)


def _inline(text: str) -> Iterator[tuple[str, str]]:
    """Name and body of the modules that stand within a file."""
    for found in re.finditer(r"\bmod (\w+)\s*\{", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield found[1], text[found.end() : end]


def _passed_on(module: Module, text: str, files: dict[Module, Path]) -> dict[str, Module]:
    """{name: its path} of what a file passes on."""
    for _, inside in _inline(text):
        text = text.replace(inside, "")
    trees = (tree for _, tree in USE.findall(text))  # its children have what is private, too
    paths = (_absolute(module, path, files) for tree in trees for path in _expanded(tree))
    return {path[-1]: path for path in paths if path}


def _expanded(tree: str) -> Iterator[list[str]]:
    """`a::{b, c::d as e}` as [a, b] and [a, c, d]."""
    tree = re.sub(r"\s+as\s+\w+", "", tree).strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        yield [part.strip() for part in tree.split("::") if part.strip()]
        return
    prefix = [part.strip() for part in head.split("::") if part.strip()]
    for part in _split(rest[: rest.rindex("}")]):
        for path in _expanded(part):
            yield prefix if path == ["self"] else [*prefix, *path]


def _split(inside: str) -> Iterator[str]:
    depth, start = 0, 0
    for place, character in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            yield inside[start:place]
            start = place + 1
    if inside[start:].strip():
        yield inside[start:]


def _absolute(module: Module, path: list[str], files: dict[Module, Path]) -> Module | None:
    """A path from the crate's root; None if it leads out of the crate."""
    here, rest = module, list(path)
    if rest[0] == "crate":
        here, rest = (), rest[1:]
    elif rest[0] == "self":
        rest = rest[1:]
    elif rest[0] != "super" and (*module, rest[0]) not in files:
        return None
    while rest and rest[0] == "super":
        here, rest = here[:-1], rest[1:]
    return (*here, *rest)


def _home(path: Module, files: dict[Module, Path], passed_on: dict[Module, dict[str, Module]]) -> Module | None:
    """The file that has what a path names."""
    for _ in range(9):  # names may be passed on more than once
        module = next(path[:end] for end in range(len(path), -1, -1) if path[:end] in files)
        if module == path:
            return module
        further = passed_on[module].get(path[len(module)])
        if further is None or further == path[: len(module) + 1]:
            return module
        path = (*further, *path[len(module) + 1 :])
    return None


def main() -> int:
    """Every crate's."""
    found = [(crate, circle) for crate in sorted(Path("crates").iterdir()) for circle in circles(crate / "src")]
    for crate, circle in found:
        print(f"{crate}: {', '.join(circle)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
