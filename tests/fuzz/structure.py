"""Mistakes in nested values: keys dropped, renamed and repeated, values of another kind, out of bounds, exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

Path = tuple[Any, ...]

ODD = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 2, 3, 5, 10**6, 10**9, 10**18, 10**40, -(10**18), 0.0, 0.5, -0.5, 1.5, 1e-300,
        1e300, float("inf"), float("-inf"), float("nan"), "", " ", "5", "null", "a b", "../../x", "\x85", "é" * 3,
        "\u202e", "x" * 300, "{name: bert}", [], {}, [[]], [None], {"name": None}, {"name": "bert", "x": 1},
        {"a": {"b": {"c": 1}}}, [1, 1], ["a", "a"], {"": 1}, {"like": "task"}, [float("nan")],
    ]
)  # fmt: skip
NAMES = st.sampled_from(
    [
        "name", "kind", "start", "like", "corpus", "teacher", "seeds", "budget", "tokens", "epochs", "head", "stages",
        "base", "variants", "claims", "suite", "lines", "path", "text", "label", "task", "train", "x", "", "5", "a.b",
    ]
)  # fmt: skip


def paths_of(value: Any, before: Path = ()) -> Iterator[Path]:
    """The path of every value inside `value`, outermost first."""
    if isinstance(value, dict):
        inner: Iterator[tuple[Any, Any]] = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    else:
        return
    for key, one in inner:
        yield (*before, key)
        yield from paths_of(one, (*before, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def mistaken(draw: st.DrawFn, value: Any) -> Any:
    """`value` with one to three mistakes."""
    value = deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        paths = list(paths_of(value))
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        _change(draw, value, path, paths)
    return value


def _change(draw: st.DrawFn, value: Any, path: Path, paths: list[Path]) -> None:
    holder, key = at(value, path[:-1]), path[-1]
    match draw(st.sampled_from(["odd", "odd", "number", "drop", "rename", "repeat", "exchange", "wrap", "another"])):
        case "odd":
            holder[key] = deepcopy(draw(ODD))
        case "number" if isinstance(holder[key], int | float):
            holder[key] = draw(st.integers(-(2**70), 2**70) | st.floats())
        case "drop":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[draw(NAMES)] = holder.pop(key)
        case "repeat":
            holder[key] = [deepcopy(holder[key])] * draw(st.integers(2, 3))
        case "exchange":
            other = draw(st.sampled_from(paths))
            if path[: len(other)] != other and other[: len(path)] != path:
                there = at(value, other[:-1])
                holder[key], there[other[-1]] = there[other[-1]], holder[key]
        case "wrap":
            holder[key] = draw(st.sampled_from([[holder[key]], {"name": holder[key]}, {str(key): holder[key]}]))
        case _:  # such as the name of another stage, so that stages wait for each other
            holder[key] = deepcopy(at(value, draw(st.sampled_from(paths))))


@st.composite
def misspelt(draw: st.DrawFn, text: str) -> str:
    """`text` with a line or some characters dropped, repeated, moved, or put in."""
    lines = text.splitlines(keepends=True)
    number = draw(st.integers(0, len(lines) - 1))
    match draw(st.sampled_from(["drop", "repeat", "indent", "put in", "cut"])):
        case "drop":
            del lines[number]
        case "repeat":
            lines.insert(draw(st.integers(0, len(lines))), lines[number])
        case "indent":
            lines[number] = " " * draw(st.integers(0, 9)) + lines[number].lstrip()
        case "put in":
            column = draw(st.integers(0, len(lines[number]) - 1))
            odd = draw(
                st.sampled_from(
                    ["!!python/object:os.system ", "&a ", "*a ", "<<: ", "? ", "- ", "{", "[", "'", '"', "#", "\t", ":",
                     "%YAML 9\n", "---\n", "...\n", "\x07", "\ufeff", "| ", "2001-99-99", "0x_", "0b2", "1_0", "!!int "]
                )
                | st.text(max_size=3)
            )  # fmt: skip
            lines[number] = lines[number][:column] + odd + lines[number][column:]
        case _:
            lines[number:] = [lines[number][: draw(st.integers(0, 40))]]
    return "".join(lines)
