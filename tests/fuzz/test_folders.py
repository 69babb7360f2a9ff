"""Folders of models with mistakes in them: opened as far as planning does, or refused with the folder's name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from pipelines.recipe.checkpoint import backbone_of
from tests.fuzz.contents import damaged, packings
from tests.fuzz.effort import effort, refusal_of, with_findings
from tests.fuzz.structure import mistaken

CONFIG: dict[str, Any] = {
    "model_type": "bert", "architectures": ["BertModel"], "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 64, "type_vocab_size": 2,
    "id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}, "hidden_dropout_prob": 0.1, "pad_token_id": 0,
}  # fmt: skip
KINDS = [
    "bert",
    "roberta",
    "gpt2",
    "t5",
    "xlnet",
    "electra",
    "awd_lstm",
    "ngram",
    "nnlm",
    "neural_bigram",
    "lstm",
    "bilstm",
    "elmo",
    "word_vectors",
    "x",
]
WEIGHTS = save({"embeddings.word_embeddings.weight": np.zeros((40, 8), dtype=np.float32)})
INDEX: dict[str, Any] = {"metadata": {"total_size": 1}, "weight_map": {"a.weight": "model.safetensors"}}
HEADER: dict[str, Any] = {
    "a": {"dtype": "F32", "shape": [40, 8], "data_offsets": [0, 1280]},
    "__metadata__": {"a": "b"},
}


def with_header(header: Any) -> bytes:
    """A file of weights with another header."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(1280)


def as_json(value: Any) -> st.SearchStrategy[bytes]:
    """A JSON file of `value` with mistakes in its values, or in its bytes."""
    return mistaken(value).map(lambda one: json.dumps(one).encode()) | damaged(json.dumps(value).encode())


@st.composite
def folders(draw: st.DrawFn) -> dict[str, bytes | None]:
    """Name → content of the files of a model with mistakes; None for a link."""
    config = {**CONFIG, "model_type": draw(st.sampled_from(KINDS))}
    files: dict[str, bytes | None] = {"config.json": json.dumps(config).encode(), "model.safetensors": WEIGHTS}
    for mistake in draw(st.lists(st.sampled_from(["config", "weights", "header", "index", "more", "link", "packed"]))):
        match mistake:
            case "config":
                files["config.json"] = draw(as_json(config))
            case "weights":
                files["model.safetensors"] = draw(damaged(WEIGHTS))
            case "header":
                files["model.safetensors"] = with_header(draw(mistaken(HEADER)))
            case "index":
                files["model.safetensors.index.json"] = draw(as_json(INDEX))
            case "more":
                name = draw(st.sampled_from(["a.bin", "a.pkl", "weights", "tokenizer.json", "a.py", "deep/b.pt"]))
                files[name] = draw(st.binary(max_size=30) | st.sampled_from([b"\x80\x04\x95", b"[" * 10**5, b"{}"]))
            case "packed":
                packing, content = draw(st.sampled_from(sorted(packings(WEIGHTS).items())))
                files[f"model.safetensors{packing}"] = content
            case _:
                files[draw(st.sampled_from(["config.json", "tokenizer.json", "model.safetensors"]))] = None
    return files


@with_findings(
    [
        {
            "config.json": json.dumps(CONFIG).encode(),
            "model.safetensors": with_header({"a": HEADER["a"] | {"dtype": {}}}),
        },
        {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": WEIGHTS, "tokenizer.json": None},
        {"config.json": json.dumps(CONFIG | {"max_position_embeddings": [64]}).encode(), "model.safetensors": WEIGHTS},
    ]
)
@given(folders())
@effort(40)
def test_a_checkpoint_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes | None]
) -> None:
    folder: Path = tmp_path_factory.mktemp("model")
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        if content is None:
            os.symlink(folder / name, folder / name)
        else:
            (folder / name).write_bytes(content)
    message = refusal_of(lambda: backbone_of(str(folder)))
    assert message is None or str(folder) in message, message
