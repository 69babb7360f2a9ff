"""Published forms of labelled sets: trees, pages, facts and tables in the files their benchmarks come in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pipelines.corpora.examples.files import ExampleReader
from pipelines.corpora.examples.formats import conllu
from pipelines.corpora.examples.side_tables import read_side_tables
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError, RecipeError
from pipelines.task_families import Lookup, Problem, TaskFamily
from tests.pipelines.corpora.test_examples import ROWS as IN_FILES
from tests.pipelines.task_families.test_rows import ROWS

TREE = """\
# newdoc id = one
# sent_id = s1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
4.1\t_\t_\t_\t_\t_\t_\t_\t5:dep\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_
"""
READ = {
    "sentence": "Vámonos al mar.",
    "words": ["Vamos", "nos", "a", "el", "mar", "."],
    "heads": [0, 1, 5, 5, 1, 1],
    "relations": ["root", "obj", "case", "det", "obl", "punct"],
}


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


def read(path: Path, name: str, tables: dict[str, Lookup] | None = None, tally: Tally | None = None) -> list[Any]:
    reader = ExampleReader(family(name), tally or Tally(), tables=tables)
    return [example for example, _ in reader.read(path.name, path)]


@pytest.mark.parametrize("ending", ["conllu", "conllu.gz"])
@pytest.mark.parametrize("text", [TREE, TREE.replace("# text = Vámonos al mar.\n", ""), TREE.replace("\n", "\r\n")])
def test_trees_with_ranges_empty_nodes_and_comments(tmp_path: Path, text: str, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    content = f"\ufeff{text}\n{text.replace('s1', 's2')}".encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert read(path, "dependency_parsing") == [READ, READ]
    with pytest.raises(DataError, match=r"a conllu file holds trees \(sentence, words, .*\) and no 'tokens'"):
        read(path, "tagging")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("5\tmar", "6\tmar", "line 24: the column ID holds '6' after word 4"),
        ("5\tmar", "x\tmar", "line 24: the column ID holds 'x' after word 4"),
        ("3-4\tal", "4-3\tal", "line 20: the column ID holds '4-3' after word 2"),
        ("3-4\tal", "3-9\tal", "a range of the column ID ends at 9, the sentence at word 6"),
        ("\t1\tobl", "\t_\tobl", "line 24: the column HEAD holds '_'"),
        ("\t1\tobl", "\t1 obl", "line 24 has 9 columns separated by tabs, expected 10"),
        ("\t1\tobl", "\t7\tobl", "the column 'heads' holds 7 for word 5, expected 0 (the root) to 6"),
        ("\t1\tobl", "\t0\tobl", "the column 'heads' has 2 roots (words whose head is 0): words 1, 5; a tree has one"),
        ("\t1\tobl", "\t3\tobl", "the column 'heads' contains a cycle: word 3 → 5 → 3"),
        ("\t1\tobl", "\t1\t ", "the column 'relations' holds nothing for word 5"),
        ("s2", "s1", "the id 's1' is also that of another record, a.conllu:1"),
    ],
)
def test_what_is_no_tree_is_told_with_its_lines(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "a.conllu"
    second = TREE.replace("s1", "s2").replace(old, new).replace("mar.", "mar!")
    path.write_text(f"{TREE}\n{second}", encoding="utf-8")
    with pytest.raises(DataError) as told:
        read(path, "dependency_parsing")
    assert str(told.value).startswith(f"{path}:{TREE.count(chr(10)) + 2}: ") and says in str(told.value)


forms = some.text(some.characters(exclude_categories=("C", "Z")), min_size=1, max_size=4)


@given(some.lists(some.tuples(forms, some.booleans(), some.booleans()), min_size=1, max_size=8), some.data())
@settings(max_examples=60, deadline=None)
def test_any_sentence_that_is_written_is_read(words: list[tuple[str, bool, bool]], data: some.DataObject) -> None:
    lines, text = ["# a comment", "#"], ""
    for number, (form, spaced, surface) in enumerate(words, 1):
        misc = "_" if spaced else "SpaceAfter=No"
        written = data.draw(forms) if surface else form
        if surface:
            lines.append("\t".join([f"{number}-{number}", written, *"_" * 7, misc]))
        lines.append("\t".join([str(number), form, *"_" * 4, str(number - 1), "dep", "_", misc]))
        lines += [f"{number}.1" + "\t_" * 9] * data.draw(some.integers(0, 1))
        text += written + " " * spaced
    ((place, found),) = conllu.read(enumerate([*lines, ""], 1))
    assert place == "1" and isinstance(found, dict)
    assert found["words"] == [form for form, _, _ in words] and found["sentence"] == text.strip()
    assert found["heads"] == [*range(len(words))]


@given(some.integers(1, 7).flatmap(lambda size: some.lists(some.integers(0, size), min_size=size, max_size=size)))
@settings(max_examples=300, deadline=None)
def test_heads_are_a_tree_where_graph_theory_says_so(heads: list[int]) -> None:
    row = {"sentence": "x", "words": ["x"] * len(heads), "heads": heads, "relations": ["dep"] * len(heads)}
    graph = networkx.DiGraph([(head, word) for word, head in enumerate(heads, 1)])
    sound = networkx.is_arborescence(graph) and heads.count(0) == 1
    assert (family("dependency_parsing").problem(row) is None) == sound


FORM = {
    "form": [
        {"id": 0, "label": "question", "text": "Full name:", "box": [0, 0, 30, 9], "linking": [[0, 2]], "words": [
            {"text": "Full", "box": [0, 0, 9, 9]}, {"text": " ", "box": [9, 0, 9, 9]}, {"text": "name:", "box": [10, 0,
            30, 9]}]},
        {"id": 1, "label": "other", "text": "", "box": [0, 0, 0, 0], "linking": [], "words": [{"text": "", "box": [0, 0,
        0, 0]}]},
        {"id": 2, "label": "answer", "text": "Ada", "box": [31, 0, 60, 9], "linking": [[0, 2]], "words": [
            {"text": "Ada", "box": [31, 0, 60, 9]}]},
        {"id": 3, "label": "other", "text": "1", "box": [0, 20, 5, 29], "linking": [], "words": [
            {"text": "1", "box": [0, 20, 5, 29]}]},
    ]
}  # fmt: skip


def test_pages_of_funsd_in_a_file_each_or_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(FORM))
    lines = ({"id": str(number), "entities": FORM["form"]} for number in range(2))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tally = Tally()
    (page,) = read(tmp_path / "a.json", "layout_tagging", tally=tally)
    assert page == {
        "tokens": ["Full", "name:", "Ada", "1"],
        "boxes": [[0, 0, 9, 9], [10, 0, 30, 9], [31, 0, 60, 9], [0, 20, 5, 29]],
        "tags": ["B-question", "I-question", "B-answer", "O"],
        "page": [],
    }
    assert tally.changed == {"a word without text left out": 2, "an entity without text left out": 1}
    assert read(tmp_path / "a.jsonl", "layout_tagging") == [page, page]
    (tmp_path / "a.json").write_text('{"form": [{"label": "answer"}]}')
    with pytest.raises(DataError, match=r"a\.json:0: the entity 0 has no list 'words'"):
        read(tmp_path / "a.json", "layout_tagging")


PUBLISHED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "span_pair_classification",
        {"text": "毛豆说他累了", "label": "true", "target": {
            "span1_text": "毛豆", "span1_index": 0, "span2_text": "他", "span2_index": 3}},
        IN_FILES["span_pair_classification"][0],
    ),
    (
        "span_extraction",
        {"id": "q", "context": "Ada, 1815.", "question": "When?", "answers": {"text": ["1815"], "answer_start": [5]}},
        {"context": "Ada, 1815.", "question": "When?", "answer_texts": ["1815"], "answer_starts": [5]},
    ),
    (
        "multiple_choice",
        {"context": "It rains.", "choices": ["wet", "dry"], "answer": 0},
        {"context": "It rains.", "question": "", "choices": ["wet", "dry"], "answer": 0},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "record", "expected"), PUBLISHED)
def test_records_in_the_form_of_a_benchmark(
    tmp_path: Path, name: str, record: dict[str, Any], expected: dict[str, Any]
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    assert read(tmp_path / "a.jsonl", name) == [expected]


def test_minimal_pairs_of_blimp_stand_in_both_orders(tmp_path: Path) -> None:
    pairs = [
        {"sentence_good": f"They walk {n}.", "sentence_bad": f"They walks {n}.", "UID": "plural"} for n in range(40)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    found = read(tmp_path / "a.jsonl", "minimal_pairs")
    assert [row["sentences"][row["answer"]] for row in found] == [pair["sentence_good"] for pair in pairs]
    assert {row["answer"] for row in found} == {0, 1} and {row["paradigm"] for row in found} == {"plural"}


def write_facts(folder: Path) -> None:
    (folder / "facts.tsv").write_text("Q1\tin\tQ2\n")
    (folder / "entities.tsv").write_text("Q1\tAda\tmathematician\tfurther\nQ2\tLondon\n")
    (folder / "relations.tsv").write_text("in\tlives in\n")


PATHS = {"entities": "entities.tsv", "relations": "relations.tsv"}


def test_facts_take_names_from_side_tables(tmp_path: Path) -> None:
    write_facts(tmp_path)
    tables = read_side_tables(family("link_prediction"), PATHS, tmp_path)
    (fact,) = read(tmp_path / "facts.tsv", "link_prediction", tables)
    assert fact == {
        "head": "Q1", "relation": "in", "tail": "Q2", "head_name": "Ada", "head_description": "mathematician",
        "relation_name": "lives in", "tail_name": "London", "tail_description": "", "other_heads": "",
        "other_tails": "",
    }  # fmt: skip
    (tmp_path / "facts.tsv").write_text("Q1\tin\tQ2\nQ1\tin\tQ7\n")
    with pytest.raises(DataError, match=r"facts\.tsv:2: the column 'tail' holds 'Q7', which has no name in 'entities'"):
        read(tmp_path / "facts.tsv", "link_prediction", tables)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("Q1\tAda\nQ1\tGrace\n", r"entities\.tsv:2: entities: the key 'Q1' occurs already in entities\.tsv:1"),
        ("Q1\n", r"entities\.tsv:1: the line has 1 fields, expected 2 or more: id, name, description"),
        ("\tAda\n", r"entities\.tsv:1: entities: the column 'id' is empty"),
    ],
)
def test_side_tables_gone_wrong_are_told(tmp_path: Path, content: str, says: str) -> None:
    write_facts(tmp_path)
    (tmp_path / "entities.tsv").write_text(content)
    with pytest.raises(DataError, match=says):
        read_side_tables(family("link_prediction"), PATHS, tmp_path)


def test_questions_take_rows_from_tables(tmp_path: Path) -> None:
    table = {"table_id": "t1", "header": ["Name", "Place"], "rows": [["Ada", "1"], ["Grace", "2"]]}
    (tmp_path / "tables.jsonl").write_text(json.dumps(table))
    (tmp_path / "a.jsonl").write_text(json.dumps({"question": "Who?", "table_id": "t1", "answers": ["Ada"]}))
    tables = read_side_tables(family("table_questions"), {"tables": "tables.jsonl"}, tmp_path)
    (row,) = read(tmp_path / "a.jsonl", "table_questions", tables)
    assert row == {"question": "Who?", "answers": ["Ada"], **table}
    (tmp_path / "tables.jsonl").write_text(json.dumps(table | {"rows": [["Ada", 1]]}))
    with pytest.raises(
        DataError, match=r"tables\.jsonl:1: tables: the column 'rows' holds .*, expected a list of lists of te"
    ):
        read_side_tables(family("table_questions"), {"tables": "tables.jsonl"}, tmp_path)


def test_a_task_names_its_side_tables(tmp_path: Path) -> None:
    task = "family: link_prediction, train: a.tsv, test: b.tsv, entities: e.tsv"
    text = "datasets:\n  small:\n    general: g.txt\n    domain: d.txt\n    task: {%s}\n"
    (tmp_path / "params.yaml").write_text(text % f"{task}, relations: r.tsv")
    found = load_dataset("small", tmp_path).task
    assert getattr(found, "files", None) == ["a.tsv", "b.tsv", "e.tsv", "r.tsv"]
    (tmp_path / "params.yaml").write_text(text % task)
    with pytest.raises(
        RecipeError, match=r"link_prediction needs the key 'relations': the file of its relations \(id, name\)"
    ):
        load_dataset("small", tmp_path)
    (tmp_path / "params.yaml").write_text(text % f"{task}, relation: r.tsv, entity: r.tsv")
    with pytest.raises(RecipeError, match=r"unknown key 'entity'\. Did you mean 'entities'\?"):
        load_dataset("small", tmp_path)


anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=5),
    lambda inside: some.lists(inside, max_size=3) | some.dictionaries(some.text(max_size=3), inside, max_size=2),
    max_leaves=6,
)
KNOWN: dict[str, dict[str, Lookup]] = {
    "link_prediction": {
        "entities": {"Q7259": {"name": "Ada"}, "Q84": {"name": "London"}},
        "relations": {"P19": {"name": "in"}},
    },
    "table_questions": {"tables": {"t1": {"header": ["a"], "rows": [["b"]]}}},
}


@pytest.mark.parametrize("name", ROWS)
@given(data=some.data())
@settings(max_examples=40, deadline=None)
def test_any_record_is_an_example_or_is_counted(tmp_path_factory: pytest.TempPathFactory, name: str, data: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    fields = family(name).fields or family(name).columns
    row = {key: ROWS[name][key] for key in fields}
    changes = data.draw(
        some.lists(some.dictionaries(some.sampled_from([*fields, "form", "target"]), anything), max_size=4)
    )
    path.write_text("".join(json.dumps(row | change) + "\n" for change in [*changes, {}]))
    tally = Tally()
    reader = ExampleReader(family(name), tally, tables=KNOWN.get(name), drop_bad_rows=True)
    found = [example for example, _ in reader.read("a.jsonl", path)]
    assert found and len(found) + tally.dropped.total() == len(changes) + 1
    for example in found:
        problem = family(name).problem(example)
        assert problem is None or (isinstance(problem, Problem) and not family(name).text(example).strip())
