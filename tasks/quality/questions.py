"""The questions (expectations) for each kind of table: on all texts, on labelled examples, and on tokenization."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.corpora.evidence.dataset_evidence import expected_columns
from pipelines.corpora.evidence.drift import SIGNIFICANCE
from pipelines.corpora.evidence.study import KNOWN_LANGUAGES
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.tables import family_of, text_tables
from pipelines.corpora.settings.task import has_classes
from pipelines.parts.segmentations import UNSPACED
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, labelled_table, task_and_part

TYPES = {"string": ("str", "text"), "double": ("float64", "a number"), "int64": ("int64", "a whole number")}
"""Type of a column → its pandas type, and its name in plain words. Lists are checked by the family itself."""


@dataclass(frozen=True)
class QualityQuestion:
    """One expectation: its name, its arguments, and what it means in plain words."""

    expectation: str
    arguments: dict[str, Any]
    meaning: str
    severity: Literal["critical", "warning"] = "critical"
    """Whether a failure rejects the table, or is only a warning."""


def questions(table: str, settings: DatasetSettings, accepted: Mapping[str, Any] | None) -> list[QualityQuestion]:
    """All questions for a table; `accepted` is the profile of its last accepted version."""
    suite = [*table_questions(table, settings), *overlap_questions(table, settings)]
    suite += language_questions(table, settings)
    family = family_of(settings, table)
    if family is not None:
        suite += example_questions(family, settings)
    return suite + drift_questions(table, settings, accepted) + token_questions(settings)


def table_questions(table: str, settings: DatasetSettings) -> list[QualityQuestion]:
    """Columns and their types; no missing, empty or overlong texts."""
    kinds = expected_columns(table, settings)
    return [
        QualityQuestion("ExpectTableToHoldDocuments", {}, "the table is not empty"),
        *[QualityQuestion("ExpectColumnToExist", {"column": name}, f"there is a column {name}") for name in kinds],
        *[
            QualityQuestion(
                "ExpectColumnValuesToBeOfType", {"column": name, "type_": TYPES[kind][0]}, f"{name} is {TYPES[kind][1]}"
            )
            for name, kind in kinds.items()
            if kind in TYPES
        ],
        *[QualityQuestion("ExpectFieldsToNotBeNull", {"column": name}, f"no {name} is missing") for name in kinds],
        QualityQuestion("ExpectMeasuresToBeBetween", {"column": "characters", "min_value": 1}, "no text is empty"),
        QualityQuestion(
            "ExpectMeasuresToBeBetween",
            {"column": "characters", "max_value": settings.clean.max_characters},
            f"no text is longer than {settings.clean.max_characters} characters",
        ),
    ]


def overlap_questions(table: str, settings: DatasetSettings) -> list[QualityQuestion]:
    """No duplicates and no overlap with the evaluation; only warnings if the settings keep overlaps."""
    limits = settings.decontaminate
    is_plain = table in text_tables(settings)
    stays = limits.action == "warn" if is_plain else limits.inside == "keep"
    severity: Literal["critical", "warning"] = "warning" if stays else "critical"
    suite = [
        QualityQuestion(
            "ExpectMeasuresToBeBetween",
            {"column": "surplus_copies", "max_value": 0},
            "no text occurs twice, or more often than a mixture repeats it",
            "critical" if is_plain else severity,
        ),
        QualityQuestion(
            "ExpectMeasuresToBeNull",
            {"column": "also_in"},
            "no text also occurs in a table closer to the test",
            severity,
        ),
    ]
    task, part = task_and_part(table) or (MAIN, "")
    if part != "test":
        against = labelled_table(task, "test") if part == "validation" else "validation or test"
        leak = {"column": "overlap", "words": limits.words, "against": against, "max_value": limits.overlap}
        suite.append(
            QualityQuestion(
                "ExpectNoLeakage",
                leak,
                f"no text overlaps {against}: shares {limits.overlap:.0%} or more of its word {limits.words}-grams, or "
                "of the other's, with one of its texts",
                severity,
            )
        )
    return suite


def language_questions(table: str, settings: DatasetSettings) -> list[QualityQuestion]:
    """The share of the language, that of the sources for a named corpus and of `test_language` for a test table; no
    question for a language that the identifier does not know, or for several."""
    language, share = settings.language, settings.quality.language_share
    task, part = task_and_part(table) or (MAIN, "")
    if part == "test":
        language = settings.labelled[task].test_language or language
    if table in settings.corpora:
        languages = {source.language or language for source in settings.corpora[table].sources}
        if len(languages) > 1:
            return []
        (language,) = languages
    if language not in KNOWN_LANGUAGES:
        return []
    meaning = f"at least {share:.0%} of the characters of a sample are in texts identified as {language!r}"
    return [QualityQuestion("ExpectLanguageShare", {"language": language, "at_least": share}, meaning)]


def example_questions(family: TaskFamily, settings: DatasetSettings) -> list[QualityQuestion]:
    """The family's own checks of its rows, no labels absent from training, and the balance of labels."""
    rules = settings.quality
    invalid = " ".join((inspect.getdoc(family.problem) or "").split()).rstrip(".")
    suite = [
        QualityQuestion("ExpectMeasuresToBeNull", {"column": "problem"}, f"no {family.name} row is invalid: {invalid}"),
        QualityQuestion("ExpectMeasuresToBeNull", {"column": "unknown_label"}, "every label occurs in training"),
    ]
    if has_classes(family):
        suite += [
            QualityQuestion(
                "ExpectMeasuresToBeBetween",
                {"column": "share_of_label", "max_value": rules.max_label_share},
                f"no label has more than {rules.max_label_share:.0%} of the examples",
            ),
            QualityQuestion(
                "ExpectMeasuresToBeBetween",
                {"column": "examples_of_label", "min_value": rules.min_examples_per_label},
                f"every label present has at least {rules.min_examples_per_label} examples",
            ),
        ]
    return suite


