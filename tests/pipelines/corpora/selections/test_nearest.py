"""Neighbours: the same as by comparing every pair, each once, the same for any number of processes and either index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpora.engines.work import run_units
from pipelines.corpora.selections import Pool, Selection, SelectionResult, SelectionUnit
from pipelines.corpora.selections.encoding import EncodedFile, LearnedVectors, evenly, rows_between, texts_at
from pipelines.corpora.selections.searching import list_count, one_thread, probes
from pipelines.corpora.vectors import TextVectors
from pipelines.errors import DataError
from tests.small_corpus import MANY, documents

VECTORS = {"name": "hashed_ngrams", "dimensions": 16, "buckets": 4096}


@cache
def texts() -> list[str]:
    return documents(*MANY, "asyncio", "email", "http")[:400]


def pool(folder: Path, domain: Sequence[str], own: Sequence[str], processes: int = 1, files: int = 3) -> Pool:
    """Texts as `files` files of the domain, and one of the task."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = [number * len(domain) // files for number in range(files + 1)]
    parts = {f"domain{n}": domain[cuts[n] : cuts[n + 1]] for n in range(files)} | {"own": own}
    for name, found in parts.items():
        pq.write_table(pa.table({"text": pa.array(found, pa.string())}), folder / f"{name}.parquet")
    counts = {folder / f"{name}.parquet": len(found) for name, found in parts.items()}
    asked = {path: count for path, count in counts.items() if path.stem == "own"}

    def at_work(units: Sequence[SelectionUnit], name: str, each: int) -> list[Path]:
        return run_units(units, folder / "work" / name, processes)

    return Pool({path: n for path, n in counts.items() if path not in asked}, asked, at_work, folder)


def selected(pool: Pool, **said: object) -> SelectionResult:
    return Selection.model_validate({"name": "nearest", "vectors": VECTORS} | said).select(pool)


def test_the_neighbours_are_those_of_comparing_every_pair(tmp_path: Path) -> None:
    domain, own = texts()[:300], texts()[300:340]
    found = selected(pool(tmp_path / "a", domain, own), neighbours=7)
    vectors = TextVectors.model_validate(VECTORS)
    learned = tmp_path / "a" / "work" / "learned" / "learned"
    encode = vectors.encoder(learned, tmp_path)
    cosines = encode(own) @ encode(domain).T
    nearest = np.argsort(-cosines, axis=1)[:, :7]
    expected = np.zeros(len(domain), bool)
    expected[np.unique(nearest)] = True
    # vectors are kept in half precision: where two are nearly as near, either may be taken
    assert (found.chosen != expected).sum() <= 0.05 * expected.sum()
    assert found.figures["hits"] == 7 * 40 and found.figures["texts"] == found.chosen.sum() < 7 * 40
    assert found.figures["mean_cosine_of_nearest"] == pytest.approx(cosines.max(axis=1).mean(), abs=0.002)
    assert found.figures["index"] == "flat" and found.figures["without_vector"] == 0


def test_more_neighbours_hold_fewer_and_all_is_all(tmp_path: Path) -> None:
    domain, own = texts()[:300], texts()[300:310]
    few, more, every = (selected(pool(tmp_path / str(k), domain, own), neighbours=k).chosen for k in (3, 30, 2000))
    assert few.sum() < more.sum() and not (few & ~more).any()
    assert every.sum() >= 0.9 * len(domain)  # texts that point away from all ten are not near to them


def test_a_text_is_its_own_nearest_and_a_pair_is_kept_for_eyes(tmp_path: Path) -> None:
    domain = texts()[:300]
    found = selected(pool(tmp_path, domain, [domain[17].upper(), domain[171], "!!! ... ???"]), neighbours=1)
    assert sorted(np.flatnonzero(found.chosen)) == [17, 171]
    assert found.figures["without_vector"] == 1 and found.figures["asked"] == 2
    assert [one["nearest"][0]["text"] for one in found.shown if one["nearest"]] == [domain[17][:300], domain[171][:300]]
    assert found.figures["mean_cosine_of_nearest"] == pytest.approx(1, abs=0.002)


def test_processes_threads_and_the_cut_into_files_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, own = texts()[:300], texts()[300:340]
    one = selected(pool(tmp_path / "one", domain, own), neighbours=9)
    import faiss

    faiss.omp_set_num_threads(2)
    two = selected(pool(tmp_path / "two", domain, own, processes=2, files=5), neighbours=9)
    assert faiss.omp_get_max_threads() == 2, "put back as it was"
    assert (one.chosen == two.chosen).all() and one.figures == two.figures and one.shown == two.shown


def test_lists_find_most_of_what_is_near_and_say_how_much(tmp_path: Path) -> None:
    domain, own = texts()[:300], texts()[300:360]
    exact = selected(pool(tmp_path / "flat", domain, own), neighbours=5, index="flat")
    lists = selected(pool(tmp_path / "lists", domain, own), neighbours=5, index="inverted_lists")
    assert lists.figures["index"] == "inverted_lists" and lists.figures["recall"] > 0.9
    assert (exact.chosen & lists.chosen).sum() >= 0.9 * exact.chosen.sum()


def test_lists_are_as_many_as_a_sample_can_teach() -> None:
    assert list_count(100, 128) == 2 and list_count(10, 128) == 1
    assert list_count(1_000_000, 128) == 4000 and list_count(10**9, 768) * 39 * 768 * 4 <= 2**27
    assert probes(4) == 4 and probes(4000) == 64


def test_nothing_to_search_or_to_ask_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the domain corpus is empty, so there are no neighbours to find"):
        selected(pool(tmp_path / "a", [], ["a question"]))
    with pytest.raises(DataError, match="the task has no text of its own whose neighbours could be found"):
        selected(pool(tmp_path / "b", ["a text"], []))


def test_vectors_are_read_back_by_number(tmp_path: Path) -> None:
    where = pool(tmp_path, texts()[:100], texts()[100:110])
    vectors = TextVectors.model_validate(VECTORS)
    (learned,) = where.run_units([LearnedVectors("l", vectors, where.own, where.domain)], "l", 0)
    units = [
        EncodedFile(f"{n}", vectors, learned, tmp_path, path, count)
        for n, (path, count) in enumerate(where.domain.items())
    ]
    folders = where.run_units(units, "e", 0)
    encode = vectors.encoder(learned, tmp_path)
    np.testing.assert_allclose(rows_between(folders, 30, 80), encode(texts()[30:80]), atol=1e-3)
    assert texts_at(where.domain, [0, 34, 99]) == {number: texts()[number] for number in (0, 34, 99)}
    assert evenly(10, 3) == [0, 3, 6] and evenly(2, 5) == [0, 1] and evenly(0, 5) == []


def test_blas_and_faiss_are_given_back_their_threads() -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    with one_thread():
        assert faiss.omp_get_max_threads() == 1
    assert faiss.omp_get_max_threads() == before
