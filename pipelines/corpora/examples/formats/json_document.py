"""Files that are a single JSON value: the articles of SQuAD, a list of records, or a page of FUNSD."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.task_families import Problem

KeyedRecord = tuple[str, "dict[str, Any] | Problem"]
"""Id or number of a record, and its fields or why it is invalid."""


def read(path: Path, content: bytes) -> Iterator[KeyedRecord]:
    """Read the questions of SQuAD 1.1 or 2.0 by id, the records of a list by number from 0, or the single page.

    DataError for a file that is not JSON or has another structure.
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


def _squad(path: Path, document: Any) -> Iterator[KeyedRecord]:
    try:
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    yield str(question["id"]), _question(paragraph["context"], question)
    except (KeyError, TypeError, AttributeError) as error:
        forms = "a json file holds SQuAD's articles, a list of records, or a page of FUNSD"
        raise DataError(f"{path}: not in the form of SQuAD: {type(error).__name__} {error}; {forms}") from None


def _question(context: Any, question: dict[str, Any]) -> dict[str, Any] | Problem:
    answers = [] if question.get("is_impossible") else question["answers"]
    if not answers and not question.get("is_impossible"):
        message = "the question has no answer; mark it 'is_impossible' if there is none"
        return Problem("the question has no answer", message)
    return {
        "id": question["id"],
        "context": context,
        "question": question["question"],
        "answer_texts": [answer["text"] for answer in answers],
        "answer_starts": [answer["answer_start"] for answer in answers],
    }