def drift_questions(table: str, settings: DatasetSettings, accepted: Mapping[str, Any] | None) -> list[QualityQuestion]:
    """Drift of text lengths, and of answers or collections, against the last accepted version."""
    most = settings.quality.drift
    columns = {
        "length_bin": ("lengths", "the lengths of its texts"),
        "kind": ("kinds", "its answers" if task_and_part(table) else "the collections its texts come from"),
    }
    return [
        QualityQuestion(
            "ExpectNoDrift",
            {"column": column, "at_most": most, "earlier": accepted[key] if accepted else None},
            f"{what} are distributed as in the last accepted version: Jensen-Shannon distance at most {most:g}, or not "
            f"significant (chi-square, p at least {SIGNIFICANCE:g})",
        )
        for column, (key, what) in columns.items()
    ]


def token_questions(settings: DatasetSettings) -> list[QualityQuestion]:
    """Tokenization of a sample of the table by a tokenizer trained on a sample of the unlabelled tables."""
    rules, name = settings.quality, settings.quality.tokenizer.name
    unit = "character" if settings.language in UNSPACED else "word"
    trained = f"a {name} tokenizer trained on other texts of the unlabelled tables"
    return [
        QualityQuestion(
            "ExpectMeasuresToBeBetween",
            {"column": "token_count", "min_value": 1},
            f"no sampled text has zero tokens of {trained}",
        ),
        QualityQuestion(
            "ExpectUnknownTokenShare",
            {"at_most": rules.unknown_tokens},
            f"at most {rules.unknown_tokens:.2%} of the tokens of a sample are unknown to {trained}, or the excess "
            "is not significant",
        ),
        QualityQuestion(
            "ExpectFertility",
            {"at_most": rules.fertility, "unit": unit},
            f"a {unit} takes at most {rules.fertility:g} tokens of {trained}, on average",
        ),
    ]
