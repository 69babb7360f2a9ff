"""The map of the project: its packages ("rooms"), who imports whom, and rooms that import each other in a circle.

python -m tests.architecture.map                          # writes docs/map.svg (`make map`)
python -m tests.architecture.map --root DIR --out FILE    # of another checkout

A row of boxes imports only rows below it. Of all imports the transitive reduction is drawn: an arrow that others imply
is left out. Rooms that import each other in a circle are one red box.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "map.svg"
PACKAGES = ("flows", "tasks", "pipelines")
Imports: TypeAlias = dict[str, set[str]]
"""Room → the rooms that it imports."""
Group: TypeAlias = tuple[str, ...]
"""Rooms that import each other in a circle; usually one alone."""

WIDTH, MARGIN, GAP, PADDING = 900, 24, 14, 10
LINE, TITLE = 15, 18
"""Pixels of a line of small text, and of a room's name."""
CHARACTER = 6.1
"""Pixels of a character of small text, on average."""
BOLD = 1.5
"""How much wider the characters of a room's name are."""
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1d2126 } .name { font-weight: 600; font-size: 13.5px }
.small { fill: #646c76 } .band { fill: #f5f4ef } .box { fill: #fdfdfb; stroke: #8a929b }
.cycle { stroke: #b3362b; stroke-width: 2 }
.arrow { fill: none; stroke: #1f5fa8; stroke-opacity: .45 } .tip { fill: #1f5fa8 }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e6e8 } .small { fill: #9aa3ad } .band { fill: #1c2025 } .box { fill: #15181c; stroke: #646c76 }
  .cycle { stroke: #f08d80 } .arrow { stroke: #7fb2f0 } .tip { fill: #7fb2f0 } .paper { fill: #15181c }
}
.paper { fill: #fdfdfb }
"""


@dataclass(frozen=True)
class Box:
    """A drawn group of rooms: its upper left corner and its size in pixels."""

    group: Group
    texts: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


def main() -> None:
    """Write the map."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    options.out.write_text(render(options.root.resolve()), encoding="utf-8")


def render(root: Path = ROOT) -> str:
    """The whole picture, SVG."""
    imports = room_imports(root)
    parts: list[str] = []
    boxes: dict[str, Box] = {}
    y: float = MARGIN
    for package in PACKAGES:
        inside = {room: {one for one in used if one in imports} for room, used in imports.items()}
        own = {room: used for room, used in inside.items() if room.partition(".")[0] == package}
        top = y
        y += TITLE + GAP
        for row in rows({room: {one for one in used if one in own} for room, used in own.items()}):
            y = _place(row, root, y, boxes) + 2 * GAP
        parts.append(f'<rect class="band" x="8" y="{top:.0f}" width="{WIDTH - 16}" height="{y - top:.0f}" rx="8"/>')
        parts.append(f'<text class="name" x="{MARGIN}" y="{top + TITLE:.0f}">{package}/</text>')
        y += GAP
    arrows = [arrow for arrow in _arrows(imports, boxes) if arrow]
    drawn = [_drawn(box) for box in dict.fromkeys(boxes.values())]
    size = f'width="{WIDTH}" height="{y:.0f}" viewBox="0 0 {WIDTH} {y:.0f}"'
    tip = '<marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
    tip += '<path class="tip" d="M0,0 L7,3 L0,6 z"/></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Rooms and their imports">'
    paper = f'<style>{STYLE}</style><defs>{tip}</defs><rect class="paper" width="{WIDTH}" height="{y:.0f}"/>'
    return "\n".join([head, paper, *parts, *arrows, *drawn, "</svg>", ""])


def room_imports(root: Path) -> Imports:
    """Each room directly below a package, and the other rooms that its modules import when the program runs."""
    import grimp

    sys.path.insert(0, str(root))
    try:
        graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    finally:
        sys.path.remove(str(root))
    imports: Imports = defaultdict(set)
    for module in sorted(graph.modules):
        importer = room(module)
        if importer in PACKAGES:
            continue
        imports[importer] |= {used for one in graph.find_modules_directly_imported_by(module) if (used := room(one))}
        imports[importer] -= {importer, *PACKAGES}
    return dict(imports)


def room(module: str) -> str:
    """`pipelines.training` of `pipelines.training.loop.fit`."""
    return ".".join(module.split(".")[:2])


def groups(imports: Imports) -> list[Group]:
    """The rooms, those that import each other in a circle together; imported groups first (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[Group] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for used in sorted(imports[node]):
            if used not in index:
                visit(used)
                low[node] = min(low[node], low[used])
            elif used in stack:
                low[node] = min(low[node], index[used])
        if low[node] == index[node]:
            begin = stack.index(node)
            result.append(tuple(sorted(stack[begin:])))
            del stack[begin:]

    for node in sorted(imports):
        if node not in index:
            visit(node)
    return result


def rows(imports: Imports) -> list[list[Group]]:
    """Groups in rows: each as low as the groups that it imports allow, the top row first."""
    height: dict[str, int] = {}
    levels: dict[int, list[Group]] = defaultdict(list)
    for group in groups(imports):
        used = {one for member in group for one in imports[member]} - set(group)
        level = 1 + max((height[one] for one in used), default=-1)
        height |= dict.fromkeys(group, level)
        levels[level].append(group)
    return [levels[level] for level in sorted(levels, reverse=True)]


def _place(row: list[Group], root: Path, y: float, boxes: dict[str, Box]) -> float:
    """Put the boxes of a row into `boxes`, centred, in several lines where one is too narrow; the y below them."""
    lines: list[list[tuple[Group, tuple[str, ...], float, float]]] = [[]]
    used = 0.0
    for group in row:
        texts = _texts(group, root)
        name, *small = (len(one) * CHARACTER for one in texts)
        width = max(90.0, 2 * PADDING + max(name * BOLD, *small))
        height = 2 * PADDING + TITLE + (len(texts) - 1) * LINE - 4
        if used + width > WIDTH - 2 * MARGIN and lines[-1]:
            lines.append([])
            used = 0.0
        lines[-1].append((group, texts, width, height))
        used += width + GAP
    for line in lines:
        x = (WIDTH - sum(width + GAP for _, _, width, _ in line) + GAP) / 2
        for group, texts, width, height in line:
            boxes |= dict.fromkeys(group, Box(group, texts, x, y, width, height))
            x += width + GAP
        y += max(height for _, _, _, height in line) + GAP
    return y - GAP


def _texts(group: Group, root: Path) -> tuple[str, ...]:
    """What a box shows: its name, its number of modules, and the rooms inside it."""
    files = [path for one in group for path in _files(root / one.replace(".", "/"))]
    counted = f"{len(files)} module{'s' if len(files) > 1 else ''}"
    if len(group) > 1:
        names = [one.partition(".")[2] for one in group]
        return (f"{len(group)} rooms, one circle of imports", counted, *_wrapped(names))
    folder = root / group[0].replace(".", "/")
    inside = sorted(path.parent.name for path in folder.glob("*/__init__.py")) if folder.is_dir() else []
    return (group[0].partition(".")[2], counted, *_wrapped(inside))


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def _wrapped(names: list[str], width: int = 62) -> list[str]:
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) < width:
            lines[-1] += f" · {name}"
        else:
            lines.append(name)
    return lines


def _arrows(imports: Imports, boxes: dict[str, Box]) -> list[str]:
    """The transitive reduction of the imports between boxes."""
    direct: dict[Group, set[Group]] = defaultdict(set)
    for importer, used in imports.items():
        direct[boxes[importer].group] |= {boxes[one].group for one in used} - {boxes[importer].group}
    reach: dict[Group, set[Group]] = {}

    def reached(group: Group) -> set[Group]:
        if group not in reach:
            reach[group] = direct[group].union(*(reached(one) for one in direct[group]))
        return reach[group]

    return [
        _arrow(boxes[group[0]], boxes[one[0]])
        for group in sorted(direct)
        for one in sorted(direct[group])
        if not any(one in reached(other) for other in direct[group] - {one})
    ]


def _arrow(start: Box, end: Box) -> str:
    x0, y0 = start.x + start.width / 2, start.y + start.height
    x1, y1 = end.x + end.width / 2, end.y
    bend = max(12.0, (y1 - y0) / 2)
    curve = f"M{x0:.0f},{y0:.0f} C{x0:.0f},{y0 + bend:.0f} {x1:.0f},{y1 - bend:.0f} {x1:.0f},{y1:.0f}"
    return f'<path class="arrow" d="{curve}" marker-end="url(#tip)"/>'


def _drawn(box: Box) -> str:
    kind = "box cycle" if len(box.group) > 1 else "box"
    size = f'width="{box.width:.0f}" height="{box.height:.0f}"'
    rect = f'<rect class="{kind}" x="{box.x:.0f}" y="{box.y:.0f}" {size} rx="5"/>'
    x, y = box.x + PADDING, box.y + PADDING + 10
    texts = [f'<text class="name" x="{x:.0f}" y="{y:.0f}">{escape(box.texts[0])}</text>']
    texts += [
        f'<text class="small" x="{x:.0f}" y="{y + TITLE - 2 + n * LINE:.0f}">{escape(line)}</text>'
        for n, line in enumerate(box.texts[1:])
    ]
    return "\n".join([rect, *texts])


if __name__ == "__main__":
    main()
