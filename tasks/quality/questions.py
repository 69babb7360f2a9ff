"""What is asked of each kind of table: of all texts, of labelled ones, and of how tokenizers read them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.corpora.evidence.dataset_evidence import columns_of
from pipelines.corpora.evidence.drift import SIGNIFICANCE
from pipelines.corpora.evidence.study import KNOWN_LANGUAGES
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.task import has_classes
from pipelines.corpora.steps.step import CORPORA, LABELLED
from pipelines.parts.segmentations import UNSPACED

TYPES = {"string": ("str", "text"), "double": ("float64", "a number"), "int64": ("int64", "a whole number")}
"""Kind of a column → its type in pandas, and in plain words. Lists are looked into by the family itself."""


@dataclass(frozen=True)
class Question:
    """One expectation: its name, its arguments, and what it means in plain words."""

    expectation: str
    arguments: dict[str, Any]
    meaning: str
    severity: Literal["critical", "warning"] = "critical"
    """Whether a table that fails is refused, or only said to fail."""


def questions(table: str, settings: DatasetSettings, accepted: Mapping[str, Any] | None) -> list[Question]:
    """What is expected of a table; `accepted` is the profile of its last accepted version."""
    suite = [*of_any_table(table, settings), *of_overlap(table, settings), *of_language(settings)]
    if table in LABELLED:
        suite += of_examples(settings)
    return suite + of_drift(table, settings, accepted) + of_tokens(settings)


def of_any_table(table: str, settings: DatasetSettings) -> list[Question]:
    """Columns, their types, nothing missing, empty or overlong."""
    kinds = columns_of(table, settings.task.family)
    return [
        Question("ExpectTableToHoldDocuments", {}, "the table is not empty"),
        *[Question("ExpectColumnToExist", {"column": name}, f"there is a column {name}") for name in kinds],
        *[
            Question(
                "ExpectColumnValuesToBeOfType", {"column": name, "type_": TYPES[kind][0]}, f"{name} is {TYPES[kind][1]}"
            )
            for name, kind in kinds.items()
            if kind in TYPES
        ],
        *[Question("ExpectFieldsToNotBeNull", {"column": name}, f"no {name} is missing") for name in kinds],
        Question("ExpectMeasuresToBeBetween", {"column": "characters", "min_value": 1}, "no text is empty"),
        Question(
            "ExpectMeasuresToBeBetween",
            {"column": "characters", "max_value": settings.clean.max_characters},
            f"no text is longer than {settings.clean.max_characters} characters",
        ),
    ]


def of_overlap(table: str, settings: DatasetSettings) -> list[Question]:
    """Nothing twice, nothing of the evaluation; only warned of where the user lets overlaps stay."""
    limits = settings.decontaminate
    stays = limits.action == "warn" if table in CORPORA else limits.inside == "keep"
    severity: Literal["critical", "warning"] = "warning" if stays else "critical"
    suite = [
        Question(
            "ExpectMeasuresToBeBetween",
            {"column": "surplus_copies", "max_value": 0},
            "no text stands in it twice, or more often than a mixture repeats it",
            "critical" if table in CORPORA else severity,
        ),
        Question(
            "ExpectMeasuresToBeNull",
            {"column": "also_in"},
            "no text also stands in a table nearer to the test",
            severity,
        ),
    ]
    if table != "test":
        against = "test" if table == "validation" else "validation or test"
        leak = {"column": "overlap", "words": limits.words, "against": against, "max_value": limits.overlap}
        suite.append(
            Question(
                "ExpectNoLeakage",
                leak,
                f"no text overlaps {against}: shares {limits.overlap:.0%} or more of its runs of {limits.words} words, or "
                "of the other's, with one text of it",
                severity,
            )
        )
    return suite


def of_language(settings: DatasetSettings) -> list[Question]:
    """Nothing for a language that the identifier does not know."""
    language, share = settings.language, settings.quality.language_share
    if language not in KNOWN_LANGUAGES:
        return []
    meaning = f"at least {share:.0%} of the characters of a sample stand in texts told to be in {language!r}"
    return [Question("ExpectLanguageShare", {"language": language, "at_least": share}, meaning)]


def of_examples(settings: DatasetSettings) -> list[Question]:
    """What a family says of its rows, labels that training knows, and their balance."""
    family, rules = settings.task.family, settings.quality
    wrong = " ".join((inspect.getdoc(family.problem) or "").split()).rstrip(".")
    suite = [
        Question("ExpectMeasuresToBeNull", {"column": "problem"}, f"no {family.name} row is wrong: {wrong}"),
        Question("ExpectMeasuresToBeNull", {"column": "unknown_label"}, "training knows every label"),
    ]
    if has_classes(family):
        suite += [
            Question(
                "ExpectMeasuresToBeBetween",
                {"column": "share_of_label", "max_value": rules.max_label_share},
                f"no label has more than {rules.max_label_share:.0%} of the examples",
            ),
            Question(
                "ExpectMeasuresToBeBetween",
                {"column": "examples_of_label", "min_value": rules.min_examples_per_label},
                f"every label present has at least {rules.min_examples_per_label} examples",
            ),
        ]
    return suite


def of_drift(table: str, settings: DatasetSettings, accepted: Mapping[str, Any] | None) -> list[Question]:
    """Lengths, and kinds of answers or collections of texts, against the last accepted version."""
    most = settings.quality.drift
    columns = {
        "length_bin": ("lengths", "the lengths of its texts"),
        "kind": ("kinds", "its answers" if table in LABELLED else "the collections its texts come from"),
    }
    return [
        Question(
            "ExpectNoDrift",
            {"column": column, "at_most": most, "earlier": accepted[key] if accepted else None},
            f"{what} are spread as in the last accepted version: Jensen-Shannon distance at most {most:g}, or no more than "
            f"chance (chi-square, p at least {SIGNIFICANCE:g})",
        )
        for column, (key, what) in columns.items()
    ]


def of_tokens(settings: DatasetSettings) -> list[Question]:
    """How a tokenizer that was trained on a sample of the unlabelled tables reads a sample of this one."""
    rules, name = settings.quality, settings.quality.tokenizer.name
    unit = "character" if settings.language in UNSPACED else "word"
    trained = f"a {name} tokenizer trained on other texts of the unlabelled tables"
    return [
        Question(
            "ExpectMeasuresToBeBetween",
            {"column": "token_count", "min_value": 1},
            f"no sampled text is empty to {trained}",
        ),
        Question(
            "ExpectUnknownTokenShare",
            {"at_most": rules.unknown_tokens},
            f"at most {rules.unknown_tokens:.2%} of the tokens of a sample, or no more than chance, are unknown to {trained}",
        ),
        Question(
            "ExpectFertility",
            {"at_most": rules.fertility, "unit": unit},
            f"a {unit} takes at most {rules.fertility:g} tokens of {trained}, on average",
        ),
    ]
