"""Channels of a corpus are kept alongside its tokens: the same for any number of processes, cut with the tokens into
rows, and checked when they are computed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.parts.annotations.boxes import Boxes
from pipelines.parts.annotations.languages import Languages
from pipelines.parts.corruptions.adjacent_halves import AdjacentHalves
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads import Head
from pipelines.parts.layouts import Layout
from pipelines.parts.segmentations.spaces import Spaces
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.writing_systems import join_words
from pipelines.training.batches import encoded_shards, token_shards
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import TokenStream, is_whole
from pipelines.vocabulary import Field
from tests.small_corpus import documents

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

ANNOTATIONS: tuple[Annotation, ...] = (Languages(order=("en", "zh"), of="zh"), Boxes())
BOXES, LANGUAGES = Field.of_channel("boxes"), Field.of_channel("languages")
END = [1000] * 4


def pages() -> list[dict[str, Any]]:
    """Texts whose words stand in a line each, ten characters wide: a box says which word it is, and which page."""
    result = []
    for number, text in enumerate(documents("json", "argparse")):
        words = text.split()[:400]
        boxes = [[number, at, number + len(word), at + 1] for at, word in enumerate(words)]
        result.append({"text": join_words(words), "tokens": words, "boxes": boxes, "page": [1000, 1000]})
    return result


def page_table(path: Path, rows: int = 5) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(pages()), path, row_group_size=rows)
    return path


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_shards, "RANGE_BYTES", 10_000)
    monkeypatch.setattr(encoded_shards, "CHARACTERS", 3_000)
    monkeypatch.setattr(token_shards, "ONE_PROCESS_BELOW", 0)


def stream_in(
    folder: Path, tokenizer: PreTrainedTokenizerFast, processes: int = 1, most: int | None = None
) -> TokenStream:
    folder.mkdir(exist_ok=True)
    table = page_table(folder / "pages.parquet")
    return token_stream([table], tokenizer, Spaces(), most, folder / "cache", processes, ANNOTATIONS)


def test_every_token_has_the_values_of_its_word(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, small_units: None
) -> None:
    stream = stream_in(tmp_path, tokenizer)
    bounds = [*stream.starts, len(stream.tokens)]
    everything = np.asarray([0])
    boxes = stream.values(BOXES, everything, len(stream.tokens))[0]
    assert (stream.values(LANGUAGES, everything, len(stream.tokens)) == 1).all()
    assert len(bounds) > 10
    tokenizer.backend_tokenizer.no_truncation()  # which a call of the shared tokenizer leaves behind
    for number, (page, (begin, end)) in enumerate(zip(pages(), pairwise(bounds), strict=True)):
        encoded = tokenizer.backend_tokenizer.encode(page["text"], add_special_tokens=False)
        words = [page["text"][: first + 1].count(" ") for first, _ in encoded.offsets]
        expected = [
            [number, word, number + len(page["tokens"][word]), word + 1] for word in words
        ]  # on a page of 1000 · 1000, thousandths are its units
        assert boxes[begin : end - 1].tolist() == expected
        assert boxes[end - 1].tolist() == END, "the end of a document is a special token"


def test_processes_change_nothing_and_damage_is_noticed(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, small_units: None
) -> None:
    one, two = (stream_in(tmp_path / str(number), tokenizer, number) for number in (1, 2))
    assert one.folder.name == two.folder.name
    files = sorted(path.name for path in one.folder.iterdir())
    assert {"channel.boxes.bin", "channel.languages.bin", "channel.word_starts.bin"} < set(files)
    assert all((one.folder / name).read_bytes() == (two.folder / name).read_bytes() for name in files)
    # two languages are a bit each, a coordinate up to 1000 takes two bytes
    assert (one.folder / "channel.languages.bin").stat().st_size == -(-len(one.tokens) // 8)
    assert (one.folder / "channel.boxes.bin").stat().st_size == 8 * len(one.tokens)
    beginning = stream_in(tmp_path / "1", tokenizer, most=1000)
    width = len(beginning.tokens)
    begin = np.asarray([0])
    assert width < len(one.tokens) and np.array_equal(
        beginning.values(BOXES, begin, width), one.values(BOXES, begin, width)
    )
    damaged = (two.folder / "channel.boxes.bin").read_bytes()
    (two.folder / "channel.boxes.bin").write_bytes(damaged[:99] + bytes([damaged[99] ^ 1]) + damaged[100:])
    assert is_whole(one.folder) and not is_whole(two.folder)
    assert is_whole(stream_in(tmp_path / "2", tokenizer, 2).folder), "computed again"


@pytest.mark.parametrize("layout", ["windows", "contiguous", "packed_documents"])
def test_rows_hold_the_values_of_their_tokens(layout: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    stream = stream_in(tmp_path, tokenizer)
    corruptions = [TokenMask()] if layout == "packed_documents" else [AdjacentHalves(), TokenMask()]
    batches = PlainBatches(
        stream, tokenizer, Layout.model_validate(layout), corruptions, rows=8, length=32, steps=20, seed=3,
        corruption_shards=4,
    )  # fmt: skip
    known = known_values(stream)
    for step in (0, 7):
        batch = batches.batch(step)
        assert batch[BOXES].shape == (8, 32, 4) and batch[BOXES].dtype == np.int64
        for ids, boxes, languages in zip(batch[Field.ORIGINAL_IDS], batch[BOXES], batch[LANGUAGES], strict=True):
            for token, box, language in zip(ids.tolist(), boxes.tolist(), languages.tolist(), strict=True):
                if token == tokenizer.cls_token_id:
                    assert (box, language) == ([0] * 4, 1)
                elif token == tokenizer.pad_token_id:
                    assert (box, language) == ([0] * 4, 0)
                elif token == tokenizer.sep_token_id:
                    assert (box, language) == (END, 1)
                else:
                    assert token in known[tuple(box)] and language == 1, "a box alongside a token of another word"
        halves = [batches.batch(step, number, 2) for number in range(2)]
        joined = np.concatenate([half[BOXES].reshape(-1, 4) for half in halves])
        assert sorted(map(tuple, joined)) == sorted(map(tuple, batch[BOXES].reshape(-1, 4))), "ranks share the batch"
        tensors = batches.micro_batch(step, 0, 1)
        assert tensors["boxes"].dtype == torch.int64 and Field("boxes") is BOXES


def known_values(stream: TokenStream) -> dict[tuple[int, ...], set[int]]:
    """Box of a word → its tokens."""
    boxes: NDArray[np.integer[Any]] = stream.values(BOXES, np.asarray([0]), len(stream.tokens))[0]
    result: dict[tuple[int, ...], set[int]] = {}
    for token, box in zip(stream.tokens.tolist(), boxes.tolist(), strict=True):
        result.setdefault(tuple(box), set()).add(token)
    return result


def test_labelled_rows_have_the_channels_of_their_words(tokenizer: PreTrainedTokenizerFast) -> None:
    rows = [{**page, "tags": ["O"] * len(page["tokens"])} for page in pages()[:3]]
    task = Task(TaskFamily.model_validate("layout_tagging"), ("O",), ANNOTATIONS)
    encoded = Head.model_validate("tagging").encode(rows, task, tokenizer, 64)
    batch = encoded.collate(np.arange(3))
    assert batch[BOXES].shape == (3, 64, 4)
    for row, (ids, boxes) in enumerate(zip(batch[Field.INPUT_IDS], batch[BOXES], strict=True)):
        mask = batch[Field.ATTENTION_MASK][row].astype(bool)
        assert ids[0] == tokenizer.cls_token_id and not boxes[0].any() and not boxes[~mask].any()
        assert boxes[mask][-1].tolist() == END and set(boxes[mask][1:-1, 0].tolist()) == {row}
        # every word begins one further down, and its tokens stand in order
        assert (np.diff(boxes[mask][1:-1, 1]) >= 0).all() and boxes[mask][-2, 1] > 5
    plain = Head.model_validate("tagging").encode(rows, Task(task.family, ("O",)), tokenizer, 64)
    assert BOXES not in plain.collate(np.arange(3))


def test_what_cannot_be_annotated_is_named(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    bad = pages()
    bad[7]["boxes"][3] = [0, 0, 2000, 9]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(bad), tmp_path / "pages.parquet", row_group_size=5)
    with pytest.raises(DataError, match=r"pages\.parquet, row 7: box .*2000.* of word 3 lies outside the page"):
        token_stream([tmp_path / "pages.parquet"], tokenizer, None, None, tmp_path / "cache", 1, (Boxes(),))
    texts = pyarrow.Table.from_pylist([{"text": page["text"]} for page in bad])
    pyarrow.parquet.write_table(texts, tmp_path / "texts.parquet")
    with pytest.raises(DataError, match=r"texts\.parquet: there is no column 'boxes', which an annotation"):
        token_stream([tmp_path / "texts.parquet"], tokenizer, None, None, tmp_path / "cache", 1, (Boxes(),))
