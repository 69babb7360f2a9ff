"""What a table is judged by: repeats as counted by hand, kept rows that add up, drift, languages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pipelines.corpora.duplicates.overlap import OverlapIndex
from pipelines.corpora.duplicates.shingles import Letters
from pipelines.corpora.evidence.drift import drift
from pipelines.corpora.evidence.lengths import EDGES, bin_begins, length_bins
from pipelines.corpora.evidence.measures import MeasuredFile, Measures, kind_of_answer
from pipelines.corpora.evidence.repeats import KeyFile, repeated, repeats_of_file
from pipelines.corpora.evidence.rows import representative_rows
from pipelines.corpora.evidence.study import KNOWN_LANGUAGES, commonest, is_language, language_of
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.task_families import TaskFamily
from tests.chinese_text import ARTICLES
from tests.small_corpus import documents


def measured(folder: Path, name: str, texts: list[str], against: tuple[Path, ...] = ()) -> Path:
    """The folder of measures of a table of plain texts."""
    path = folder / f"{name}.parquet"
    write_rows(path, TEXTS, [(text, f"{name}:{number}", name) for number, text in enumerate(texts)])
    made = folder / name
    made.mkdir()
    MeasuredFile(name, path, None, (), against, 13)(made)
    return made


def test_the_measures_of_a_file_are_those_of_its_texts(tmp_path: Path) -> None:
    texts = [*documents("argparse")[:20], "", *documents("json")[:5]]
    test = tmp_path / "evaluation.parquet"
    write_rows(test, TEXTS, [(texts[3], "here", "x")])
    found = Measures.read(measured(tmp_path, "general", texts, (test,)))
    assert found.characters.tolist() == [len(text) for text in texts]
    index = OverlapIndex([texts[3]], 13)
    assert found.overlap.tolist() == [np.float32(index.overlap(text)) for text in texts]
    assert found.overlap[3] == 1 and found.overlap[20] == 0
    keys = [tuple(key) for key in Letters.of(texts).text_keys().tolist()]
    assert [keys[row] for row in found.order] == sorted(keys)
    assert found.names == ["general"] and set(found.kinds) == {0} and not found.flags.any()


def test_what_deduplication_keeps_is_no_repeat(tmp_path: Path) -> None:
    """Sets of relations ask about a sentence several times, with other marks; and 1.5 is not 15."""
    texts = [
        "<< Androgen >> binds [[ AR ]], 1.5 nM",
        "[[ Androgen ]] binds << AR >>, 1.5 nM",
        "Androgen binds AR, 15 nM",
    ]
    keys = KeyFile(measured(tmp_path, "train", [*texts, "androgen binds: AR (15 nM)"]), 0)
    assert [int(one["row"]) for one in repeated((keys,), 0, 1)] == [2, 3]


@settings(max_examples=25, deadline=None)
@given(
    tables=some.lists(some.lists(some.sampled_from("abcdefgh"), max_size=12), min_size=2, max_size=4),
    parts=some.integers(1, 4),
)
def test_repeats_are_those_that_counting_finds_however_the_keys_are_cut(
    tmp_path_factory: pytest.TempPathFactory, tables: list[list[str]], parts: int
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    files = tuple(KeyFile(measured(folder, f"t{rank}", texts), rank) for rank, texts in enumerate(tables))
    ranges = []
    for part in range(parts):
        (folder / str(part)).mkdir()
        np.save(folder / str(part) / "repeats.npy", repeated(files, part, parts))
        ranges.append(folder / str(part))
    for rank, texts in enumerate(tables):
        times = Counter(texts)
        nearer = [next((near for near in range(rank) if text in tables[near]), -1) for text in texts]
        expected = [(row, times[text], nearer[row]) for row, text in enumerate(texts)]
        found = repeats_of_file(tuple(ranges), rank)
        rows = sorted((int(one["row"]), int(one["copies"]), int(one["also"])) for one in found)
        assert rows == [one for one in expected if one[1] > 1 or one[2] >= 0]


@settings(max_examples=50, deadline=None)
@given(groups=some.lists(some.integers(0, 6), max_size=200), most=some.integers(1, 9), sampled=some.integers(0, 20))
def test_kept_rows_stand_for_all_rows_of_their_group(groups: list[int], most: int, sampled: int) -> None:
    numbers = np.unique(np.array(groups, dtype=np.int64), return_inverse=True)[1].reshape(-1)
    order = np.random.default_rng(0).permutation(len(groups)).astype(np.uint32)
    kept, weights = representative_rows(numbers, order, order[:sampled], most)
    assert sorted(set(kept)) == kept.tolist() and set(order[:sampled].tolist()) <= set(kept.tolist())
    assert (weights > 0).all()
    for group, size in Counter(numbers.tolist()).items():
        inside = numbers[kept] == group
        assert weights[inside].sum() == size
        assert min(size, most) <= inside.sum() <= min(size, most) + sampled


def test_bins_of_lengths_have_the_same_edges_for_every_table() -> None:
    lengths = np.array([0, 1, *EDGES, *(EDGES - 1)])
    bins = length_bins(lengths)
    assert all(bin_begins(int(number)) <= length for length, number in zip(lengths, bins, strict=True))
    assert all(length < bin_begins(int(number) + 1) for length, number in zip(lengths[:50], bins[:50], strict=True))


def test_a_change_counts_as_drift_when_it_is_large_and_no_chance() -> None:
    assert drift({"a": 50, "b": 50}, {"a": 50, "b": 50}).distance == 0
    assert drift({"a": 10}, {"b": 10}).distance == pytest.approx(1)
    few, many = drift({"a": 5, "b": 5}, {"a": 8, "b": 2}), drift({"a": 500, "b": 500}, {"a": 800, "b": 200})
    assert few.distance == pytest.approx(many.distance) and not few.exceeds(0.2) and many.exceeds(0.2)
    small = drift({"a": 50_000, "b": 50_000}, {"a": 52_000, "b": 48_000})
    assert small.p_value < 0.001 and not small.exceeds(0.2)
    assert not drift({}, {"a": 1}).exceeds(0.2)


@pytest.mark.parametrize(
    ("family", "row", "kind"),
    [
        ("text_classification", {"label": "email"}, "email"),
        ("pair_regression", {"label": 3.4}, "3"),
        ("label_sets", {"labels": ["a", "b"]}, "2 labels"),
        ("tagging", {"tags": ["O", "B-place", "I-place", "B-person"]}, "person place"),
        ("span_extraction", {"answer_texts": [], "answer_starts": []}, "no answer"),
        ("multiple_choice", {"answer": 2}, "2"),
        ("text_generation", {"target": "anything"}, None),
    ],
)
def test_answers_of_every_family_are_of_few_kinds(family: str, row: dict[str, object], kind: str | None) -> None:
    assert kind_of_answer(TaskFamily.model_validate(family), row) == kind


def test_languages_are_told_without_a_network_and_short_texts_are_not_guessed() -> None:
    assert language_of(documents("argparse")[0]) == "en" and language_of(ARTICLES[1]) == "zh"
    assert language_of("人人") is None and language_of("12345 67890 " * 9) is None
    assert is_language("yue", "zh") and not is_language("en", "zh")
    assert {"en", "zh", "yue", "de"} <= KNOWN_LANGUAGES and "lzh" not in KNOWN_LANGUAGES


def test_word_sequences_are_counted_once_a_document() -> None:
    texts = [(0, "a b a b a b"), (1, "b a b"), (2, "c d")]
    assert commonest([texts], 2) == [[["a", "b"], 2], [["b", "a"], 2]]
