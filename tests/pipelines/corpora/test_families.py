"""The steps on a user's files of every family: tables with the family's columns, judged by Great Expectations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.corpora.shards.tables import labelled, origin
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin, pin_path
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import prepared
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily
from tests.pipelines.corpora.small_dataset import documents, write_jsonl
from tests.pipelines.corpora.test_examples import ROWS

EVERY = [*ROWS, "link_prediction", "table_questions"]

PARAMS = """\
datasets:
  small:
    general: general.jsonl
    domain: domain.jsonl
    task: {{family: {family}, train: train.jsonl, test: test.jsonl, labelled_examples: 12, validation_share: 0.2{more}}}
"""


def example(name: str, number: int) -> dict[str, Any]:
    """A record of real text, different for every number."""
    text = documents("email")[number]
    words = text.split()[:12]
    return {
        "text_classification": {"text": text, "label": number % 2},
        "label_sets": {"text": text, "labels": [["even"], ["odd", "real"], []][number % 3]},
        "pair_classification": {"text_a": text, "text_b": " ".join(words), "label": ["no", "yes"][number % 2]},
        "pair_regression": {"text_a": text, "text_b": " ".join(words), "label": number / 10},
        "tagging": {"tokens": words, "tags": ["B-x", "I-x", "O", "B-y", *"O" * (len(words) - 4)]},
        "span_extraction": {
            "context": text, "question": f"Which is word {number}?", "answer_texts": words[:1], "answer_starts": [0]
        },
        "translated_spans": {
            "context": text, "question": f"Which is word {number}?", "answer_texts": words[:1], "answer_starts": [0],
            "source_context": text.upper(), "source_question": f"WHICH IS WORD {number}?",
        },
        "multiple_choice": {"context": text, "question": "Which?", "choices": words[:4], "answer": number % 4},
        "text_generation": {"source": text, "target": " ".join(words)},
        "word_senses": {
            "context": text, "word": words[1], "word_index": text.index(words[1]),
            "definitions": [f"follows {words[0]}", f"comes before {words[2]}"], "answer": number % 2,
        },
        "few_shot_tagging": {
            "tokens": words, "tags": ["B-head", *"O" * (len(words) - 1)],
            "support_tokens": [words[::-1]], "support_tags": [["B-head", *"O" * (len(words) - 1)]],
        },
        "span_pair_classification": {
            "context": text, "span1": words[0], "span1_index": 0, "span2": words[-1],
            "span2_index": text.index(words[-1]),
            "label": ["no", "yes"][number % 2],
        },
        "minimal_pairs": {"sentence_good": " ".join(words), "sentence_bad": " ".join(words[::-1]),
        "UID": f"order{number % 2}"},
        "dependency_parsing": {
            "sentence": " ".join(words), "words": words, "heads": [*range(len(words))],
            "relations": ["root", *["dep"] * (len(words) - 1)],
        },
        "layout_tagging": {
            "tokens": words, "boxes": [[10 * place, number, 10 * place + 9, number + 9] for place in range(len(words))],
            "tags": ["B-header", "I-header", "O", "B-answer", *"O" * (len(words) - 4)],
        },
        "image_questions": {
            "question": f"Is {words[0]} in it?", "regions": words[:3], "label": ["no", "yes"][number % 2],
            "boxes": [[10 * place, number, 10 * place + 9, number + 9] for place in range(3)],
            "vectors": [[number / 8, float(len(word))] for word in words[:3]],
        },
        "word_analogies": {"relation": "next", "a": words[0], "b": words[1], "c": words[2],
        "d": f"{words[3]} {number}"},
        "link_prediction": {"head": f"e{number}", "relation": f"r{number % 2}", "tail": f"e{(7 * number + 1) % 40}"},
        "table_questions": {"question": f"Which is word {number}?", "table_id": f"t{number}", "answers": words[:1]},
    }[name]  # fmt: skip


def side_files(root: Path, name: str) -> str:
    """Write the side tables of a family, and name them as keys of a task."""
    words = [text.split() for text in documents("email")[:40]]
    if name == "link_prediction":
        (root / "entities.tsv").write_text(
            "".join(f"e{n}\t{text[0]} {text[1]}\t{' '.join(text)}\n" for n, text in enumerate(words))
        )
        (root / "relations.tsv").write_text("r0\tis before\nr1\tis behind\n")
        return ", entities: entities.tsv, relations: relations.tsv"
    if name == "table_questions":
        tables = (
            {"table_id": f"t{n}", "header": ["word", "next"], "rows": [text[:2], text[2:4]]}
            for n, text in enumerate(words)
        )
        write_jsonl(root / "tables.jsonl", tables)
        return ", tables: tables.jsonl"
    return ""


def prepare_family(root: Path, name: str) -> None:
    """A dataset of the family under `root`, up to its tables."""
    (root / "params.yaml").write_text(PARAMS.format(family=name, more=side_files(root, name)))
    write_jsonl(root / "general.jsonl", ({"text": text} for text in documents("importlib")[:20]))
    write_jsonl(root / "domain.jsonl", ({"text": text} for text in documents("logging")[:20]))
    write_jsonl(root / "train.jsonl", (example(name, number) for number in range(30)))
    write_jsonl(root / "test.jsonl", (example(name, number) for number in range(30, 40)))
    for step in (pin, collect, clean, deduplicate, decontaminate, select, split):
        step("small", root)


@pytest.mark.parametrize("name", EVERY)
def test_six_tables_with_the_columns_of_the_family(tmp_path: Path, name: str) -> None:
    prepare_family(tmp_path, name)
    home, family = prepared("small", tmp_path), TaskFamily.model_validate(name)
    for table in ("train", "validation", "test"):
        found = pq.read_table(home / f"{table}.parquet")
        assert found.schema.equals(labelled(family)) and {*family.columns, "text", origin(family)} == set(
            found.column_names
        )
        for row in found.to_pylist():
            assert family.problem(row) is None and row["text"] == family.text(row)
            assert row[origin(family)].startswith(("train.jsonl:", "test.jsonl:"))
    summary = json.loads((home / "summary.json").read_text())
    train = pq.read_table(home / "train.parquet").to_pylist()
    assert summary["family"] == name and summary["labels"] == family.labels(train) and len(train) == 12
    assert summary["tables"]["task_text"]["documents"] > 5, "what was not drawn is text without labels"
    assert json.loads(pin_path("small", tmp_path).read_text())["steps"]["split"]["settings"]["family"]["name"] == name


def test_bad_rows_end_the_preparation_or_are_counted(tmp_path: Path) -> None:
    prepare_family(tmp_path, "tagging")
    with (tmp_path / "train.jsonl").open("a") as file:
        file.write(json.dumps({"tokens": ["a", "b"], "tags": ["O", "I-x"]}) + "\n")
    pin("small", tmp_path)
    with pytest.raises(DataError, match=r"train\.jsonl:31: the column 'tags' holds 'I-x' after 'O'.*'bad_rows: drop'"):
        collect("small", tmp_path)
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("{family: tagging", "{bad_rows: drop, family: tagging"))
    collect("small", tmp_path)
    (counts,) = json.loads((prepared("small", tmp_path) / "collected/counts.json").read_text())
    assert (
        counts["tables"]["task"]["dropped"] == {"train: tags begins an entity with I-": 1}
        and counts["tables"]["task"]["documents"] == 40
    )
