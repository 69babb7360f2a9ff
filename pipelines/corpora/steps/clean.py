"""Step `clean`: repair, filter and mask texts and limit their length, as `clean:` in params.yaml says.

unlabelled  ─▶ repaired ─▶ long enough? ─▶ filters ─▶ masked ─▶ split at max_characters
an example  ─▶ repaired ─▶ masked ─▶ still a valid example? short enough?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.corpora.cleaning import FilterResult
from pipelines.corpora.settings.cleaning import CleanSettings
from pipelines.corpora.settings.tables import UNLABELLED, columns_of, plain_tables, schema_of, task_file
from pipelines.corpora.shards.folders import map_shards
from pipelines.corpora.shards.tables import Row, example_of, labelled_parts, read_rows, row_of, write_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.declared_columns import clean_values
from pipelines.corpora.steps.step import COUNTS, begin, history, run_step
from pipelines.corpora.steps.tidy import trimmed, visible
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

ROUNDS = 8
"""Largest number of passes over all repairs, which are repeated as long as one changes the output of another."""


def clean(dataset: str, root: Path) -> None:
    """Write `cleaned/` from `collected/`. Raises DataError when a table becomes empty."""
    step = begin("clean", dataset, root, before="collected")
    settings, language = step.settings.clean, step.settings.language
    before = step.home / "collected"
    with step.writing("cleaned") as folder:
        tables: dict[str, Any] = {}
        for name, task in step.settings.labelled.items():
            tally = Tally()
            rows = cleaned_examples(read_rows(before / task_file(name)), task.family, settings, language, tally)
            counts = write_rows(folder / task_file(name), labelled_parts(task.family), rows)
            tables[name] = counts | tally.counts()
        for name in plain_tables(step.settings):
            change = Cleaning(settings, language, root, tuple(columns_of(step.settings, name).items()))
            schema = schema_of(step.settings, name)
            tables[name] = map_shards(
                before / name, folder / name, schema, change, step.unfinished_table(name), step.processes
            )
        for name, table in tables.items():
            if table["dropped"] and not table["documents"] and name != UNLABELLED:
                reasons = ", ".join(f"{count} {reason}" for reason, count in table["dropped"].items())
                raise DataError(f"{dataset}: no text of {name!r} is left after cleaning ({reasons})")
        write_json(folder / COUNTS, history(read_json(before / COUNTS), "clean", tables))


@dataclass(frozen=True)
class Cleaning:
    """Clean unlabelled rows, and split texts that are too long.

    Declared columns belong to the whole text: their own texts are repaired and masked, and a text of which something
    would be cut off is dropped.
    """

    settings: CleanSettings
    language: str
    root: Path
    columns: tuple[tuple[str, str], ...] = ()
    """Declared columns and their types."""

    def __call__(self, rows: Iterator[Row], tally: Tally) -> Iterator[Row]:
        columns = dict(self.columns)
        repair = make_repair(self.settings, self.language, whole_documents=not columns)
        mask, judge = make_mask(self.settings), make_filter(self.settings, self.language, self.root)
        for text, where, *others in rows:
            changes: Counter[str] = Counter()
            repaired = repair(text, changes)
            cleaned, reason = judge(repaired, changes) if repaired else (text, "empty")
            if columns and reason is None and cleaned != repaired:
                reason = "a filter would shorten it"
            collection, values = others[:1], others[1:]
            further = clean_values(values, columns, lambda each: mask(repair(each, changes), changes))  # noqa: B023
            if further is None and reason is None:
                reason = "a column is empty after repair"
            parts = split_text(mask(cleaned, changes), self.settings.max_characters) if reason is None else []
            if columns and len(parts) > 1:
                reason = "too long"
            if reason:
                tally.drop(reason, cleaned, where)
                continue
            changes["cut into pieces"] += len(parts) > 1
            for change, count in changes.items():
                tally.change(change, count)
            yield from ((part, where, *collection, *(further or ())) for part in parts)


def cleaned_examples(
    rows: Iterable[Row], family: TaskFamily, settings: CleanSettings, language: str, tally: Tally
) -> Iterator[Row]:
    """Yield the rows of a task with all their texts repaired and masked; filters do not apply.

    A single text that is too long is truncated. An example of several columns cannot be truncated without changing the
    task, and is dropped.
    """
    repair, mask = make_repair(settings, language, whole_documents=False), make_mask(settings)
    changes: Counter[str] = Counter()

    def clean_text(text: str) -> str:
        return mask(repair(text, changes), changes)

    for row in rows:
        changes.clear()
        example = family.repair_texts(example_of(family, row), clean_text)
        text, where = family.text(example), row[-2]
        if not text.strip():
            tally.drop("empty", row[0], where)
            continue
        if family.problem(example):
            tally.drop("no example after repair", text, where)
            continue
        if len(text) > settings.max_characters:
            if "text" not in family.columns:
                tally.drop("too long", text, where)
                continue
            example = example | {"text": split_text(text, settings.max_characters)[0]}
            changes["cut to max_characters"] += 1
        for change, count in changes.items():
            tally.change(change, count)
        yield row_of(family, example, *row[-2:])


TextChange = Callable[[str, "Counter[str]"], str]
"""(text, counter) → changed text; the counter records what was changed."""


def make_repair(settings: CleanSettings, language: str, whole_documents: bool = True) -> TextChange:
    """Function that applies all repairs until none changes the text, so that its output is a fixed point.

    Without `whole_documents`, repairs that remove lines are left out.
    """
    remove_invisible = visible(language)
    repairs = [
        (f"repaired: {repair.name}", repair.make_repair(language))
        for repair in settings.repairs
        if whole_documents or not repair.of_documents
    ]

    def repaired(text: str, changes: Counter[str]) -> str:
        for _ in range(ROUNDS):
            before = text
            text = trimmed(remove_invisible(text))
            if text != before:
                changes["repaired: unseen characters or space"] = 1
            for name, repair in repairs:
                result = repair(text)
                if result != text:
                    changes[name] = 1
                    text = result
            if text == before:
                break
        return trimmed(remove_invisible(text))

    return repaired


def make_filter(settings: CleanSettings, language: str, root: Path) -> Callable[[str, Counter[str]], FilterResult]:
    """Function that applies all filters in order, each to the output of the last; the text must stay long enough."""
    judges = [(judge.name, judge.make_filter(language, root)) for judge in settings.filters]

    def judged(text: str, changes: Counter[str]) -> FilterResult:
        if len(text) < settings.min_characters:
            return text, "too short"
        for name, judge in judges:
            shortened, rule = judge(text)
            if rule is not None:
                return text, f"{name}: {rule}"
            if len(shortened) < settings.min_characters:
                return text, f"{name}: too little is left"
            changes[f"shortened: {name}"] += shortened != text
            text = shortened
        return text, None

    return judged


def make_mask(settings: CleanSettings) -> TextChange:
    """Function that applies all masks until none matches."""
    masks = [(f"masked: {mask.name}", mask.make_mask()) for mask in settings.masks]

    def masked(text: str, changes: Counter[str]) -> str:
        matched = True
        while matched:
            matched = False
            for name, mask in masks:
                text, count = mask(text)
                changes[name] += count
                matched = matched or count > 0
        return text

    return masked


def split_text(text: str, longest: int) -> list[str]:
    """Split a text into parts of at most `longest` characters, after a paragraph, line, sentence or word if it can."""
    parts = []
    while len(text) > longest:
        cut = longest
        for mark in ("\n\n", "\n", "。", ". ", " "):
            after = text.rfind(mark, longest // 2, longest)
            if after >= 0:
                cut = after + len(mark)
                break
        parts.append(text[:cut].strip())
        text = text[cut:].strip()
    return [part for part in [*parts, text] if part]


if __name__ == "__main__":
    run_step(clean)
