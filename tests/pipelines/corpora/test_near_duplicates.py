"""Copies and near copies: what goes stands elsewhere, what stays is apart, and neither shards nor processes move it."""

from __future__ import annotations

import json
import random
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.corpora.duplicates import near_duplicates, sorted_keys
from pipelines.corpora.duplicates import shingles as shingling
from pipelines.corpora.duplicates.minhash import Bands, signatures, similarity
from pipelines.corpora.duplicates.near_duplicates import Sketches, clusters
from pipelines.corpora.duplicates.paragraphs import paragraphs, without_paragraphs
from pipelines.corpora.duplicates.shingles import Letters, Shingle, folded, shingles, unit_of
from pipelines.corpora.duplicates.sketches import SketchedShard
from pipelines.corpora.duplicates.sorted_keys import SortedKeys, repeated, write_sorted
from pipelines.corpora.shards import folders as shards
from pipelines.corpora.shards.folders import manifest
from pipelines.corpora.shards.tables import TEXTS, read_rows, write_rows
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.step import PLAIN, prepared
from tests.chinese_text import ARTICLES
from tests.pipelines.corpora.rows_of_tables import table_rows
from tests.pipelines.corpora.small_dataset import documents, write_small_dataset

ANY_TEXT = st.text(st.one_of(st.characters(), st.sampled_from("aéÉß ﬁ１①ｶﾞ가ᅡ\u0308\u0345.，A")), max_size=40)
BANDS = Bands.for_threshold(0.8)


@cache
def prose() -> list[str]:
    """Real texts of at least 60 words."""
    return [text for text in documents("email") + documents("asyncio") if len(text.split()) >= 60]


def altered(text: str, words: int, seed: int) -> str:
    """The text with some of its words changed."""
    found, chance = text.split(), random.Random(seed)
    for place in chance.sample(range(len(found)), words):
        found[place] = f"changed{place}"
    return " ".join(found)


@settings(deadline=None)
@given(st.lists(ANY_TEXT, max_size=5))
def test_letters_are_those_of_the_folded_text(texts: list[str]) -> None:
    letters = Letters.of(texts)
    for number, text in enumerate(texts):
        mine = letters.codes[letters.ends[number] : letters.ends[number + 1]]
        assert "".join(map(chr, mine)) == "".join(filter(str.isalnum, folded(text)))


@settings(deadline=None)
@given(st.lists(ANY_TEXT, min_size=1, max_size=4), st.integers(1, 4), st.sampled_from(["words", "letters"]))
def test_a_text_has_the_same_shingles_in_any_batch(texts: list[str], length: int, unit: str) -> None:
    shingle = Shingle("words" if unit == "words" else "letters", length)
    hashes, ends = shingles(texts, shingle, shorter=True)
    for number, text in enumerate(texts):
        alone, _ = shingles([text], shingle, shorter=True)
        assert alone.tolist() == hashes[ends[number] : ends[number + 1]].tolist()


def test_words_are_counted_as_in_the_definition() -> None:
    texts = ["Hello, World! a b c", "我们 are 在 here", "", "...", "ＡＢＣ　one two"]
    assert np.diff(shingles(texts, Shingle("words", 3))[1]).tolist() == [3, 3, 0, 0, 1]
    assert unit_of("zh") == unit_of("en") == "words" and unit_of("th") == "letters"


def test_what_parts_numbers_and_marks_entities_counts() -> None:
    def same(one: str, other: str) -> bool:
        first, second = Letters.of([one, other]).text_keys()
        return bool((first == second).all())

    assert same("Hello, World!", "ＨＥＬＬＯ world") and same("ice-cream", "ice cream") and same("好，的", "好的")
    assert not same("1.5 mg", "15 mg") and not same("...", "!!!") and same("1.5", "1,5")
    assert not same("<< A >> binds [[ B ]]", "[[ A ]] binds << B >>") and not same("<<a>> b", "a <<b>>")


