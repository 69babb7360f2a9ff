"""Span-pair classification: one label for two spans of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pipelines.task_families import OmissionCallback, Problem, Row, empty_text_problem
from pipelines.task_families.span_extraction import nearest_start
from pipelines.task_families.text_classification import TextClassification

_SPANS = (("span1", "span1_index"), ("span2", "span2_index"))


class SpanPairClassification(TextClassification, name="span_pair_classification"):
    """One label for two spans of a text, as in coreference (pronoun and noun); scored like text classification.

    An index counts characters from 0, as in CLUEWSC 2020; SuperGLUE's WSC counts words, which is not supported.
    """

    paper: ClassVar[str] = "arXiv:2004.05986"
    is_single_text: ClassVar[bool] = False
    columns: ClassVar[dict[str, str]] = {
        "context": "string",
        "span1": "string",
        "span1_index": "int64",
        "span2": "string",
        "span2_index": "int64",
        "label": "string",
    }
    shared: ClassVar[tuple[str, ...]] = ("context",)

    def text(self, row: Row) -> str:
        """The text, then both spans with their offsets, since several examples may share a text."""
        spans = (f"{row[span]} {row[index]}" for span, index in _SPANS)
        return "\n".join([row["context"], *spans])

    def problem(self, row: Row) -> Problem | None:
        """An empty text, span or label, or a span that is not at its index."""
        if problem := empty_text_problem(row, "context", "span1", "span2", "label"):
            return problem
        for span, index in _SPANS:
            words, start = row[span], row[index]
            if start is None or start < 0 or row["context"][start : start + len(words)] != words:
                message = f"the column {span!r} holds {words!r}, which is not at character {start} of 'context'"
                return Problem(f"{span} is not at {index}", message)
        return None

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a record of CLUEWSC 2020: `text`, and the spans in `target`, where `span1` is called `span1_text`."""
        record = {"context": record["text"], **record} if "text" in record else record
        target = record.get("target")
        if not isinstance(target, Mapping):
            return record
        return {**record, **target, **{span: target.get(f"{span}_text") for span, _ in _SPANS}}

    def repair_texts(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """Repair all texts and move each span's index to its nearest occurrence; −1 where it no longer occurs."""
        result = super().repair_texts(row, repair)
        for span, index in _SPANS:
            start = len(repair(row["context"][: row[index]]))
            result[index] = nearest_start(result["context"], result[span], start)
        return result

    def quoted_spans(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """Both spans."""
        return {"context": [(row[index], row[index] + len(row[span])) for span, index in _SPANS]}

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`text: … first: … second: … label:`, both spans between `*` in the text (Raffel et al. 2019, appendix
        D.5)."""
        text = row["context"]
        for start, end in sorted(((row[index], row[index] + len(row[span])) for span, index in _SPANS), reverse=True):
            text = f"{text[:start]}*{text[start:end]}*{text[end:]}"
        return f"text: {text} first: {row['span1']} second: {row['span2']} label:"
