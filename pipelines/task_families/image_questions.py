"""Questions about an image, answered by one of the labels."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from pipelines.task_families import OmissionCallback, Problem, Row, empty_text_problem
from pipelines.task_families.text_classification import TextClassification

NLVR_COLOURS = ("yellow", "black", "#0099ff")
"""The last is written `blue` in some copies."""
NLVR_TYPES = ("circle", "square", "triangle")
NLVR_EDGE, NLVR_STEP = 100, 150
"""Edge of each of the boxes of a picture of NLVR, and distance of their left edges, in pixels."""
DIGEST = 16
"""Words of the digest of an image, each of two digits."""


class ImageQuestions(TextClassification, name="image_questions"):
    """One label for a question, or a statement, and the regions of an image; scored as text classification.

    A region has a word, a box, and a vector of its appearance, of any detector or encoder of images; the vectors of a
    dataset are equally wide. The word is what the detector says, or the same for all where it says nothing. A box is
    x0, y0, x1, y1 from the upper left corner, in the units of the image; `size` holds its width and height, if known.
    """

    paper: ClassVar[str] = "arXiv:1505.00468"
    columns: ClassVar[dict[str, str]] = {
        "question": "string",
        "regions": "list<string>",
        "boxes": "list<list<int64>>",
        "vectors": "list<list<double>>",
        "size": "list<int64>",
        "label": "string",
    }
    optional: ClassVar[frozenset[str]] = frozenset({"size"})
    shared: ClassVar[tuple[str, ...]] = ("regions", "boxes", "vectors")
    hub_category: ClassVar[str | None] = "visual-question-answering"
    is_single_text: ClassVar[bool] = False

    def text(self, row: Row) -> str:
        """The question and a digest of the image, so that equal texts are the same question about the same image.

        Not the regions themselves: that other images have the same objects is no overlap. The digest has more words
        than most questions, so that the same question about two images is none either.
        """
        image = json.dumps([row["regions"], row["boxes"], row["vectors"]])
        return f"{row['question']}\nimage {hashlib.sha256(image.encode()).digest()[:DIGEST].hex(' ')}"

    def problem(self, row: Row) -> Problem | None:
        """An empty question or label; no region; not as many boxes or vectors as regions; a box that is not four
        numbers, is inverted or lies outside the image; vectors of different widths, or with a number that is not
        finite."""
        if problem := empty_text_problem(row, "question", "label"):
            return problem
        regions, size = row["regions"] or [], row["size"] or []
        if not regions or not all((region or "").strip() for region in regions):
            return Problem(
                "regions is empty", f"the column 'regions' holds {regions!r}, expected a word for each region"
            )
        for name in ("boxes", "vectors"):
            if (count := len(row[name] or [])) != len(regions):
                message = f"the column {name!r} holds {count} {name} for {len(regions)} regions"
                return Problem(f"not as many {name} as regions", message)
        if size and (len(size) != 2 or min(size) <= 0):
            return Problem("size is not a size", f"the column 'size' holds {size}, expected width and height")
        for number, box in enumerate(row["boxes"]):
            if wrong := _wrong_box(box, size):
                return Problem(f"a box {wrong}", f"the column 'boxes' holds {box}, number {number}: it {wrong}")
        width = len(row["vectors"][0] or [])
        for number, vector in enumerate(row["vectors"]):
            if not vector or len(vector) != width:
                message = f"vector {number} of the column 'vectors' has {len(vector or [])} numbers, the first {width}"
                return Problem("vectors are not equally wide", message)
            if not all(value is not None and math.isfinite(value) for value in vector):
                message = f"vector {number} of the column 'vectors' has a value that is no finite number"
                return Problem("a vector has a value that is no finite number", message)
        return None

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`question: … regions: … label:`: a text cannot show what the regions look like."""
        return f"question: {row['question']} regions: {' '.join(row['regions'])} label:"

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a record of NLVR (Suhr et al. 2017): `sentence` (or `text`), and three boxes of objects in
        `structured_rep` (or `regions`).

        Every object is called `object`; its vector says which colour and which type it has, and its size.
        """
        boxes = record.get("structured_rep", record.get("regions"))
        if "question" in record or not isinstance(boxes, list) or not all(isinstance(each, list) for each in boxes):
            return record
        objects = [
            _nlvr_object(one, NLVR_STEP * number, f"the object {at} of box {number}")
            for number, box in enumerate(boxes)
            for at, one in enumerate(box)
        ]
        return {
            **record,
            "question": record.get("sentence", record.get("text")),
            "regions": ["object"] * len(objects),
            "boxes": [box for box, _ in objects],
            "vectors": [vector for _, vector in objects],
            "size": [2 * NLVR_STEP + NLVR_EDGE, NLVR_EDGE],
        }


def _nlvr_object(one: Any, left: int, where: str) -> tuple[list[int], list[float]]:
    """Box and vector of an object of the box that begins at `left`. Raises ValueError for what is no such object."""
    try:
        x, y, size = (int(one[key]) for key in ("x_loc", "y_loc", "size"))
        colour, kind = str(one["color"]).casefold().replace("blue", NLVR_COLOURS[-1]), str(one["type"])
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{where} has no x_loc, y_loc, size, color and type") from None
    if colour not in NLVR_COLOURS or kind not in NLVR_TYPES:
        raise ValueError(f"{where} has the color {one['color']!r} and the type {kind!r}, which NLVR does not have")
    # objects may reach over the edge of their box
    box = [left + x, y, min(left + x + size, left + NLVR_EDGE), min(y + size, NLVR_EDGE)]
    return box, [*_one_hot(colour, NLVR_COLOURS), *_one_hot(kind, NLVR_TYPES), size / NLVR_EDGE]


def _one_hot(value: str, known: Sequence[str]) -> list[float]:
    return [float(value == each) for each in known]


def _wrong_box(box: list[int] | None, size: list[int]) -> str | None:
    """What is wrong with a box; None if nothing."""
    if box is None or len(box) != 4:
        return "is not four numbers x0, y0, x1, y1"
    left, top, right, bottom = box
    if right < left or bottom < top:
        return "is inverted"
    if left < 0 or top < 0 or (size and (right > size[0] or bottom > size[1])):
        return f"lies outside the image{f' of {size}' if size else ''}"
    return None
