"""A new embedding of a channel is one new file, also of a channel that only the data and the recipe know."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from tests.copied_sources import copy_code
from tests.pipelines.training.small_recipe import GENERAL
from tests.steps import ROOT, library_of

RANKS = '''\
"""The rank of a number among those of its column (Herzig et al. 2020, TAPAS §3.1)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding


class RankEmbedding(Embedding, name="ranks"):
    """A vector for the rank of each token's word."""

    paper = "arXiv:2004.02349"
    channel: ClassVar[str] = "ranks"

    size: int = Field(256, gt=0)
    """Largest rank, and 0 for a word that is no number."""
'''
TRAIN = """
import json, sys
from pathlib import Path
import pyarrow, pyarrow.parquet
from safetensors.torch import load_file
import pipelines
from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_model
from pipelines.training.ranks.run import run
from tests.steps import job_of, library_of, plan_of
folder, table = map(Path, sys.argv[1:])
assert Path(pipelines.__file__).is_relative_to(folder)
texts = pyarrow.parquet.read_table(table)["text"].to_pylist()
rows = [{"text": " ".join(words), "tokens": words, "ranks": [len(word) for word in words]}
        for words in (text.split() for text in texts if text.isascii())]
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "general.parquet")
sources = {"general": DataSource(digest="0", path=str(folder / "general.parquet"))}
step = plan_of(library_of(folder, small=(folder / "small.yaml").read_text()), "small", sources, tiny=True).steps[0]
run(job_of(step, {}, {"general": folder / "general.parquet"}, folder / "out"))
record = open_model(folder / "out", "cpu").record
weights = load_file(folder / "out" / "model.safetensors")
table = weights["bert.embeddings.word_embeddings.channels.ranks.rows.weight"]
print(json.dumps({"embeddings": [one.name for one in record.embeddings], "shape": list(table.shape)}))
"""
WITH_RANKS = GENERAL.replace(
    "    backbone:\n      name: transformer\n",
    "    annotations: {name: word_column, channel: ranks, column: ranks, largest: 31}\n"
    "    backbone:\n      name: transformer\n      embeddings: {name: ranks, size: 32}\n",
)


def test_a_stage_trains_an_embedding_that_is_one_file(tmp_path: Path, tables: dict[str, Path]) -> None:
    copy_code(ROOT / "pipelines", tmp_path / "pipelines")
    (tmp_path / "pipelines" / "parts" / "embeddings" / "ranks.py").write_text(RANKS, encoding="utf-8")
    (tmp_path / "small.yaml").write_text(WITH_RANKS, encoding="utf-8")
    command = [sys.executable, "-c", TRAIN, str(tmp_path), str(tables["general"])]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"embeddings": ["ranks"], "shape": [32, 32]}
    with pytest.raises(RecipeError, match="no embedding is called 'ranks'"):
        library_of(tmp_path, small=WITH_RANKS).load("small")
