"""A checkpoint that does not fit is refused when a recipe is loaded, with its place, the reason and what to do."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.recipe_texts import GPT, written
from tests.pipelines.recipe.test_parts_that_cannot_meet import refused
from tests.steps import library_of

BERT: dict[str, Any] = {"model_type": "bert", "vocab_size": 40, "hidden_size": 8, "max_position_embeddings": 64}


def checkpoint(folder: Path, config: dict[str, Any], rows: int = 40, weights: str = "model.safetensors") -> Path:
    """A Hugging Face folder with a matrix of `rows` words, and one of its positions."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tables = {"word": rows, "position": 64}
    save_file(
        {
            f"embeddings.{name}_embeddings.weight": np.zeros((size, 8), dtype=np.float32)
            for name, size in tables.items()
        },
        folder / weights,
    )
    return folder


def from_checkpoint(folder: Path, **parts: str) -> str:
    """A recipe whose stage on plain text takes over the checkpoint in `folder`."""
    lines = written(**parts).replace("kind: pretrain", f"kind: pretrain\n    start: {{checkpoint: {folder}}}")
    kept = [line for line in lines.splitlines() if not line.strip().startswith("tokenizer:")]
    if "backbone" not in parts:
        kept = [line for line in kept if not line.strip().startswith("backbone:")]
    return "\n".join(kept) + "\n"


def test_a_checkpoint_that_fits_is_taken(tmp_path: Path) -> None:
    recipe = from_checkpoint(checkpoint(tmp_path / "theirs", BERT))
    stage = library_of(tmp_path, meeting=recipe).load("meeting").stages["general"]
    assert stage.backbone is not None and stage.backbone.max_length == 64


@pytest.mark.parametrize(
    ("config", "rows", "parts", "says"),
    [
        (
            BERT,
            50,
            {},
            ("config.json states a vocabulary of 40, and no matrix in model.safetensors has as many", "(64, 8)"),
        ),
        (
            {**BERT, "max_position_embeddings": 90},
            40,
            {},
            ("config.json states positions of 90, and no matrix in model.safetensors has as many rows",),
        ),
        ({**BERT, "model_type": "mamba"}, 40, {}, ("the architecture 'mamba' is not supported; supported: ", "bert")),
        (BERT, 40, GPT, ("the backbone of the checkpoint is transformer bert, 64 positions", "remove backbone")),
        (BERT, 40, {"length": "80"}, ("length: rows of 80 tokens do not fit the 64 positions", "lower length")),
        (
            BERT,
            40,
            {"corruption": "permutation", "head": "permuted_lm", "objective": "permuted_lm"},
            ("permuted_lm needs a backbone that is two_stream, and this one (transformer bert)", "transformer xlnet"),
        ),
    ],
    ids=[
        "weights of another",
        "positions of another",
        "architecture unknown",
        "body of another",
        "rows too long",
        "body without an ability",
    ],
)
def test_a_checkpoint_of_another_shape_is_refused(
    config: dict[str, Any], rows: int, parts: dict[str, str], says: tuple[str, ...], tmp_path: Path
) -> None:
    recipe = from_checkpoint(checkpoint(tmp_path / "theirs", config, rows), **parts)
    message = refused(tmp_path, recipe, Setting())
    for part in says:
        assert part in message


def test_a_checkpoint_that_is_pickled_or_damaged_is_refused(tmp_path: Path) -> None:
    pickled = checkpoint(tmp_path / "pickled", BERT, weights="pytorch_model.bin")
    message = refused(tmp_path, from_checkpoint(pickled), Setting())
    assert "pytorch_model.bin: a pickle, which can execute code when it is read" in message
    assert "Convert the model with save_pretrained first" in message
    (pickled / "pytorch_model.bin").unlink()
    assert "no model.safetensors" in refused(tmp_path, from_checkpoint(pickled), Setting())
    damaged = checkpoint(tmp_path / "damaged", BERT)
    (damaged / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0not a header at all")
    assert "is damaged or not a safetensors file" in refused(tmp_path, from_checkpoint(damaged), Setting())
    (damaged / "config.json").write_text("{", encoding="utf-8")
    assert "config.json: not readable as JSON" in refused(tmp_path, from_checkpoint(damaged), Setting())
    absent = refused(tmp_path, from_checkpoint(tmp_path / "nowhere"), Setting())
    assert "no config.json" in absent and ":6: stages.general.start.checkpoint" in absent


def test_a_checkpoint_is_checked_again_when_it_has_changed(tmp_path: Path) -> None:
    """Also where size and time of modification are those of before."""
    folder = checkpoint(tmp_path / "theirs", BERT)
    extra = folder / "extra.txt"
    extra.write_bytes(b"no pickle".ljust(64, b"."))
    recipe = from_checkpoint(folder)
    library_of(tmp_path, meeting=recipe).load("meeting")
    library_of(tmp_path, meeting=recipe).load("meeting")
    before = extra.stat()
    time.sleep(0.02)  # a tick of the file system's clock
    extra.write_bytes(pickle.dumps("sixteen").ljust(before.st_size, b"."))
    os.utime(extra, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (extra.stat().st_size, extra.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert "extra.txt: " in refused(tmp_path, recipe, Setting())
