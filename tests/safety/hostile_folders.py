"""What is done to a good checkpoint to harm whoever opens it, and the reason that is given."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.safety.folder_changes import (
    BILLION,
    TOKENS,
    Attack,
    Harmful,
    bound_socket,
    changed,
    config,
    expression,
    header,
    large_adapter,
    linked,
    repeated,
    saved_by_torch,
    tensor,
    tokenizer,
    vocabulary,
    written,
)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CODE = {"AutoModel": "mine.Mine"}
HARMLESS: Mapping[str, Attack] = {
    "as it is": lambda folder: None,
    "an expression in use": tokenizer(pre_tokenizer=expression(GPT2)),
    "a text": written("README.md", b"c\nd\n(a\nR."),
    "a token called auto_map": vocabulary({**{token: number for number, token in enumerate(TOKENS)}, "auto_map": 30}),
    "no limit of length": changed("tokenizer_config.json", lambda value: value.update(model_max_length=1e30)),
}
"""What is done to a folder that stays good."""
ONLY_WHERE_BUILT = {"defaults of a large model", "record of an adapter"}
"""What only the network shows: no recipe builds it, for want of the architecture or because it brings its own head."""
HOSTILE: Mapping[str, tuple[Attack, str]] = {
    # files
    "pickle without extension": (written("weights", pickle.dumps(Harmful())), "weights: a pickle"),
    **{
        f"pickle of protocol {protocol}": (written("NOTES", pickle.dumps(Harmful(), protocol)), "NOTES: a pickle")
        for protocol in (0, 1, 2, 4)
    },
    "pickle in a zip": (saved_by_torch(legacy=False), "weights: a zip archive, in which a pickle can be"),
    "pickle of old torch": (saved_by_torch(legacy=True), "weights: a pickle"),
    "pickle in an array": (
        lambda folder: np.save(folder / "array.npy", np.array([Harmful()], dtype=object)), "array.npy: a pickle"),
    "archive": (written("data", b"\x1f\x8b" + bytes(40)), "data: a gzip archive"),
    "loop of links": (
        lambda folder: [linked("a.json", "b.json")(folder), linked("b.json", "a.json")(folder)],
        "json: this link leads to no file, or in a circle"),
    "link to itself": (linked("self", "self"), "self: this link leads to no file, or in a circle"),
    "link to the folder": (linked("again", "."), "again: this link does not lead to a file"),
    "link to its parent": (linked("up", ".."), "up: this link leaves"),
    "link to a device": (linked("merges.txt", "/dev/zero"), "merges.txt: this link leaves"),
    "pipe": (lambda folder: os.mkfifo(folder / "vocab.txt"), "vocab.txt: neither a file nor a folder"),
    "socket": (bound_socket, "door: neither a file nor a folder"),
    "folders without end": (lambda folder: (folder / Path(*["d"] * 30)).mkdir(parents=True), "nested more than 16"),
    "adapter": (written("adapter_config.json", b"{}"), "adapter_config.json: an adapter, which names a base model"),
    # JSON
    "config of an array": (written("config.json", b"[]"), "config.json: holds an array, expected an object"),
    "config of null": (written("config.json", b"null"), "config.json: holds null, expected an object"),
    "config of no JSON": (written("config.json", b"{"), "config.json: not readable as JSON"),
    "JSON in UTF-16": (written("config.json", "{}".encode("utf-16")), "config.json: not readable as JSON"),
    "JSON without end": (written("config.json", b"[" * 200_000), "config.json: not readable as JSON"),
    "JSON nested deeply": (
        written("config.json", b'{"a":' * 100 + b"1" + b"}" * 100), "config.json: nested more than 64 deep"),
    "JSON of millions": (
        written("notes.json", b"[" + b"{}," * 5_000_000 + b"0]"), "notes.json: more than 4,194,304 objects"),
    "nested auto_map": (
        config(text_config={"inner": [{"auto_map": CODE}]}), "config.json: 'auto_map' refers to code that came"),
    "auto_map of a part": (
        changed("processor_config.json", lambda value: value.update(parts=[{"auto_map": "mine.Mine"}])),
        "processor_config.json: 'auto_map' refers to code"),
    "nested trust": (
        changed("tokenizer_config.json", lambda value: value.update(a={"trust_remote_code": True})),
        "tokenizer_config.json: 'trust_remote_code' refers to code"),
    "custom pipelines": (config(a={"custom_pipelines": {"x": {"impl": "mine"}}}), "'custom_pipelines' refers to code"),
    "kernel of the hub": (config(attn_implementation="theirs/kernel"), "'attn_implementation' names code on the hub"),
    "packed by another": (config(quantization_config={"quant_method": "x"}), "config.json: quantization_config:"),
    "id2label of a list": (config(id2label=["a"]), r'config.json: id2label is \["a"\]; expected an object'),
    # dimensions
    "hidden_size 10^9": (config(hidden_size=BILLION), "config.json: hidden_size is 1,000,000,000"),
    "hidden_size of no weights": (config(hidden_size=99_998), "config.json: hidden_size is 99,998, and the weights"),
    "hidden_size of a part": (config(text_config={"hidden_size": BILLION}), "text_config.hidden_size is 1,000,000,000"),
    **{
        f"hidden_size {value!r}": (config(hidden_size=value), f"config.json: hidden_size is {json.dumps(value)}")
        for value in (0, -8, 8.5, "8", True)
    },
    "zero heads": (config(num_attention_heads=0), "config.json: num_attention_heads is 0; expected a whole number"),
    "negative heads": (config(num_attention_heads=-2), "config.json: num_attention_heads is -2; expected a whole"),
    "heads that do not divide": (config(num_attention_heads=3), "3 heads do not divide a width of 8"),
    "key heads": (config(num_key_value_heads=3), "num_key_value_heads: 3 do not divide 2 heads"),
    "layers 10^9": (config(num_hidden_layers=BILLION), "config.json: num_hidden_layers is 1,000,000,000"),
    "layers of no weights": (config(num_hidden_layers=4000), "num_hidden_layers is 4,000, and the weights are"),
    "inner matrices": (config(intermediate_size=60_000), "1 layers with a matrix of 8 × 60,000"),
    "vocab_size 10^9": (config(vocab_size=BILLION), "config.json: vocab_size is 1,000,000,000"),
    "vocab_size of no weights": (config(vocab_size=60_000), "vocab_size is 60,000: a table of 60,000 × 8 weights"),
    "positions 10^9": (config(max_position_embeddings=BILLION), "max_position_embeddings is 1,000,000,000"),
    "token types 10^9": (config(type_vocab_size=BILLION), "type_vocab_size is 1,000,000,000, and the weights"),
    "labels 10^9": (config(num_labels=BILLION), "num_labels is 1,000,000,000"),
    "buckets 10^9": (config(relative_attention_num_buckets=BILLION), "relative_attention_num_buckets is 1,000,000,000"),
    # weights
    "negative shape": (header(a=tensor([-4, -4])), "model.safetensors is damaged.*none may be negative"),
    "one negative size": (header(a=tensor([16, -1])), "none may be negative"),
    "fractional shape": (header(a=tensor([16.0])), "is not a list of sizes"),
    "shape of 10^18": (header(a=tensor([BILLION, BILLION])), "does not take the 64 bytes stated"),
    "shape of many axes": (header(a=tensor([2**62] * 10_000)), "is not a list of sizes"),
    "unknown dtype": (header(a=tensor([16], dtype="F31")), "unknown dtype 'F31'"),
    "overlap": (header(a=tensor([16]), b=tensor([16])), "leave a gap or overlap"),
    "gap": (header(a=tensor([8], 32, 64)), "leave a gap or overlap"),
    "beyond the end": (header(a=tensor([BILLION], 0, 4 * BILLION)), "end at byte 4,000,000,0"),
    "bytes after the end": (header(a=tensor([8], 0, 32)), "the file has"),
    "no offsets": (header(a={"dtype": "F32", "shape": [16]}), "expected dtype, shape and data_offsets"),
    "a key twice": (repeated, "names a key twice"),
    "header of 2^40 bytes": (
        written("model.safetensors", struct.pack("<Q", 2**40) + b"{}"), "header claims 1,099,511,627,776 bytes"),
    "index without shards": (written("model.safetensors.index.json", b"{}"), "has no object 'weight_map'"),
    "missing shard": (
        changed("model.safetensors.index.json", lambda value: value.update(weight_map={"a": "b.safetensors"})),
        "the shard 'b.safetensors', which is missing"),
    "defaults of a large model": (
        lambda folder: (folder / "config.json").write_text('{"model_type": "llama", "vocab_size": 40}'),
        "its network has 6,.* weights, and the safetensors in the folder hold"),
    "record of an adapter": (large_adapter, "its network has .* weights, and the safetensors in the folder hold"),
    # tokenizers
    "tokenizer of an array": (written("tokenizer.json", b"[]"), "tokenizer.json: holds an array"),
    "tokenizer of nothing": (written("tokenizer.json", b"{}"), "tokenizer.json: model.vocab is empty"),
    "empty tokenizer": (vocabulary({}), "tokenizer.json: model.vocab is empty, so no text has tokens"),
    "empty unigrams": (vocabulary([]), "tokenizer.json: model.vocab is empty"),
    "empty vocab.txt": (written("vocab.txt", b""), "vocab.txt: empty, so the tokenizer has no vocabulary"),
    "empty vocab.json": (written("vocab.json", b"{}"), "vocab.json: empty, so the tokenizer has no vocabulary"),
    "negative id": (vocabulary({"[UNK]": -1}), r'model.vocab of "\[UNK\]" is -1'),
    "id beyond the embeddings": (vocabulary({"[UNK]": 40}), r'model.vocab of "\[UNK\]" is 40; .* below 40'),
    "id of a text": (vocabulary({"[UNK]": "0"}), r'model.vocab of "\[UNK\]" is "0"'),
    "added token 10^9": (
        tokenizer(added_tokens=[{"id": BILLION, "content": "x"}]), 'added_tokens: the id of "x" is 1000000000'),
    "added token of nothing": (tokenizer(added_tokens=[{"id": 1, "content": ""}]), "has no content"),
    "decoded token 10^9": (
        changed("tokenizer_config.json", lambda value: value.update(added_tokens_decoder={str(BILLION): {}})),
        "tokenizer_config.json: added_tokens_decoder is 1000000000"),
    "id of a template": (
        tokenizer(post_processor={"type": "TemplateProcessing", "special_tokens": {"x": {"id": "x", "ids": [77]}}}),
        "special_tokens.x.ids is 77"),
    "padding 10^9": (
        tokenizer(padding={"strategy": {"Fixed": BILLION}, "pad_id": 0}), "padding.strategy.Fixed is 1000000000"),
    "multiples of 10^9": (
        tokenizer(padding={"strategy": "BatchLongest", "pad_to_multiple_of": BILLION}), "multiple_of is 1000000000"),
    "id of padding": (tokenizer(padding={"strategy": "BatchLongest", "pad_id": 40}), "padding.pad_id is 40"),
    "truncation to nothing": (tokenizer(truncation={"max_length": 0, "stride": 0}), "truncation.max_length is 0"),
    "stride": (tokenizer(truncation={"max_length": 8, "stride": 8}), "truncation.stride is 8"),
    "negative length": (
        changed("tokenizer_config.json", lambda value: value.update(model_max_length=-1)), "model_max_length is -1"),
    "expression without end": (
        tokenizer(pre_tokenizer=expression("(a+)+$")), r"tokenizer.json: pre_tokenizer.pattern: .* may never end"),
    "expression in a sequence": (
        tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [expression(GPT2), expression("(a|a)*b")]}),
        r"pre_tokenizer.pretokenizers.1.pattern: .* may never end"),
    "expression of a normalizer": (
        tokenizer(normalizer={"type": "Replace", "pattern": {"Regex": ".*.*.*x"}, "content": ""}),
        "normalizer.pattern: .* may never end"),
    "expression of a decoder": (
        tokenizer(decoder={"type": "Replace", "pattern": {"Regex": r"(a*)\1*b"}, "content": ""}),
        "decoder.pattern: .* may never end"),
    "texts that double": (
        tokenizer(normalizer={"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 40}),
        "normalizer: its replacements make a text more than 256 times as long"),
}  # fmt: skip
"""What is done to a folder to harm → the reason that is given, as an expression."""
