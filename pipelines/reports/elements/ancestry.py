"""The lineage diagram: tables on the left, then stages in the direction of weights and teachers, int8 on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import duration
from pipelines.reports.elements.wording import plain

NODE_WIDTH, NODE_HEIGHT, COLUMN, LINE = 132, 54, 164, 72
DATA_HEIGHT = 36
WIDEST = 185
"""Size of the type in pixels times number of characters of the longest name that a box holds."""
SHORT = 8
"""Digits of a fingerprint that are shown."""
KINDS = {"cached": translatable("cached"), "stored": translatable("stored")}
"""Kind of a stage that was not trained here → how it is shown."""
ROLES = {
    "start": translatable("start"),
    "teacher": translatable("teacher"),
    "data": translatable("data"),
    "features": translatable("features"),
}
"""Role of a parent → how it is shown."""


@dataclass
class Node:
    """A stage with all its seeds, or a group of tables."""

    name: str
    lines: list[str]
    kind: str
    """`trained`, `cached`, `stored` or `data`."""
    parents: dict[tuple[str, str], None] = field(default_factory=dict)
    """Another node's key and the role it plays (start, teacher, data), in the order of the records."""
    column: int = 0
    y: float = 0.0

    @property
    def height(self) -> int:
        return DATA_HEIGHT if self.kind == "data" else NODE_HEIGHT


def draw_ancestry(steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Draw the graph of everything that `steps` made or came from, without evaluations, which make no model."""
    return draw_nodes(_nodes(steps, records), message("Lineage"))


def draw_nodes(nodes: dict[str, Node], label: str) -> Markup:
    """Draw `nodes`, parents before children, with their edges; `label` is the drawing's accessible name."""
    _lay_out(nodes)
    first = min(node.column for node in nodes.values())  # 0 where there is data
    for node in nodes.values():
        node.column -= first
    width = COLUMN * (max(node.column for node in nodes.values()) + 1) - (COLUMN - NODE_WIDTH) + 4
    height = max(node.y + node.height for node in nodes.values()) + 4
    edges = [_edge(nodes[parent], node, role) for node in nodes.values() for parent, role in node.parents]
    return Markup(
        '<svg class="ancestry" viewBox="0 0 {w} {h}" style="min-width:{m}px;max-width:{w}px" role="img" '
        'aria-label="{l}">{p}</svg>'
    ).format(
        w=width,
        h=height,
        l=label,
        m=round(width * 0.75),
        p=Markup("").join([*edges, *map(_box, nodes.values())]),
    )


def _nodes(steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]) -> dict[str, Node]:
    by_fingerprint = {step["fingerprint"]: step for step in steps}
    names = {fingerprint: _stage_name(record, steps, by_fingerprint) for fingerprint, record in records.items()}
    nodes: dict[str, Node] = {}
    for fingerprint in _in_order([*by_fingerprint, *records], records):
        record = records[fingerprint]
        if record["kind"] in ("evaluate", "probe"):
            continue
        step, name = by_fingerprint.get(fingerprint), names[fingerprint]
        if name not in nodes:
            kind = "stored" if step is None else "cached" if step["cached"] else "trained"
            nodes[name] = Node(name, [fingerprint[:SHORT]], kind)
        node = nodes[name]
        node.lines.append(fingerprint[:SHORT])
        if step is not None and not step["cached"]:
            node.kind = "trained"
        for role, parent in record["parents"].items():
            if parent in records:
                node.parents[names[parent], role] = None
        tables = _tables(record)
        for table, digest in tables.items():
            # a table and a stage often share a name
            nodes.setdefault(f"table {table}", Node(plain(table), [digest], "data"))
            node.parents[f"table {table}", "data"] = None
    for name, node in nodes.items():
        if node.kind != "data":
            own_steps = [step for step in steps if names.get(step["fingerprint"]) == name]
            seeds = sum(called == name for called in names.values())
            several = (
                message("{first} · {seeds} seeds", first=node.lines[0], seeds=seeds) if seeds > 1 else node.lines[0]
            )
            seconds = sum(step["seconds"] or 0 for step in own_steps if not step["cached"])
            trained = message("trained · {duration}", duration=duration(seconds))
            node.lines = [several, trained if node.kind == "trained" else message(KINDS[node.kind])]
    return nodes


