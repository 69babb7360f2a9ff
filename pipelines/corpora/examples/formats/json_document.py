"""A file that is one JSON value: the articles of SQuAD, a list of records, or a page of FUNSD."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.task_families import Problem

Placed = tuple[str, "dict[str, Any] | Problem"]


def read(path: Path, content: bytes) -> Iterator[Placed]:
    """The questions of SQuAD 1.1 or 2.0 by their ids, the records of a list by their number from 0, or the one page.

    DataError for a file that is no JSON, or of another form.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not readable as JSON: {error}") from None
    if isinstance(document, list):
        for number, record in enumerate(document):
            if not isinstance(record, dict):
                raise DataError(f"{path}:{number}: expected a JSON object, found {type(record).__name__}")
            yield str(number), record
    elif isinstance(document, dict) and "form" in document:
        yield "0", document
    else:
        yield from _squad(path, document)


def _squad(path: Path, document: Any) -> Iterator[Placed]:
    try:
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    yield str(asked["id"]), _question(paragraph["context"], asked)
    except (KeyError, TypeError, AttributeError) as error:
        forms = "a json file holds SQuAD's articles, a list of records, or a page of FUNSD"
        raise DataError(f"{path}: not in the form of SQuAD: {type(error).__name__} {error}; {forms}") from None


def _question(context: Any, asked: dict[str, Any]) -> dict[str, Any] | Problem:
    answers = [] if asked.get("is_impossible") else asked["answers"]
    if not answers and not asked.get("is_impossible"):
        told = "the question has no answer; mark it 'is_impossible' if there is none"
        return Problem("the question has no answer", told)
    return {
        "id": asked["id"],
        "context": context,
        "question": asked["question"],
        "answer_texts": [answer["text"] for answer in answers],
        "answer_starts": [answer["answer_start"] for answer in answers],
    }
