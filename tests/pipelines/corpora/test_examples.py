"""Labelled files of every family and format: the same rows from each, every bad row named with its place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.corpora.examples.files import ExampleReader
from pipelines.corpora.shards.tables import labelled
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

ROWS: dict[str, list[dict[str, Any]]] = {
    "text_classification": [{"text": "gut, und\tschön", "label": "1"}, {"text": "schlecht", "label": "0"}],
    "label_sets": [{"text": "it rains", "labels": ["weather", "water"]}, {"text": "so", "labels": []}],
    "pair_classification": [{"text_a": "it rains", "text_b": "it is wet", "label": "entailment"}],
    "pair_regression": [{"text_a": "it rains", "text_b": "it is wet", "label": 4.75}],
    "tagging": [{"tokens": ["Ada", "in", "London"], "tags": ["B-PER", "O", "B-LOC"]}],
    "few_shot_tagging": [
        {
            "tokens": ["in", "Bonn"],
            "tags": ["O", "B-LOC"],
            "support_tokens": [["to", "Rome", "!"]],
            "support_tags": [["O", "B-LOC", "O"]],
        }
    ],
    "span_extraction": [
        {"context": "Ada, 1815.", "question": "When?", "answer_texts": ["1815", "1815."], "answer_starts": [5, 5]},
        {"context": "Ada, 1815.", "question": "Where?", "answer_texts": [], "answer_starts": []},
    ],
    "translated_spans": [
        {
            "context": "Ada, geboren 1815.",
            "question": "Wann?",
            "answer_texts": ["1815"],
            "answer_starts": [13],
            "source_context": "Ada, born 1815.",
            "source_question": "When?",
        }
    ],
    "multiple_choice": [{"context": "It rains.", "question": "So?", "choices": ["wet", "dry"], "answer": 0}],
    "text_generation": [{"source": "Wait!", "target": "等等！"}, {"source": "Go.", "target": "走吧。"}],
    "span_pair_classification": [
        {"context": "毛豆说他累了", "span1": "毛豆", "span1_index": 0, "span2": "他", "span2_index": 3, "label": "true"}
    ],
    "image_questions": [
        {"question": "?", "regions": ["a"], "boxes": [[0, 0, 5, 5]], "vectors": [[0.5]], "size": [9, 9], "label": "x"}
    ],
    "word_senses": [
        {
            "context": "on the bank",
            "word": "bank",
            "word_index": 7,
            "definitions": ["land", "house"],
            "answer": 0,
            "unseen": 0,
        }
    ],
    "minimal_pairs": [
        {"sentences": ["They walks.", "They walk."], "answer": 1, "phenomenon": "agreement", "paradigm": "plural"}
    ],
    "dependency_parsing": [
        {
            "sentence": "Ada wrote it.",
            "words": ["Ada", "wrote", "it", "."],
            "heads": [2, 0, 2, 2],
            "relations": ["nsubj", "root", "obj", "punct"],
        }
    ],
    "layout_tagging": [
        {
            "tokens": ["Name:", "Ada"],
            "boxes": [[0, 0, 9, 9], [10, 0, 30, 9]],
            "tags": ["B-question", "B-answer"],
            "page": [100, 50],
        }
    ],
    "word_analogies": [{"relation": "capital", "a": "Paris", "b": "France", "c": "Rome", "d": "Italy"}],
}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("text_classification", {"label": None}, "the column 'label' is empty"),
    ("text_classification", {"text": 3}, "the column 'text' holds 3, expected text"),
    (
        "text_classification",
        {"label": ["a"]},
        "the column 'label' holds ['a'], expected text; the family for several labels of a text is label_sets",
    ),
    ("label_sets", {"labels": "weather"}, "the column 'labels' holds 'weather', expected a list of texts, as JSON"),
    ("label_sets", {"labels": [1]}, "the column 'labels' holds [1], expected a list of texts"),
    ("label_sets", {"labels": ["weather", "weather"]}, "the column 'labels' holds 'weather' twice"),
    ("pair_regression", {"label": "high"}, "the column 'label' holds 'high', expected a number"),
    ("pair_regression", {"label": float("inf")}, "expected a finite number"),
    ("tagging", {"tags": "B-PER O"}, "expected a list of texts, as JSON"),
    ("tagging", {"tags": ["O", "I-PER", "O"]}, "'I-PER' after 'O'"),
    ("few_shot_tagging", {"tags": ["O", "B-PER"]}, "holds the type 'PER', which no support sentence has"),
    ("few_shot_tagging", {"support_tags": [["O", "B-LOC"]]}, "sentence 0: the column 'tags' holds 2 tags for 3 tokens"),
    ("span_extraction", {"answer_starts": [4, 5]}, "the answer '1815' is not at character 4"),
    ("translated_spans", {"source_context": ""}, "the column 'source_context' is empty"),
    ("multiple_choice", {"answer": 1.5}, "expected an index, counted from 0"),
    ("multiple_choice", {"answer": 2}, "expected an index from 0 to 1"),
    ("text_generation", {"target": " "}, "the column 'target' is empty"),
    (
        "text_classification",
        {"label": 0.37},
        "the column 'label' holds 0.37, expected a class: a text or a whole number",
    ),
    ("text_classification", {"label": float("nan")}, "expected a class"),
    ("span_pair_classification", {"span2_index": 4}, "'span2' holds '他', which is not at character 4"),
    ("word_senses", {"word_index": 6}, "'word' holds 'bank', which is not at character 6 of 'context'"),
    ("word_senses", {"definitions": "land"}, "expected a list of texts, as JSON"),
    ("minimal_pairs", {"sentences": ["one"]}, "the column 'sentences' holds 1, expected two"),
    ("dependency_parsing", {"heads": [2, 3, 2, 2]}, "the column 'heads' has 0 roots"),
    ("dependency_parsing", {"heads": [2, 0, 4, 3]}, "the column 'heads' contains a cycle: word 3 → 4 → 3"),
    (
        "dependency_parsing",
        {"heads": [2, 0, 2, 5]},
        "the column 'heads' holds 5 for word 4, expected 0 (the root) to 4",
    ),
    (
        "layout_tagging",
        {"boxes": [[0, 0, 9, 9], [30, 0, 10, 9]]},
        "the column 'boxes' holds [30, 0, 10, 9], number 1: x1 < x0",
    ),
    ("layout_tagging", {"boxes": [[0, 0, 9, 9], [10, 0, 101, 9]]}, "number 1, outside the page of [100, 50]"),
    ("layout_tagging", {"boxes": [[0, 0, 9, 9], "1 2 3 4"]}, "expected a list of lists of whole numbers"),
    (
        "layout_tagging",
        {"tags": ["B-question", "I-answer"]},
        "the column 'tags' holds 'I-answer' after 'B-question', number 1",
    ),
]


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


def read(path: Path, name: str, **columns: str) -> list[dict[str, Any]]:
    found = list(ExampleReader(family(name), Tally(), columns=columns).read(path.name, path))
    assert all(where.startswith(f"{path.name}:") for _, where in found)
    return [example for example, _ in found]


def write(path: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        schema = labelled(family(name))
        pq.write_table(pa.Table.from_pylist(rows, pa.schema([schema.field(key) for key in rows[0]])), path)
    elif path.suffix == ".csv":
        cells = [[value if isinstance(value, str) else json.dumps(value) for value in row.values()] for row in rows]
        quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in [list(rows[0]), *cells]]
        path.write_text("".join(",".join(row) + "\n" for row in quoted), encoding="utf-8")
    else:
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        packs: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}
        pack = packs.get(path.suffix, bytes)
        path.write_bytes(pack(content))
    return path


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet"])
@pytest.mark.parametrize("name", ROWS)
def test_every_format_gives_the_rows_of_every_family(tmp_path: Path, name: str, ending: str) -> None:
    assert read(write(tmp_path / f"a.{ending}", name, ROWS[name]), name) == ROWS[name]


@pytest.mark.parametrize(("name", "change", "says"), BAD)
def test_a_bad_row_is_told_with_its_file_and_line(tmp_path: Path, name: str, change: dict[str, Any], says: str) -> None:
    good = ROWS[name][0]
    path = write(tmp_path / "a.jsonl", name, [good, good | change])
    with pytest.raises(DataError) as told:
        read(path, name)
    assert str(told.value).startswith(f"{path}:2: ") and says in str(told.value)


def test_labels_are_text_whatever_they_were(tmp_path: Path) -> None:
    rows = [{"text": "one", "label": value} for value in (1, 1.0, "1", " 1 ")]
    assert {
        row["label"] for row in read(write(tmp_path / "a.jsonl", "text_classification", rows), "text_classification")
    } == {"1"}


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_labels_of_files_without_types_are_the_same_and_no_scores(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    mark = "," if ending == "csv" else "\t"
    head = "text,label\n" if ending == "csv" else ""
    path.write_text(head + "".join(f"one{mark}{label}\n" for label in ("1", "1.0", "-2.00", "v3.11")))
    assert [row["label"] for row in read(path, "text_classification")] == ["1", "1", "-2", "v3.11"]
    path.write_text(head + f"one{mark}1.0\ntwo{mark}0.37\n")
    with pytest.raises(
        DataError, match=rf"a\.{ending}:\d: the column 'label' holds '0.37', expected a class: .* pair_regr"
    ):
        read(path, "text_classification")


def test_marks_of_other_systems_do_not_count(tmp_path: Path) -> None:
    for ending, content in {
        "jsonl": '{"text": "gut", "label": "1"}\r\n',
        "csv": "text,label\r\ngut,1\r\n",
        "tsv": "gut\t1\r\n",
        "json": '[{"text": "gut", "label": "1"}]\r\n',
    }.items():
        path = tmp_path / f"a.{ending}"
        path.write_bytes(b"\xef\xbb\xbf" + content.encode())
        assert read(path, "text_classification") == [{"text": "gut", "label": "1"}], ending


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "pair_classification", [{"premise": "a", "hypothesis": "b", "gold": "no"}])
    found = read(path, "pair_classification", text_a="premise", text_b="hypothesis", label="gold")
    assert found == [{"text_a": "a", "text_b": "b", "label": "no"}]
    with pytest.raises(DataError, match="there is no column 'text_a'; the columns are 'premise', 'hypothesis', 'gold'"):
        read(path, "pair_classification")


def test_a_tsv_file_holds_the_columns_in_order_and_may_be_turned_round(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Wait!\t等等！\n\nGo.\t走吧。\r\n", encoding="utf-8")
    assert read(path, "text_generation") == ROWS["text_generation"]
    assert read(path, "text_generation", source="target", target="source")[0] == {"source": "等等！", "target": "Wait!"}
    path.write_text('one "field\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.tsv:1: the line has 1 fields, expected 2: source, target"):
        read(path, "text_generation")
    with pytest.raises(DataError, match="a tsv file cannot hold the lists of tokens, tags"):
        read(path, "tagging")


def squad(*questions: dict[str, Any]) -> bytes:
    paragraph = {"context": "Ada, 1815.", "qas": list(questions)}
    return json.dumps({"version": "v2.0", "data": [{"title": "Ada", "paragraphs": [paragraph]}]}).encode()


def test_squad_1_and_2_give_questions_with_and_without_answers(tmp_path: Path) -> None:
    answers = [{"text": "1815", "answer_start": 5}, {"text": "1815.", "answer_start": 5}]
    plausible = [{"text": "Ada", "answer_start": 0}]
    path = tmp_path / "a.json.gz"
    path.write_bytes(
        gzip.compress(
            squad(
                {"id": "q1", "question": "When?", "answers": answers},
                {
                    "id": "q2",
                    "question": "Where?",
                    "answers": [],
                    "is_impossible": True,
                    "plausible_answers": plausible,
                },
            )
        )
    )
    assert read(path, "span_extraction") == ROWS["span_extraction"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            squad({"id": "q7", "question": "?", "answers": [{"text": "1815", "answer_start": 4}]}),
            ":q7: the answer '1815' is not",
        ),
        (
            squad({"id": "q7", "question": "?", "answers": []}),
            ":q7: the question has no answer; mark it 'is_impossible'",
        ),
        (squad({"id": "q7", "answers": []}), ":q7: the question has no answer"),
        (b'{"data": [{"paragraphs": [{}]}]}', "not in the form of SQuAD: KeyError 'qas'"),
        (b"[1]", ":0: expected a JSON object, found int"),
        (b'{"data": ', "not readable as JSON"),
    ],
)
def test_a_file_that_is_not_squad_s_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DataError) as told:
        read(path, "span_extraction")
    assert str(path) in str(told.value) and says in str(told.value)


def test_formats_that_cannot_hold_a_family_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(DataError, match="unknown file extension; known: .jsonl, .csv, .tsv, .json, .conllu, .parquet"):
        read(tmp_path / "a.txt", "text_classification")
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(DataError, match="not in the form of SQuAD: KeyError"):
        read(tmp_path / "a.json", "tagging")
