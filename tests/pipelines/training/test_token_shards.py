"""Corpora as tokens: every document once, the same bytes for any number of processes, shared, and made anew when
damaged."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.corpora.shards.folders import write_table
from pipelines.corpora.shards.tables import TEXTS
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError
from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import remove, unneeded
from pipelines.parts.segmentations import Segmentation
from pipelines.parts.segmentations.jieba import Jieba
from pipelines.parts.segmentations.spaces import Spaces
from pipelines.parts.tokenizers.characters import Characters
from pipelines.training.batches import encoded_shards, token_shards
from pipelines.training.batches.encoded_documents import begins_word
from pipelines.training.batches.encoded_shards import row_group_ranges
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import MANIFEST, TOKENS, TokenStream, is_whole
from pipelines.vocabulary import Field
from tests.chinese_text import ARTICLES
from tests.small_corpus import MANY, documents
from tests.steps import ROOT
from tests.streams import stream_of, table_of

TEXTS_HERE = [*documents("argparse", "logging", "asyncio"), *ARTICLES, "", "an end [SEP] inside \x0b"]
ENCODE = """
import sys
from pathlib import Path
from transformers import PreTrainedTokenizerFast
from pipelines.training.batches import encoded_shards
from pipelines.training.batches.token_shards import token_stream
encoded_shards.RANGE_BYTES, encoded_shards.CHARACTERS = 10_000, 3_000
tokenizer = PreTrainedTokenizerFast.from_pretrained(sys.argv[1])
token_stream([Path(sys.argv[2])], tokenizer, None, None, Path(sys.argv[3]), 1)
"""


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_shards, "RANGE_BYTES", 10_000)
    monkeypatch.setattr(encoded_shards, "CHARACTERS", 3_000)
    monkeypatch.setattr(token_shards, "ONE_PROCESS_BELOW", 0)


def digest(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def check(stream: TokenStream, texts: list[str], tokenizer: PreTrainedTokenizerFast) -> None:
    """The stream holds `texts` in their order, each with an end behind it."""
    pieces = np.split(stream.tokens, stream.starts[1:])
    assert len(pieces) == len(texts) and all(piece[-1] == tokenizer.sep_token_id for piece in pieces)
    for piece, text in zip(pieces, texts, strict=True):
        assert piece[:-1].tolist() == tokenizer.encode(text, add_special_tokens=False, truncation=False)
    assert np.array_equal(stream.counts, np.bincount(stream.tokens, minlength=len(tokenizer)))


def test_a_stream_holds_every_document_once_with_a_separator(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, small_pieces: None
) -> None:
    tokenizer(TEXTS_HERE[:2], truncation=True, max_length=8, padding="max_length")  # as it may have been used before
    table = table_of(TEXTS_HERE, tmp_path / "text.parquet", rows=20)
    stream = token_stream([table], tokenizer, None, None, tmp_path / "cache")
    check(stream, TEXTS_HERE, tokenizer)
    assert len(row_group_ranges([table])) > 5


def test_processes_pieces_and_shards_change_nothing(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(TEXTS_HERE, tmp_path / "text.parquet", rows=20)
    write_table(tmp_path / "shards", TEXTS, ((text, "here", "docs") for text in TEXTS_HERE), Tally())
    made = []
    for number, (source, processes) in enumerate([(table, 1), (table, 2), (tmp_path / "shards", 1)]):
        made.append(token_stream([source], tokenizer, Spaces(), None, tmp_path / f"cache{number}", processes))
    monkeypatch.undo()
    made.append(token_stream([table], tokenizer, Spaces(), None, tmp_path / "cache9"))
    assert all(digest(one.folder) == digest(made[0].folder) for one in made)
    # a table and its shards have different contents, so different names
    assert len({one.folder.name for one in made}) == 2


@pytest.mark.parametrize("segmentation", [Spaces(), Jieba()], ids=lambda one: one.name)
def test_word_starts_are_kept_as_bits(segmentation: Segmentation, tmp_path: Path, small_pieces: None) -> None:
    texts = list(ARTICLES) if isinstance(segmentation, Jieba) else documents("json", "argparse")
    tokenizer = Characters(spaces=False).train(texts)
    table = table_of(texts, tmp_path / "text.parquet", rows=3)
    stream = token_stream([table], tokenizer, segmentation, None, tmp_path / "cache")
    said = stream.values(Field.WORD_STARTS, np.asarray([0]), len(stream.tokens))[0]
    assert (stream.folder / "channel.word_starts.bin").stat().st_size == -(-len(stream.tokens) // 8)
    for text, begin, end in zip(texts, stream.starts, [*stream.starts[1:], len(stream.tokens)], strict=True):
        encoded = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        expected = begins_word(np.asarray(encoded.offsets), segmentation.word_starts(text))
        assert np.array_equal(said[begin:end], [*expected, 1])
    if isinstance(segmentation, Jieba):
        # a character is a token, so a word begins where jieba says
        expected = np.zeros(len(texts[0]) + 1, dtype=bool)
        expected[[*segmentation.word_starts(texts[0]), len(texts[0])]] = True
        assert np.array_equal(said[: len(expected)], expected) and not expected.all()


def test_a_beginning_is_read_and_several_tables_share_it(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, small_pieces: None
) -> None:
    large, small = documents("asyncio", *MANY)[:400], documents("email")[:100]
    tables = [table_of(large, tmp_path / "a.parquet", rows=10), table_of(small, tmp_path / "b.parquet", rows=10)]
    whole = token_stream(tables, tokenizer, None, None, tmp_path / "cache")
    assert len(whole.starts) == 500
    most = len(whole.tokens) // 3
    part = token_stream(tables, tokenizer, None, most, tmp_path / "cache")
    assert np.array_equal(part.tokens, whole.tokens[: len(part.tokens)])
    assert part.starts[-1] < most <= len(part.tokens), "up to the document that reaches it"
    assert np.array_equal(part.counts, np.bincount(part.tokens, minlength=len(tokenizer)))
    spoken = [part.tokens[a:b] for a, b in zip(part.starts, [*part.starts[1:], len(part.tokens)], strict=True)]
    of_small = {tuple(tokenizer.encode(text, add_special_tokens=False)) for text in small}
    share = sum(tuple(one[:-1].tolist()) in of_small for one in spoken) / 100
    assert 0.15 < share < 0.6, "a third of it, more or less"
    more = token_stream(tables, tokenizer, None, 10**9, tmp_path / "cache")
    assert np.array_equal(more.tokens, whole.tokens)


def test_what_is_made_is_found_again_and_what_differs_is_not(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    table, cache = table_of(TEXTS_HERE, tmp_path / "text.parquet"), tmp_path / "cache"
    first = token_stream([table], tokenizer, None, None, cache)
    times = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    copied = table_of(TEXTS_HERE, tmp_path / "elsewhere.parquet")
    assert token_stream([copied], tokenizer, None, None, cache).folder == first.folder, (
        "where a table lies is no matter"
    )
    assert {path: path.stat().st_mtime_ns for path in first.folder.iterdir()} == times
    other = table_of(TEXTS_HERE[1:], tmp_path / "other.parquet")
    names = {
        first.folder.name,
        token_stream([other], tokenizer, None, None, cache).folder.name,
        token_stream([table], tokenizer, Spaces(), None, cache).folder.name,
        token_stream([table], tokenizer, None, 500, cache).folder.name,
        token_stream([table], Characters().train(TEXTS_HERE), None, None, cache).folder.name,
    }
    assert len(names) == 5
    assert not list((cache / ".pieces").iterdir()), "what was needed on the way is gone"


@pytest.mark.parametrize("damage", ["cut", "changed", "lost", "no manifest", "empty manifest"])
def test_a_damaged_stream_is_made_anew(damage: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    table, cache = table_of(TEXTS_HERE, tmp_path / "text.parquet"), tmp_path / "cache"
    folder = token_stream([table], tokenizer, Spaces(), None, cache).folder
    before, tokens = digest(folder), folder / TOKENS
    assert is_whole(folder)
    if damage == "cut":
        os.truncate(tokens, tokens.stat().st_size - 2)
    elif damage == "changed":
        tokens.write_bytes(tokens.read_bytes()[:-1] + b"\xff")
    elif damage == "lost":
        tokens.unlink()
    elif damage == "no manifest":
        (folder / MANIFEST).unlink()
    else:
        (folder / MANIFEST).write_text("{}")
    assert not is_whole(folder)
    assert digest(token_stream([table], tokenizer, Spaces(), None, cache).folder) == before


def test_killed_at_any_moment_the_next_attempt_goes_on(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, small_pieces: None
) -> None:
    texts = documents("asyncio", *MANY, "email") * 2
    table, cache = table_of(texts, tmp_path / "text.parquet", rows=50), tmp_path / "cache"
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    command = [sys.executable, "-c", ENCODE, str(tmp_path / "tokenizer"), str(table), str(cache)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        while len(done := list(cache.glob(".pieces/*/0*"))) < 3:
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert done[0].is_dir() and not [path for path in cache.iterdir() if not path.name.startswith(".")]
    stream = token_stream([table], tokenizer, None, None, cache)
    assert digest(stream.folder) == digest(stream_of(texts, tokenizer).folder)
    assert [path.name for path in cache.iterdir() if not path.name.startswith(".")] == [stream.folder.name]


def test_two_that_want_it_at_once_make_it_once(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, joined = table_of(TEXTS_HERE, tmp_path / "text.parquet"), list[Path]()
    join = token_shards._join

    def counted(pieces: Sequence[Path], folder: Path, *others: Any) -> None:
        joined.append(folder)
        join(pieces, folder, *others)

    monkeypatch.setattr(token_shards, "_join", counted)
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(token_stream, [table], tokenizer, None, None, tmp_path / "cache") for _ in range(4)]
    assert len({one.result().folder for one in made}) == 1 and len(joined) == 1
    check(made[0].result(), TEXTS_HERE, tokenizer)


def test_a_stream_that_nothing_reads_is_removed_with_what_else_is_unneeded(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    store, table = Store(tmp_path / "store"), table_of(TEXTS_HERE, tmp_path / "text.parquet")
    folder = token_stream([table], tokenizer, None, None, store.tokens).folder
    os.utime(folder, (0, 0))
    assert token_stream([table], tokenizer, None, None, store.tokens).folder == folder
    assert unneeded(store, (), 60) == [], "reading is a use"
    os.utime(folder, (0, 0))
    (found,) = unneeded(store, (), 60)
    assert found.folder == folder and found.bytes > 0
    remove(store, [found])
    assert not folder.exists() and is_whole(token_stream([table], tokenizer, None, None, store.tokens).folder)


def test_an_opened_stream_travels_to_another_process_as_its_name(tokenizer: PreTrainedTokenizerFast) -> None:
    stream = stream_of(TEXTS_HERE, tokenizer, Spaces())
    told = pickle.dumps(stream)
    again: TokenStream = pickle.loads(told)
    assert len(told) < 1000 and np.array_equal(again.tokens, stream.tokens) and Field.WORD_STARTS in again.channels


def test_a_table_without_text_is_told(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    empty = table_of([], tmp_path / "empty.parquet")
    with pytest.raises(DataError, match=r"empty\.parquet: no documents to train on"):
        token_stream([empty], tokenizer, None, None, tmp_path / "cache")
    pyarrow.parquet.write_table(pyarrow.table({"texts": ["a"]}), tmp_path / "wrong.parquet")
    with pytest.raises(DataError, match=r"wrong\.parquet: there is no column 'text', only texts"):
        token_stream([tmp_path / "wrong.parquet"], tokenizer, None, None, tmp_path / "cache")
