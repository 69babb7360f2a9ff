"""Injection of triples: which occurrences count, what is left out, and files that are no triples."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.parts.knowledge.triples import Triples
from pipelines.parts.tokenizers.gpt_bpe import GPTBPE
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.task_families.encoding import IGNORED, FieldArrays, attention_masks, pad_rows
from pipelines.vocabulary import Field

WORDS = "the art of smart partners is an article about arts and the state of the art "
GRAPH = "art\tis a\tarticle\nthe art\tis\tthe state\nart\tis\tsmart\nart\tis\tabout\n"


def graph_in(folder: Path, text: str = GRAPH) -> Path:
    path = folder / "graph.tsv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerFast:
    return WordPiece(vocab_size=300).train([WORDS * 20])


def injected(
    texts: list[str], tokenizer: PreTrainedTokenizerFast, triples: Triples, length: int = 64, tags: bool = False
) -> FieldArrays:
    rows = [np.asarray(tokenizer(text)["input_ids"]) for text in texts]
    ids = pad_rows(rows, int(tokenizer.pad_token_id))
    batch: FieldArrays = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: attention_masks(rows, ids.shape[1])}
    if tags:
        batch[Field.TAG_LABELS] = np.ones_like(ids)
    return triples.injection(tokenizer, length)(batch)


def facts(batch: FieldArrays, row: int, tokenizer: PreTrainedTokenizerFast) -> list[str]:
    branches = batch[Field.BRANCHES][row]
    numbers = sorted(set(branches[branches > 0].tolist()))
    return [tokenizer.decode(batch[Field.INPUT_IDS][row, branches == number]).strip() for number in numbers]


def test_the_longest_entity_at_the_boundaries_of_words(words: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    triples = Triples(file=graph_in(tmp_path))
    batch = injected(["the art of the state", "smart partners article", "an art and art"], words, triples)
    assert facts(batch, 0, words) == ["is the state"]
    assert facts(batch, 1, words) == [], "inside other words there is no entity"
    # the first two triples of each occurrence
    assert facts(batch, 2, words) == ["is a article", "is smart"] * 2
    assert len(set(batch[Field.ENTITIES][2].tolist()) - {0}) == 2


def test_leading_spaces_are_no_part_of_an_entity(tmp_path: Path) -> None:
    tokenizer = GPTBPE(vocab_size=512).train([WORDS * 20])
    batch = injected(["art of", "an art", "smart"], tokenizer, Triples(file=graph_in(tmp_path)))
    assert [len(facts(batch, row, tokenizer)) for row in range(3)] == [2, 2, 0]


def test_what_finds_no_room_is_left_out_whole(words: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    triples = Triples(file=graph_in(tmp_path), tokens=4)
    batch = injected(["an art and art"], words, triples)
    assert facts(batch, 0, words) == ["is a article"]
    width = len(words("an art and art")["input_ids"])
    near_the_end = injected(["an art and art"], words, Triples(file=graph_in(tmp_path)), length=width)
    # [CLS] an art and art [SEP]: the last art has one position after it, the first one three
    assert all(near_the_end[Field.POSITION_IDS][0, near_the_end[Field.BRANCHES][0] > 0] < width)
    assert facts(near_the_end, 0, words) == ["is a article", "is smart"]


def test_labels_and_mask_are_those_of_the_text(words: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    batch = injected(["an art", "of the state"], words, Triples(file=graph_in(tmp_path)), tags=True)
    added = batch[Field.BRANCHES] > 0
    assert added.any() and (batch[Field.TAG_LABELS][added] == IGNORED).all()
    assert (batch[Field.ATTENTION_MASK][added] == 0).all()
    assert {value.shape for value in batch.values()} == {batch[Field.INPUT_IDS].shape}


def test_without_the_predicate_the_object_alone_is_injected(words: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    batch = injected(["an art"], words, Triples(file=graph_in(tmp_path), predicate=False))
    assert facts(batch, 0, words) == ["article", "smart"]


def test_a_packed_file_is_read(words: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    path = tmp_path / "graph.tsv.gz"
    path.write_bytes(gzip.compress(GRAPH.encode()))
    assert facts(injected(["an art"], words, Triples(file=path)), 0, words) == ["is a article", "is smart"]
    saved = Triples(file=path).save(tmp_path)
    assert saved.file.suffixes[-2:] == [".tsv", ".gz"] and next(saved.within(tmp_path).read())[0] == "art"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("art\tis\n", r"graph.tsv:1: expected subject, predicate and object, separated by tabs, got 'art\\tis'"),
        ("a\tis\tb\nart\t\tb\n", "graph.tsv:2: expected subject"),
        ("", "no triple has a subject of 2 characters"),
        ("a\tis\tb\n", "no triple has a subject of 2 characters"),
    ],
)
def test_a_file_that_is_no_triples_is_refused(
    text: str, says: str, words: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=says):
        Triples(file=graph_in(tmp_path, text)).injection(words, 64)


def test_a_folder_of_another_origin_names_no_file_outside(tmp_path: Path) -> None:
    assert Triples(file=Path("/etc/hostname")).within(tmp_path).file == tmp_path / "hostname"
