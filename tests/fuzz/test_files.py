"""Files of texts and of examples with mistakes in them: read, or refused with the file's name."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.examples.files import ExampleReader
from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files
from pipelines.corpora.settings.sources import FileSource
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.sources import texts
from pipelines.corpora.steps.split import split
from pipelines.task_families import TaskFamily
from tests.fuzz.contents import damaged, packings
from tests.fuzz.effort import effort, refusal_of, with_findings
from tests.pipelines.corpora.test_examples import ROWS
from tests.small_corpus import documents

TEXTS = documents("email")
STEPS = (pin, collect, clean, deduplicate, decontaminate, select, split)
PARAMS = """\
datasets:
  small: {general: general.txt, domain: domain.txt, task: {train: train.jsonl, test: test.jsonl}}
"""


def _table(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def contents_of(rows: list[dict[str, Any]]) -> dict[str, bytes]:
    """The same rows as a file of each format: extension → bytes."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    cells = [[str(value) for value in row.values()] for row in ([dict.fromkeys(rows[0], ""), *rows])]
    cells[0] = list(rows[0])
    quoted = "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in cells)
    tabs = "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in cells)
    plain = "\n\n".join(" ".join(cell.split()) for row in cells for cell in row)
    return {
        ".jsonl": lines.encode(),
        ".csv": quoted.encode(),
        ".tsv": tabs.encode(),
        ".txt": plain.encode(),
        ".json": json.dumps(rows).encode(),
        ".conllu": b"# text = a\n1\tAda\tAda\tX\t_\t_\t0\troot\t_\t_\n\n",
        ".parquet": _table(rows),
    }


OF_TEXTS = contents_of([{"text": text} for text in TEXTS[:20]])
OF_FAMILIES = {name: contents_of(rows * 3) for name, rows in ROWS.items()}


@st.composite
def files(draw: st.DrawFn, contents: dict[str, bytes]) -> tuple[str, bytes]:
    """Name and content of a file with mistakes in it, in its packing, or in both."""
    extension = draw(st.sampled_from(sorted(contents)))
    content = contents[extension]
    if draw(st.booleans()):
        content = draw(damaged(content))
    packing = draw(st.sampled_from(["", "", "", ".gz", ".zst", ".zip", ".tar.gz", ".lz4"]))
    content = packings(content)[packing]
    if packing and draw(st.booleans()):
        content = draw(damaged(content))
    named = draw(st.sampled_from([extension + packing] * 4 + [".txt", ".jsonl.gz", ".parquet", ".PARQUET", ""]))
    return f"file{named}", content


@with_findings([(f"bomb.txt{name}", packings(b"\n" * 2**25)[name]) for name in (".gz", ".zst")])
@given(files(OF_TEXTS))
@effort(60)
def test_texts_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes]) -> None:
    folder = tmp_path_factory.mktemp("texts")
    (folder / file[0]).write_bytes(file[1])
    for options in ({}, {"bad_records": "skip"}, {"format": "lines"}):
        source = FileSource.model_validate({"path": file[0], **options})
        message = refusal_of(lambda source=source: list(texts(source, folder, Tally())))
        assert message is None or file[0] in message, message


@given(st.sampled_from(sorted(OF_FAMILIES)).flatmap(lambda name: st.tuples(st.just(name), files(OF_FAMILIES[name]))))
@effort(60)
def test_examples_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, tuple[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("examples")
    family, (name, content) = case
    (folder / name).write_bytes(content)

    def read(drop: bool) -> None:
        reader = ExampleReader(TaskFamily.model_validate(family), Tally(), part="train", drop_bad_rows=drop)
        for own, path in find_files(name, folder, EXAMPLE_FORMATS).items():
            list(reader.read(own, path))

    for drop in (False, True):
        message = refusal_of(lambda drop=drop: read(drop))
        assert message is None or name in message, message


ROW = st.tuples(st.integers(0, 30), st.sampled_from(["a", "b", "c", "", None, 5, "label", "A"]))


@given(st.lists(ROW, max_size=25), st.lists(ROW, max_size=25))
@effort(8)
def test_tables_of_few_rows_are_prepared_or_refused(
    tmp_path_factory: pytest.TempPathFactory, train: list[tuple[int, Any]], test: list[tuple[int, Any]]
) -> None:
    root: Path = tmp_path_factory.mktemp("rows")
    (root / "params.yaml").write_text(PARAMS)
    for name, package in (("general", "http"), ("domain", "urllib")):
        (root / f"{name}.txt").write_text("\n\n".join(" ".join(text.split()) for text in documents(package)[:10]))
    for name, rows in (("train", train), ("test", test)):
        lines = [json.dumps({"text": TEXTS[number], "label": label}) + "\n" for number, label in rows]
        (root / f"{name}.jsonl").write_text("".join(lines))
    for step in STEPS:
        message = refusal_of(lambda step=step: step("small", root))
        if message is not None:
            assert "small" in message or ".jsonl" in message or "split" in message or "training" in message, message
            return
