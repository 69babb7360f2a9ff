"""Layout tagging: a tag for every word of a page, with bounding boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pipelines.task_families import OmissionCallback, Problem, Row
from pipelines.task_families.tagging import OUTSIDE, Tagging

_OTHER = "other"
"""FUNSD's label for words outside entities."""


class LayoutTagging(Tagging, name="layout_tagging"):
    """IOB2 tags for the words of a page, each with its bounding box; scored like tagging, by exact entities.

    A box is x0, y0, x1, y1 from the upper left corner, in the units of the page; `page` holds its width and height, if
    known. Links between entities, which FUNSD has too, are another task and are not read.
    """

    paper: ClassVar[str] = "arXiv:1905.13538"
    columns: ClassVar[dict[str, str]] = {
        "tokens": "list<string>",
        "boxes": "list<list<int64>>",
        "tags": "list<string>",
        "page": "list<int64>",
    }
    optional: ClassVar[frozenset[str]] = frozenset({"page"})

    def problem(self, row: Row) -> Problem | None:
        """As in tagging; not as many boxes as words; a box that is not four numbers, is inverted, or lies outside the
        page."""
        if problem := super().problem(row):
            return problem
        boxes, page = row["boxes"] or [], row["page"] or []
        if len(boxes) != len(row["tokens"]):
            message = f"the column 'boxes' holds {len(boxes)} boxes for {len(row['tokens'])} tokens"
            return Problem("not as many boxes as tokens", message)
        if page and (len(page) != 2 or min(page) <= 0):
            return Problem("page is not a size", f"the column 'page' holds {page}, expected its width and height")
        for number, box in enumerate(boxes):
            if problem := _box_problem(box, page, f"the column 'boxes' holds {box}, number {number}"):
                return problem
        return None

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a page of FUNSD: `form` (or `entities`), of entities with a `label` and `words` of a `text` and a
        `box`.

        Words without text are omitted and reported.
        """
        entities = record.get("form", record.get("entities"))
        if "tokens" in record or not isinstance(entities, list):
            return record
        tokens: list[Any] = []
        boxes: list[Any] = []
        tags: list[Any] = []
        for number, entity in enumerate(entities):
            words = entity.get("words") if isinstance(entity, Mapping) else None
            if not isinstance(words, list):
                raise ValueError(f"the entity {number} has no list 'words'")
            label, before = entity.get("label"), len(tokens)
            for word in words:
                if not isinstance(word, Mapping) or not isinstance(word.get("text"), str):
                    raise ValueError(f"the entity {number} has a word without 'text' and 'box'")
                if not word["text"].strip():
                    on_omission("a word without text", f"entity {number} ({label}), box {word.get('box')}")
                    continue
                inside = len(tokens) > before
                tags.append(OUTSIDE if label == _OTHER else f"{'I' if inside else 'B'}-{label}")
                tokens.append(word["text"])
                boxes.append(word.get("box"))
            if len(tokens) == before:
                on_omission("an entity without text", f"entity {number} ({label}), box {entity.get('box')}")
        return {**record, "tokens": tokens, "boxes": boxes, "tags": tags}


def _box_problem(box: list[int] | None, page: list[int], message: str) -> Problem | None:
    if box is None or len(box) != 4:
        return Problem("a box is not four numbers", f"{message}: expected x0, y0, x1, y1")
    left, top, right, bottom = box
    if right < left or bottom < top:
        return Problem("a box is inverted", f"{message}: {'x1 < x0' if right < left else 'y1 < y0'}")
    if left < 0 or top < 0 or (page and (right > page[0] or bottom > page[1])):
        return Problem("a box lies outside the page", f"{message}, outside the page{f' of {page}' if page else ''}")
    return None
