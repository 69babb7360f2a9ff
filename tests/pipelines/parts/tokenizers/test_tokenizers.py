"""What every kind of tokenizer promises, on English and Chinese, and the frames they were published with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

from pipelines.parts.tokenizers import Tokenizer
from tests.chinese_text import ARTICLES
from tests.contracts.families import build, members
from tests.small_corpus import documents
from tests.steps import ROOT

NAMES = tuple(members("tokenizers"))
EVERY = pytest.mark.parametrize("name", NAMES)
TRAIN = """
import hashlib
from tests.pipelines.parts.tokenizers.test_tokenizers import NAMES, trained
for name in NAMES:
    print(name, hashlib.sha256(trained(name).backend_tokenizer.to_str().encode()).hexdigest())
"""


def tiny(name: str) -> Tokenizer:
    part = build(members("tokenizers")[name])
    assert isinstance(part, Tokenizer)
    return part.tiny()


@cache
def trained(name: str) -> PreTrainedTokenizerFast:
    return tiny(name).train(iter([*documents("json", "argparse"), *ARTICLES]))


def tokens(tokenizer: PreTrainedTokenizerFast, *texts: str) -> list[str]:
    return tokenizer.convert_ids_to_tokens(tokenizer(*texts)["input_ids"])


def test_training_is_the_same_in_every_process() -> None:
    running = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", TRAIN]
        running.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True))
    said = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(said) == 1 and len(said.pop().splitlines()) == len(NAMES)


@EVERY
def test_what_is_decoded_is_encoded_again(name: str) -> None:
    tokenizer = trained(name)
    for text in [*documents("json")[:30], *ARTICLES]:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        said = tokenizer.decode(ids)
        assert tokenizer(said, add_special_tokens=False)["input_ids"] == ids
        assert len(ids) > len(text.split()) // 2
        if tokenizer.unk_token_id not in ids and name in ("byte_bpe", "gpt_bpe"):
            assert said == (text if text[0].isspace() else " " + text)
        if tokenizer.unk_token_id not in ids and "unigram" in name:
            assert said == " ".join(unicodedata.normalize("NFKC", text).split())


@EVERY
@pytest.mark.parametrize("body", ["", "bert", "roberta", "electra", "xlnet", "t5", "gpt2"])
def test_a_saved_tokenizer_opens_in_plain_transformers(name: str, body: str, tmp_path: Path) -> None:
    tokenizer = trained(name)
    tokenizer.save_pretrained(tmp_path)
    if body:
        AutoConfig.for_model(body).save_pretrained(tmp_path)
    opened = AutoTokenizer.from_pretrained(tmp_path)
    for texts in [(text,) for text in documents("json")[:20]] + list(pairwise(ARTICLES)):
        assert dict(opened(*texts)) == dict(tokenizer(*texts))
    assert opened.special_tokens_map == tokenizer.special_tokens_map and len(opened) == len(tokenizer)
    assert opened.extra_special_tokens == tokenizer.extra_special_tokens


@EVERY
def test_a_tokenizer_has_what_it_offers(name: str) -> None:
    tokenizer, part = trained(name), tiny(name)
    assert ("mask" in part.offers) is (tokenizer.mask_token_id is not None)
    assert ("sentinels" in part.offers) is ("<extra_id_0>" in tokenizer.get_added_vocab())
    assert ("roles" in part.offers) is ("[SYS]" in tokenizer.get_added_vocab())
    assert tokenizer.pad_token_id is not None
    assert tokenizer.sep_token_id is not None or tokenizer.eos_token_id is not None, "a document has an end"
    assert len(tokenizer) <= part.model_dump()["vocab_size"]
    # ids are 0 … size − 1, each token once, so that a network has a row for each
    assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))


FRAMES = {
    "wordpiece": ("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]", "0 0 0 1 1"),
    "dialogue_wordpiece": ("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]", "0 0 0 1 1"),
    "byte_bpe": ("<s> A </s>", "<s> A </s> </s> B </s>", None),
    "gpt_bpe": ("<s> A <e>", "<s> A <$> B <e>", None),
    "unigram": ("A </s>", "A </s> B </s>", None),
    "xlmr_unigram": ("<s> A </s>", "<s> A </s> </s> B </s>", None),
    "xlnet_unigram": ("A <sep> <cls>", "A <sep> B <sep> <cls>", "0 0 1 1 2"),
    "words": ("A <eos>", "A <eos> B <eos>", None),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_are_the_published_ones(name: str) -> None:
    tokenizer = trained(name)
    # one token each
    texts = {"A": "the", "B": "is"}
    words = {
        letter: tokens(tokenizer, text, None)[FRAMES[name][0].split().index("A")] for letter, text in texts.items()
    }
    single, pair, types = FRAMES[name]
    assert tokens(tokenizer, texts["A"]) == [words.get(token, token) for token in single.split()]
    assert tokens(tokenizer, *texts.values()) == [words.get(token, token) for token in pair.split()]
    said = tokenizer(*texts.values()).get("token_type_ids")
    assert said == (None if types is None else [int(number) for number in types.split()])


@pytest.mark.parametrize("name", ["byte_bpe", "unigram", "xlmr_unigram", "xlnet_unigram"])
def test_the_librarys_own_class_reads_the_same(name: str) -> None:
    tokenizer = trained(name)
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    if name == "byte_bpe":
        merges = [tuple(merge) for merge in model["merges"]]
        theirs = transformers.RobertaTokenizer(vocab=model["vocab"], merges=merges, add_prefix_space=True)
    else:
        pieces = [tuple(piece) for piece in model["vocab"]]
        library: dict[str, Callable[[], Any]] = {
            "unigram": lambda: transformers.T5Tokenizer(vocab=pieces, extra_ids=100),
            "xlmr_unigram": lambda: transformers.XLMRobertaTokenizer(vocab=pieces),
            "xlnet_unigram": lambda: transformers.XLNetTokenizer(vocab=pieces, unk_id=0),
        }
        theirs = library[name]()
    # XLNet's writes two quotation marks as one sign
    texts = [
        text
        for text in documents("argparse", "logging", "asyncio")
        if text.isascii() and "``" not in text and "''" not in text
    ]
    assert len(texts) > 100
    for first, second in pairwise(texts):
        assert theirs(first)["input_ids"] == tokenizer(first)["input_ids"]
        assert theirs(first, second)["input_ids"] == tokenizer(first, second)["input_ids"]


@pytest.mark.parametrize("name", ["byte_bpe", "gpt_bpe", "unigram", "wordpiece", "words"])
def test_offsets_cut_words_without_their_spaces(name: str) -> None:
    text = "The parser, the  JSON encoder"
    encoded = trained(name)(text, return_offsets_mapping=True, add_special_tokens=False)
    pieces = [text[begin:end] for begin, end in encoded["offset_mapping"]]
    assert [piece for piece in pieces if piece.strip()] == [piece.strip() for piece in pieces if piece.strip()]
    assert "".join(pieces) == "".join(text.split())
