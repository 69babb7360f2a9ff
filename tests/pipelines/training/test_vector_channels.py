"""Vectors that a corpus brings stand beside its tokens: in the cache, in rows of every layout, and in the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.lineage.provenance import DataSource
from pipelines.parts.annotations.vector_column import VectorColumn
from pipelines.parts.layouts import Layout
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Channel, Field
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.small_corpus import documents
from tests.steps import job_of, library_of, plan_of

WIDTH = 3
VECTORS = VectorColumn(column="seen", width=WIDTH)
RECIPE = recipe_of(
    "small",
    "arXiv:1908.08530",
    masked_lm_stage(tokens=4096, width=16)
    .replace("    backbone:\n", "    annotations: {name: vector_column, column: seen, width: 3}\n    backbone:\n")
    .replace("      positions: 64\n", "      positions: 64\n      embeddings: {name: vectors, size: 3}\n"),
)


def rows() -> list[dict[str, Any]]:
    """Texts with a vector for each word but every third: its length, its place, and half of that."""
    texts = [text.split() for text in documents("json", "argparse") if text.isascii()]
    return [
        {
            "text": " ".join(words),
            "tokens": words,
            "seen": [[float(len(word)), float(at), at / 2] if at % 3 else [] for at, word in enumerate(words)],
        }
        for words in texts
    ]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("vectors") / "general.parquet", rows())


def test_a_cache_keeps_the_vector_of_every_token(
    table: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    stream = token_stream([table], tokenizer, None, None, tmp_path, annotations=[VECTORS])
    (channel,) = stream.channels.values()
    values = channel.at(np.arange(len(stream.tokens)))
    assert values.dtype == np.float32 and values.shape == (len(stream.tokens), WIDTH)
    expected = []
    for row in rows():
        backend = tokenizer.backend_tokenizer
        for word, vector in zip(row["tokens"], row["seen"], strict=True):
            expected += [vector or [0.0] * WIDTH] * len(backend.encode(word, add_special_tokens=False).ids)
        expected.append([0.0] * WIDTH)  # the end of the document
    np.testing.assert_array_equal(values, np.asarray(expected, dtype=np.float32))


@pytest.mark.parametrize("layout", ["windows", "contiguous", "packed_documents"])
def test_rows_of_every_layout_hold_the_vectors_of_their_tokens(
    layout: str, table: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    stream = token_stream([table], tokenizer, None, None, tmp_path, annotations=[VECTORS])
    batches = PlainBatches(
        stream, tokenizer, Layout.model_validate(layout), (), rows=4, length=24, steps=3, seed=0, corruption_shards=2
    )
    batch = batches[1]
    vectors = batch[VECTORS.channels[0].name].numpy()
    ids = batch[Field.INPUT_IDS].numpy()
    assert vectors.dtype == np.float32 and vectors.shape == (*ids.shape, WIDTH)
    special = np.isin(ids, tokenizer.all_special_ids)
    assert not vectors[special].any() and vectors[~special].any()
    # half of its place, in every vector
    np.testing.assert_allclose(vectors[..., 2], vectors[..., 1] / 2)


def test_a_stage_trains_the_matrix_that_projects_them(
    table: Path, sources: dict[str, DataSource], tmp_path: Path
) -> None:
    data = {**sources, "general": DataSource(digest="0", path=str(table))}
    (step,) = plan_of(library_of(tmp_path, small=RECIPE), "small", data).steps
    job = job_of(step, {}, {"general": table}, tmp_path / "out")
    run(job)
    weights = load_file(tmp_path / "out" / "model.safetensors")
    assert weights["bert.embeddings.word_embeddings.channels.vectors.projection.weight"].shape == (16, WIDTH)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seen": [[1.0, 2.0, 3.0]]}, r"general.parquet, row 1: the column 'seen' holds 1 vectors for \d+ words"),
        (
            {"seen": "narrow"},
            r"row 1: the vector of word 1 in the column 'seen' has 2 numbers, and the annotation says",
        ),
        ({"seen": "infinite"}, r"row 1: the channel 'vectors' has a value that is no finite number"),
        ({"text": "other words"}, r"row 1: its text is not the words of the column 'tokens', joined"),
    ],
)
def test_a_row_whose_vectors_do_not_fit_is_refused_with_its_place(
    change: dict[str, Any], says: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    first, second, *_ = rows()
    wrong = {"narrow": [1.0, 2.0], "infinite": [1.0, float("inf"), 0.0]}.get(str(change.get("seen")))
    if wrong is not None:
        change = {"seen": [[], wrong, *second["seen"][2:]]}
    table = written(tmp_path / "general.parquet", [first, {**second, **change}])
    with pytest.raises(DataError, match=says):
        token_stream([table], tokenizer, None, None, tmp_path / "cache", annotations=[VECTORS])


def test_a_channel_of_vectors_has_a_width() -> None:
    with pytest.raises(ValueError, match=r"the channel 'vectors_of_trial' has vectors: give their width, shape"):
        Channel("vectors_of_trial", size=None)
