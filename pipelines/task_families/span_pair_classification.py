"""Span-pair classification: one label for two spans of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pipelines.task_families import LeftOut, Problem, Row, empty
from pipelines.task_families.span_extraction import nearest
from pipelines.task_families.text_classification import TextClassification

_SPANS = (("span1", "span1_index"), ("span2", "span2_index"))


class SpanPairClassification(TextClassification, name="span_pair_classification"):
    """One label for two spans of a text, as in coreference: does the pronoun mean the noun? Scored as text classification is.

    An index counts characters from 0, as in CLUEWSC 2020; SuperGLUE's WSC counts words, which is refused.
    """

    paper: ClassVar[str] = "arXiv:2004.05986"
    of_one_text: ClassVar[bool] = False
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
        """The text, then both spans and where they stand: a text may be asked about several times."""
        spans = (f"{row[span]} {row[index]}" for span, index in _SPANS)
        return "\n".join([row["context"], *spans])

    def problem(self, row: Row) -> Problem | None:
        """An empty text, span or label, or a span that does not stand at its index."""
        if problem := empty(row, "context", "span1", "span2", "label"):
            return problem
        for span, index in _SPANS:
            words, start = row[span], row[index]
            if start is None or start < 0 or row["context"][start : start + len(words)] != words:
                told = f"the column {span!r} holds {words!r}, which does not stand at character {start} of 'context'"
                return Problem(f"{span} does not stand at {index}", told)
        return None

    def published(self, record: Row, left_out: LeftOut) -> Row:
        """Also a record of CLUEWSC 2020: `text`, and the spans in `target`, where `span1` is called `span1_text`."""
        record = {"context": record["text"], **record} if "text" in record else record
        target = record.get("target")
        if not isinstance(target, Mapping):
            return record
        return {**record, **target, **{span: target.get(f"{span}_text") for span, _ in _SPANS}}

    def repaired(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """As every family; each span is then found again where it stands nearest to its old place, −1 where it no more does."""
        result = super().repaired(row, repair)
        for span, index in _SPANS:
            start = len(repair(row["context"][: row[index]]))
            result[index] = nearest(result["context"], result[span], start)
        return result

    def quoted(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """Both spans."""
        return {"context": [(row[index], row[index] + len(row[span])) for span, index in _SPANS]}

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`text: … first: … second: … label:`, both spans between `*` in the text (Raffel et al. 2019, appendix D.5)."""
        text = row["context"]
        for start, end in sorted(((row[index], row[index] + len(row[span])) for span, index in _SPANS), reverse=True):
            text = f"{text[:start]}*{text[start:end]}*{text[end:]}"
        return f"text: {text} first: {row['span1']} second: {row['span2']} label:"
