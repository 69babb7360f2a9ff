"""A small checkpoint without fault, and changes of its files."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BILLION = 10**9
SIZES = {
    "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
    "max_position_embeddings": 64,
}  # fmt: skip
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz"]

Attack = Callable[[Path], object]


class Harmful:
    """What unpickling runs: a folder `harmed` is made in the current one."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (os.mkdir, ("harmed",))


def good_folder(folder: Path) -> Path:
    """A classifier of two classes, as transformers saves it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    labels = {0: "one", 1: "other"}
    BertForSequenceClassification(BertConfig(**SIZES, id2label=labels)).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece({token: number for number, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    return folder


def config(**values: Any) -> Attack:
    """Change keys of config.json."""
    return changed("config.json", lambda config: config.update(values))


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> Attack:
    """Change the object in a JSON file."""

    def attack(folder: Path) -> None:
        value = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
        change(value)
        (folder / name).write_text(json.dumps(value))

    return attack


def tokenizer(**values: Any) -> Attack:
    """Change keys of tokenizer.json."""
    return changed("tokenizer.json", lambda tokenizer: tokenizer.update(values))


def vocabulary(value: Any) -> Attack:
    return changed("tokenizer.json", lambda tokenizer: tokenizer["model"].update(vocab=value))


def expression(pattern: str) -> Mapping[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def written(name: str, content: bytes) -> Attack:
    return lambda folder: (folder / name).write_bytes(content)


def linked(name: str, target: str) -> Attack:
    return lambda folder: (folder / name).symlink_to(target)


def header(**entries: Any) -> Attack:
    """Weights with this header, over 64 bytes of data."""
    text = json.dumps(entries).encode()
    return written("model.safetensors", struct.pack("<Q", len(text)) + text + bytes(64))


def tensor(shape: list[Any], begin: int = 0, end: int = 64, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def repeated(folder: Path) -> None:
    entry = json.dumps(tensor([16]))
    text = f'{{"a": {entry}, "a": {entry}}}'.encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))


def saved_by_torch(legacy: bool) -> Attack:
    def attack(folder: Path) -> None:
        import torch

        torch.save({"weights": torch.zeros(2)}, folder / "weights", _use_new_zipfile_serialization=not legacy)

    return attack


def bound_socket(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)  # the name of a socket has 108 bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("door")
    finally:
        os.chdir(before)


def large_adapter(folder: Path) -> None:
    record = {
        "head": {"name": "sequence_classification"}, "family": "text_classification", "labels": ["a", "b"],
        "extensions": [{"name": "adapter", "size": 60_000}],
    }  # fmt: skip
    config(cursus=record, architectures=None)(folder)