def _stage_name(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], known: Mapping[str, Any]) -> str:
    """The name of the stage, with its recipe if that is another one."""
    here = {step["stage"] for step in steps}
    if record["fingerprint"] not in known and record["stage"] in here:
        return f"{record['recipe']}/{record['stage']}"
    return str(record["stage"])


def _tables(record: Mapping[str, Any]) -> dict[str, str]:
    """Names of the tables that a step read, the labelled ones as one, each with the first digits of its digest."""
    named: dict[str, list[str]] = {}
    for table, source in sorted(record["data"].items()):
        name = "labelled task" if table in ("train", "validation", "test") else table.replace("_", " ")
        named.setdefault(name, []).append(source["digest"].removeprefix("md5:")[:SHORT])
    return {name: digests[0] for name, digests in named.items()}


def _in_order(requested: Sequence[str], records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The `requested` fingerprints that have a record, in that order, except that parents precede their children."""
    ordered: dict[str, None] = {}

    def visit(fingerprint: str) -> None:
        if fingerprint in records and fingerprint not in ordered:
            for parent in records[fingerprint]["parents"].values():
                visit(parent)
            ordered[fingerprint] = None

    for fingerprint in requested:
        visit(fingerprint)
    return list(ordered)


def _lay_out(nodes: dict[str, Node]) -> None:
    """Set each node's column by its longest path from the data, and its line near those of its parents."""
    for node in nodes.values():  # parents come before children
        stages = [nodes[parent].column for parent, role in node.parents if role != "data"]
        if node.kind != "data":
            node.column = max(stages, default=0) + 1
    for key, node in nodes.items():
        if node.kind == "data":
            node.column = min(child.column for child in nodes.values() if (key, "data") in child.parents) - 1
    taken: dict[int, float] = {}
    for column in range(max(node.column for node in nodes.values()) + 1):
        members = [node for node in nodes.values() if node.column == column]
        members.sort(key=lambda node: (node.kind == "data" and column > 0, _preferred_line(node, nodes)))
        for node in members:
            node.y = taken.get(column, 4.0)
            taken[column] = node.y + LINE


def _preferred_line(node: Node, nodes: Mapping[str, Node]) -> float:
    above = [nodes[parent].y for parent, role in node.parents if role != "data"]
    # a stage that others continue goes on the first line, where fewer edges cross
    followed = any(node.name == parent for other in nodes.values() for parent, _ in other.parents)
    return (sum(above) / len(above) if above else 0.0) - (1000 if followed else 0)


def _edge(parent: Node, child: Node, role: str) -> Markup:
    x1, y1 = parent.column * COLUMN + 2 + NODE_WIDTH, parent.y + parent.height / 2
    x2, y2 = child.column * COLUMN + 2, child.y + child.height / 2
    kind = role.partition(":")[0]
    if kind == "teacher":  # next to the line of the weights, if both come from one stage
        y1, y2 = y1 + 12, y2 + 12
    middle = x2 - (COLUMN - NODE_WIDTH) / 2 - 4
    bend = f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"
    return Markup('<path class="edge {k}" d="{d}"><title>{a} → {b} ({r})</title></path>').format(
        k=kind, d=bend, a=parent.name, b=child.name, r=role.replace(kind, message(ROLES.get(kind, kind)), 1)
    )


def _box(node: Node) -> Markup:
    x = node.column * COLUMN + 2
    size = round(min(11.0, WIDEST / max(1, len(node.name))), 1)
    lines = Markup("").join(
        Markup('<text class="{c}" x="{x}" y="{y}">{t}</text>').format(
            c="mono" if position == 0 else "mark",
            x=x + 10,
            y=node.y + 30 + 15 * position - (1 if node.kind == "data" else 0),
            t=line,
        )
        for position, line in enumerate(node.lines)
    )
    return Markup(
        '<g class="node {k}"><rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{r}"/>'
        '<text class="name" style="font-size:{s}px" x="{tx}" y="{ty}">{n}</text>{lines}</g>'
    ).format(
        k=node.kind,
        x=x,
        y=node.y,
        w=NODE_WIDTH,
        h=node.height,
        r=18 if node.kind == "data" else 6,
        s=size,
        tx=x + 10,
        ty=node.y + (14 if node.kind == "data" else 16),
        n=node.name,
        lines=lines,
    )
