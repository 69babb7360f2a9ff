"""Tables of a report: every figure on a page comes from one, so that the same rows exist as CSV and LaTeX.

Table("scores", "Scores", (text("model", "Model"), estimate("accuracy", "Accuracy", "accuracy")), rows)
  ├── on the page      {{ tables.scores | table }}
  └── in files         tables/<page>-scores.csv, the values as recorded; .tex, as the page writes them; .zh.tex

LaTeX of Chinese needs the package ctex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from pipelines.lineage.disk import write_text_atomically
from pipelines.messages.translation import ENGLISH, language, localized, message, template, translatable
from pipelines.reports.elements import wording

TABLES = "tables"
"""Name of the folder, next to a page, with its tables as CSV and LaTeX."""
NOTHING = "–"
"""Text of a cell without a value."""
VERDICT_CLASSES = {"pays": "good", "better": "good", "does not pay": "bad", "worse": "bad"}
"""Verdict → CSS class of its colour; any other has the class `unsure`."""
VERDICTS = (
    translatable("pays"),
    translatable("does not pay"),
    translatable("better"),
    translatable("worse"),
    translatable("cannot tell"),
)
"""Verdicts as they are recorded."""


@dataclass(frozen=True)
class Column:
    """A column: the key of its values, and their format."""

    key: str
    heading: str
    shown: Callable[[Any], str] = str
    """Formats a value for the page; markup is preserved."""
    right: bool = False
    """Whether its values are aligned right, as numbers are."""
    parts: tuple[str, ...] = ()
    """Keys of a value that is a mapping, each a column in CSV."""


@dataclass(frozen=True)
class Table:
    """A table of raw values, which its columns format."""

    key: str
    """Part of its file names, with dots for slashes; unique on its page."""
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]

    def html(self) -> Markup:
        """The table as HTML."""
        head = Markup("").join(
            Markup("<th{c}>{h}</th>").format(c=_class(column), h=column.heading) for column in self.columns
        )
        rows = Markup("").join(
            Markup("<tr>{cells}</tr>\n").format(
                cells=Markup("").join(
                    Markup("<td{c}>{v}</td>").format(c=_class(column), v=_shown(column, row)) for column in self.columns
                )
            )
            for row in self.rows
        )
        return Markup(
            '<div class="wide"><table>\n<thead><tr>{h}</tr></thead>\n<tbody>\n{b}</tbody></table></div>'
        ).format(h=head, b=rows)

    def csv(self) -> str:
        """The recorded values as CSV; a value that is a mapping takes a column for each of its parts."""
        import pandas

        columns: dict[str, list[Any]] = {}
        for column in self.columns:
            values = [row.get(column.key) for row in self.rows]
            if not column.parts:
                columns[column.key] = values
            for part in column.parts:
                columns[f"{column.key}.{part}"] = [value[part] if value is not None else None for value in values]
        return str(pandas.DataFrame(columns, dtype=object).to_csv(index=False, lineterminator="\n"))

    def latex(self) -> str:
        """The table as LaTeX (booktabs), formatted as on the page; the minus sign is ASCII, which every engine
        accepts."""
        import pandas

        frame = pandas.DataFrame(
            [
                [Markup(escape(_shown(column, row))).striptags().replace("−", "-") for column in self.columns]
                for row in self.rows
            ],
            columns=[column.heading for column in self.columns],
        )
        form = "".join("r" if column.right else "l" for column in self.columns)
        return str(frame.to_latex(index=False, escape=True, column_format=form))


def text(key: str, heading: str) -> Column:
    """A column of text."""
    return Column(key, heading)


def number(key: str, heading: str, shown: Callable[[Any], str] = "{:,}".format) -> Column:
    """A column of numbers, formatted by `shown`."""
    return Column(key, heading, shown, right=True)


def estimate(key: str, heading: str, metric: str) -> Column:
    """A column of scores with their intervals: mappings with mean, low and high."""
    return Column(key, heading, lambda value: _estimate(value, metric), right=True, parts=("mean", "low", "high"))


def difference(key: str, heading: str, metric: str) -> Column:
    """A column of differences of scores with their intervals: mappings with difference, low and high."""
    parts = ("difference", "low", "high")
    return Column(key, heading, lambda value: _difference(value, metric), right=True, parts=parts)


def verdict(key: str) -> Column:
    """A column of verdicts, coloured."""
    return Column(key, message("Verdict"), coloured_verdict)


def coloured_verdict(word: str) -> Markup:
    """A verdict as coloured markup."""
    return Markup('<span class="verdict {c}">{w}</span>').format(
        c=VERDICT_CLASSES.get(word, "unsure"), w=verdict_text(word)
    )


def verdict_text(word: str) -> str:
    """A recorded verdict in the current language."""
    return template(word) if word in VERDICTS else word


def write_tables(page: str, tables: Iterable[Table], folder: Path) -> list[Path]:
    """Write every table of `page` into `folder` as LaTeX in the current language, and as CSV, which has none, with the
    English one; return the files."""
    written = []
    for table in tables:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{page}-{table.key.replace('/', '.')}"
        contents = {f"{name}.csv": table.csv()} if language() == ENGLISH else {}
        contents[localized(f"{name}.tex")] = table.latex()
        for file, content in contents.items():
            write_text_atomically(folder / file, content)
            written.append(folder / file)
    return written


def _class(column: Column) -> Markup:
    return Markup(' class="n"') if column.right else Markup("")


def _shown(column: Column, row: Mapping[str, Any]) -> str:
    value = row.get(column.key)
    return NOTHING if value is None else column.shown(value)


def _estimate(value: Mapping[str, Any], metric: str) -> Markup:
    return Markup('{m} <span class="range">{s}</span>').format(
        m=wording.score(value["mean"], metric), s=wording.span(value["low"], value["high"], metric)
    )


def _difference(value: Mapping[str, Any], metric: str) -> Markup:
    low, high = (wording.difference(value[end], metric) for end in ("low", "high"))
    return Markup('{d} <span class="range">{s}</span>').format(
        d=wording.difference(value["difference"], metric), s=message("{low} to {high}", low=low, high=high)
    )