def test_bands_find_what_they_promise() -> None:
    assert 1 - (1 - 0.8**BANDS.rows) ** BANDS.bands >= 0.98
    found = 0
    pairs = [(text, altered(text, max(1, len(text.split()) // 60), seed)) for seed, text in enumerate(prose()[:150])]
    for one, other in pairs:
        sets = [set(shingles([text], Shingle("words", 5))[0].tolist()) for text in (one, other)]
        jaccard = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
        values = signatures(*shingles([one, other], Shingle("words", 5)), BANDS.values)
        assert abs(similarity(values[:1], values[1:])[0] - jaccard) < 0.2
        keys = BANDS.keys(values)
        found += bool((keys[0] == keys[1]).any()) if jaccard >= 0.8 else 0
    assert found >= 0.95 * sum(True for one, other in pairs if _jaccard(one, other) >= 0.8) > 50


def _jaccard(one: str, other: str) -> float:
    sets = [set(shingles([text], Shingle("words", 5))[0].tolist()) for text in (one, other)]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


@settings(deadline=None)
@given(values=st.lists(st.integers(0, 6), max_size=40), parts=st.integers(1, 5), at_once=st.integers(1, 9))
def test_repeated_keys_are_found_for_any_cut_and_any_memory(
    values: list[int], parts: int, at_once: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    spread = np.array(values, np.uint64) * np.uint64(2**61)
    cuts = np.linspace(0, len(values), parts + 1).astype(int)
    for part in range(parts):
        mine = spread[cuts[part] : cuts[part + 1]]
        write_sorted(folder, str(part), np.stack([mine, mine], axis=1), np.arange(len(mine)))
    found: list[list[int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_keys, "KEYS_AT_ONCE", at_once)
        for numbers, starts in repeated([SortedKeys.read(folder, str(part), int(cuts[part])) for part in range(parts)]):
            found += [group.tolist() for group in np.split(numbers, starts[1:])]
    expected = [[place for place, value in enumerate(values) if value == each] for each in sorted(set(values))]
    assert sorted(found) == sorted(group for group in expected if len(group) > 1)


def sketched(folder: Path, texts: list[str], parts: int) -> list[Sketches]:
    """The texts as so many shards."""
    cuts = np.linspace(0, len(texts), parts + 1).astype(int).tolist()
    found = []
    for part, (begin, end) in enumerate(pairwise(cuts)):
        mine = folder / f"{parts}-{part}"
        mine.mkdir()
        write_rows(mine / "table.parquet", TEXTS, [(text, "", "") for text in texts[begin:end]])
        SketchedShard("", mine / "table.parquet", end - begin, Shingle("words", 5), BANDS, None)(mine)
        found.append(Sketches(mine, begin))
    return found


def test_near_copies_join_the_earliest_whatever_the_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    originals = prose()[:60]
    texts = [*originals, *(altered(text, 1, seed) for seed, text in enumerate(originals[:30])), "", "one", "one"]
    whole = clusters(sketched(tmp_path, texts, 1), BANDS, np.ones(len(texts), np.bool_))
    alike = [number for number in range(30) if _jaccard(texts[number], texts[60 + number]) >= 0.8]
    assert len(alike) > 20 and np.mean([whole[60 + number] == whole[number] for number in alike]) >= 0.95
    assert whole[-3] == len(texts) - 3 and whole[-1] == whole[-2] == len(texts) - 2
    assert (whole <= np.arange(len(texts))).all() and (whole[whole] == whole).all()
    monkeypatch.setattr(near_duplicates, "PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(sorted_keys, "KEYS_AT_ONCE", 7)
    assert clusters(sketched(tmp_path, texts, 4), BANDS, np.ones(len(texts), np.bool_)).tolist() == whole.tolist()


def test_texts_well_below_the_threshold_are_no_near_copies(tmp_path: Path) -> None:
    assert BANDS.least == pytest.approx(0.8 - 2 * (0.8 * 0.2 / BANDS.values) ** 0.5), "two standard errors, as promised"
    pairs = [
        (text, other)
        for seed, text in enumerate(prose())
        for share in range(12, 40, 2)
        if 0.6 <= _jaccard(text, other := altered(text, max(1, len(text.split()) // share), seed)) <= 0.66
    ]
    texts = [text for pair in pairs for text in pair]
    found = clusters(sketched(tmp_path, texts, 1), BANDS, np.ones(len(texts), np.bool_)).tolist()
    joined = sum(one == other for one, other in zip(found[::2], found[1::2], strict=True))
    assert len(pairs) > 50 and joined <= 0.05 * len(pairs), f"{joined} of {len(pairs)} are taken for copies"


def test_chinese_near_copies_are_found(tmp_path: Path) -> None:
    article = "".join(ARTICLES)
    other = article[:90] + "某" + article[91:] + "。"
    found = clusters(sketched(tmp_path, [article, other, prose()[0]], 1), BANDS, np.ones(3, np.bool_))
    assert found.tolist() == [0, 0, 2]


PARAGRAPHS = st.lists(
    st.text("ab \u6c49", min_size=1, max_size=12).filter(str.strip).map(str.strip), min_size=1, max_size=6
)


@settings(deadline=None)
@given(PARAGRAPHS, st.sampled_from(["\n", "\n\n", "\n \n\n"]), st.sets(st.integers(0, 5)))
def test_paragraphs_taken_out_leave_the_others(parts: list[str], mark: str, gone: set[int]) -> None:
    text = mark.join(parts)
    assert paragraphs(text) == parts
    left = [part for number, part in enumerate(parts) if number not in gone]
    assert without_paragraphs(text, gone).split("\n\n" if len(mark) > 1 else "\n") == (left or [""])


def dataset(root: Path, extra: str = "") -> Path:
    """The small dataset up to deduplication, with near copies, copies and a repeated paragraph in `general`."""
    write_small_dataset(root)
    long = [text for text in documents("importlib")[60:] if len(text.split()) >= 60][:8]
    line = " ".join(long[5].split())
    lines = [*long[:4], altered(long[0], 1, 0), long[1].upper(), line]
    lines += [f"{' '.join(long[place].split())}\n\n{line}" for place in (6, 7)]
    with (root / "texts/general/two.jsonl").open("a") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
    params = root / "params.yaml"
    params.write_text(params.read_text() + extra)
    for step in (pin, collect, clean, deduplicate):
        step("small", root)
    return prepared("small", root)


def digest(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_kept_and_dropped_are_the_input_and_no_copy_is_kept(tmp_path: Path) -> None:
    home = dataset(tmp_path)
    tables = read_json(home / "deduplicated/counts.json")[-1]["tables"]
    before = {name: manifest(home / "cleaned" / name)["documents"] for name in PLAIN}
    for name in PLAIN:
        assert tables[name]["documents"] + sum(tables[name]["dropped"].values()) == before[name]
    kept = [row[0] for name in PLAIN for row in table_rows(home / "deduplicated" / name)]
    kept += [row[0] for row in read_rows(home / "deduplicated/task.parquet")]
    keys = [key.tobytes() for key in Letters.of(kept).text_keys()]
    assert len(set(keys)) == len(keys)
    assert tables["general"]["dropped"]["near copy in general"] >= 1 and tables["general"]["samples"]


def test_deduplicating_twice_changes_nothing(tmp_path: Path) -> None:
    home = dataset(tmp_path, "    deduplicate: {paragraphs: 100}\n")
    counts = read_json(home / "deduplicated/counts.json")[-1]["tables"]["general"]
    assert counts["changed"]["repeated paragraphs"] >= 1
    first = {name: list(table_rows(home / "deduplicated" / name)) for name in PLAIN}
    (home / "cleaned").rename(home / "cleaned-once")
    (home / "deduplicated").rename(home / "cleaned")
    deduplicate("small", tmp_path)
    again = {name: list(table_rows(home / "deduplicated" / name)) for name in PLAIN}
    # clusters are joined by estimates: a text that lost its neighbours has none left
    assert again == first


def test_shards_and_processes_do_not_move_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = dataset(tmp_path, "    deduplicate: {paragraphs: 100}\n")
    whole = {name: list(table_rows(home / "deduplicated" / name)) for name in PLAIN}
    digests = []
    for processes in (1, 2):
        other = tmp_path / f"with{processes}"
        other.mkdir()
        monkeypatch.setattr(shards, "SHARD_BYTES", 5_000)
        monkeypatch.setattr("pipelines.corpora.steps.deduplicate.ALONE_BELOW", 0)
        small = dataset(other, f"    deduplicate: {{paragraphs: 100}}\nruntime: {{processes: {processes}}}\n")
        assert len(manifest(small / "deduplicated/general")["shards"]) > 3
        assert {name: list(table_rows(small / "deduplicated" / name)) for name in PLAIN} == whole
        digests.append(digest(small / "deduplicated"))
    assert digests[0] == digests[1]


def test_without_near_copies_only_copies_go(tmp_path: Path) -> None:
    home = dataset(tmp_path, "    deduplicate: {near: null}\n")
    dropped = read_json(home / "deduplicated/counts.json")[-1]["tables"]["general"]["dropped"]
    assert dropped and all(reason.startswith("same text in") for reason in dropped)
    assert not pq.read_table(home / "deduplicated/ledger.parquet").num_rows


@given(st.lists(ANY_TEXT, max_size=5), st.integers(1, 5), st.sampled_from(["words", "letters"]))
@example(["To be, or not to be", "", "\u5f71\u4e0be\u0301 1.5 15 \ufb01", "<<a>> [[b]] 7 8"], 2, "words")
def test_a_long_text_is_read_in_parts(texts: list[str], length: int, unit: str) -> None:
    def everything() -> list[np.ndarray]:
        letters = Letters.of(texts)
        arrays = [letters.codes, letters.kinds, letters.separated, letters.ends, letters.text_keys()]
        return [*arrays, *letters.shingles(Shingle(unit, length), shorter=True)]  # type: ignore[arg-type]

    whole = everything()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shingling, "AT_ONCE", 3)
        parts = everything()
    assert all(np.array_equal(one, other) and one.dtype == other.dtype for one, other in zip(whole, parts, strict=True))
