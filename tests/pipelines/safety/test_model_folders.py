"""The checks of a model folder: whatever stands in its JSON they answer with a reason or nothing, and the expressions
of tokenizers in use pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipelines.safety.model_folders import UnsafeFolderError, check_model_folder
from pipelines.safety.model_folders.expressions import unbounded
from pipelines.safety.model_folders.files import is_pickle

CONFIG = {
    "model_type": "bert", "architectures": ["BertModel"], "id2label": {"0": "a"}, "vocab_size": 4, "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 8,
    "text_config": {"hidden_size": 8, "num_heads": [2]}, "cursus": {"head": {"hidden": 8}},
    "attn_implementation": "eager",
}  # fmt: skip
TOKENIZER = {
    "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}},
    "added_tokens": [{"id": 2, "content": "x"}],
    "normalizer": {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}},
    "post_processor": {"special_tokens": {"x": {"ids": [2]}}, "sep": ["x", 2], "cls": ["x", 2]},
    "truncation": {"max_length": 8, "stride": 0},
    "padding": {"strategy": {"Fixed": 8}, "pad_id": 0, "pad_to_multiple_of": 8},
}
SETTINGS = {"model_max_length": 8, "added_tokens_decoder": {"2": {"content": "x"}}, "pad_token": "x"}
INDEX = {"weight_map": {"w": "model.safetensors"}}
FILES = {
    "config.json": CONFIG, "tokenizer.json": TOKENIZER, "tokenizer_config.json": SETTINGS, "vocab.json": {"a": 0},
    "model.safetensors.index.json": INDEX,
}  # fmt: skip
VALUES = (None, True, 0, -1, 1.5, 10**30, "x", "", [], [1], [None], [["a", "b"]], {}, {"a": 1}, {"a": None})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, value in FILES.items():
        (tmp_path / name).write_text(json.dumps(value))
    save_file({"w": np.zeros((8, 8), np.float32), "v": np.zeros((8, 8), np.float32)}, tmp_path / "model.safetensors")
    return tmp_path


def replaced(value: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by each of VALUES."""
    yield from VALUES
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for other in replaced(part):
            changed = deepcopy(value)
            changed[key] = other
            yield changed


@pytest.mark.parametrize("name", FILES)
def test_a_value_of_any_other_kind_is_refused_or_passes(name: str, folder: Path) -> None:
    check_model_folder(folder)
    refused = 0
    for value in replaced(FILES[name]):
        (folder / name).write_text(json.dumps(value))
        try:
            check_model_folder(folder)
        except UnsafeFolderError as error:
            refused += 1
            assert str(folder) in str(error)
    assert refused


USED = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "BLOOM": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "DeepSeek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*",
    "CLIP": r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "Kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{M}&&[^\p{Han}]]+(?i:'s|'t)?|\p{N}{1,3}",
    "T5": r" {2,}",
    "possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]",
}  # fmt: skip


@pytest.mark.parametrize("name", USED)
def test_expressions_in_use_pass(name: str) -> None:
    assert unbounded(USED[name]) is None


@pytest.mark.parametrize(
    "expression",
    [
        "(a+)+$", "(a|aa)*b", ".*.*.*b", r"(a*)\1", "(?:a*)*", r"(?<x>a)\k<x>", r"(\w+\s?)*$", "([a-z]{1,40}){2,}x",
        r"\w*\w*\x00", "(((a{1,30}){1,30}){1,30}){1,30}", "(" * 50 + "a" + ")" * 50, "a" * 5000, "(?~abc)", "(", "[a",
        "(a?){50}a{50}", "a?" * 30 + "a" * 30, "(a|a)" * 20 + "b", "a{1,32}" * 8, "a**", "a*(?:b*a*)c", "*a", "a)",
        r"\g<1>(a|b\g<1>c)", "x{1,1000}x{1,1000}y", "(?{code})", "(*FAIL)",
    ],
)  # fmt: skip
def test_expressions_that_may_never_end_do_not(expression: str) -> None:
    assert unbounded(expression)


@pytest.mark.parametrize(
    "text",
    [b"", b".", b"cat\ndog\n", b"(in short\nb\n", b"c\nd\n)R.", b"\x80\x02", b"\x80\x03\xff\x00" * 90, b"#!/bin/sh"],
)
def test_other_data_is_no_pickle(text: bytes) -> None:
    assert not is_pickle(text)
