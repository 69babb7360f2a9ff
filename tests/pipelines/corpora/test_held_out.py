"""General text that is held out: by its content alone, a hundredth, and none of it is trained on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.corpora.settings.mixture import MixtureSettings
from pipelines.corpora.shards import held_out as module
from pipelines.corpora.shards.folders import manifest, write_table
from pipelines.corpora.shards.held_out import HELD_OUT, REASON, held_out, key_of
from pipelines.corpora.shards.tables import TEXTS, Row, read_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.mixture import Mixture
from pipelines.corpora.steps.shuffle import shuffle_tables
from pipelines.corpora.steps.step import prepared, table_path
from tests.pipelines.corpora.rows_of_tables import table_rows
from tests.pipelines.corpora.test_steps import root, run
from tests.small_corpus import documents

__all__ = ["root"]


def rows() -> list[Row]:
    return [(text, f"{name}:{n}", name) for name in ("email", "asyncio") for n, text in enumerate(documents(name))]


def table(folder: Path, found: list[Row]) -> Path:
    write_table(folder, TEXTS, found, Tally())
    return folder


@pytest.fixture(autouse=True)
def enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_BYTES", 1000)


def test_the_texts_with_the_smallest_keys_are_held_out_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARE", 0.1)
    size = sum(len(row[0].encode()) for row in rows())
    last, kept = held_out(table(tmp_path / "a", rows()), tmp_path / "work", 1)
    ordered = sorted(rows(), key=lambda row: key_of(row[0]))
    assert kept == ordered[: len(kept)] and last == key_of(kept[-1][0])
    sizes = [len(row[0].encode()) for row in kept]
    assert sum(sizes[:-1]) < int(size * 0.1) <= sum(sizes)
    monkeypatch.setattr("pipelines.corpora.shards.folders.SHARD_BYTES", size // 5)
    cut = table(tmp_path / "b", rows()[::-1])
    assert len(manifest(cut)["shards"]) > 3
    assert held_out(cut, tmp_path / "other", 2) == (last, kept)


def test_equal_texts_are_held_out_once_and_shards_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARE", 1.0)
    monkeypatch.setattr(module, "MOST_BYTES", 3000)
    once = held_out(table(tmp_path / "a", rows()), tmp_path / "work", 1)
    seen, smallest = [], module._smallest

    def noticed(found: pa.Table, budget: int) -> pa.Table:
        seen.append(sum(len(text.encode()) for text in found["text"].to_pylist()))
        return smallest(found, budget)

    monkeypatch.setattr(module, "_smallest", noticed)
    monkeypatch.setattr(
        "pipelines.corpora.shards.folders.SHARD_BYTES", sum(len(row[0].encode()) for row in rows()) // 8
    )
    cut = table(tmp_path / "b", rows() + [(text, f"z{place}", name) for text, place, name in rows()])
    assert len(manifest(cut)["shards"]) > 12
    assert held_out(cut, tmp_path / "other", 1) == once
    longest = max(len(row[0].encode()) for row in rows())
    assert len(seen) == len(manifest(cut)["shards"]) and max(seen) <= 2 * (3000 + longest)


def test_a_megabyte_is_held_out_at_most_and_nothing_of_little_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = table(tmp_path / "a", rows())
    monkeypatch.setattr(module, "MOST_BYTES", 500)
    _, kept = held_out(whole, tmp_path / "few", 1)
    assert 1 <= len(kept) <= 4
    monkeypatch.setattr(module, "LEAST_BYTES", 2**30)
    assert held_out(whole, tmp_path / "none", 1) == (-1, [])


@pytest.mark.parametrize("mixture", [None, {"weights": {"email": 3.0, "asyncio": 1.0}}])
def test_what_is_held_out_is_not_written_and_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mixture: dict[str, object] | None
) -> None:
    monkeypatch.setattr(module, "SHARE", 0.1)
    whole = table(tmp_path / "a", rows())
    last, kept = held_out(whole, tmp_path / "work", 1)
    mixed = None
    if mixture is not None:
        settings = MixtureSettings.model_validate({"size": 2.0, **mixture})
        mixed = Mixture(settings, {"email": ["email"], "asyncio": ["asyncio"]})
    _, told = shuffle_tables([whole], tmp_path / "out", tmp_path / "shuffle", 1, mixed, last)
    texts = {row[0] for row in table_rows(tmp_path / "out")}
    assert kept and not texts & {row[0] for row in kept}
    if mixture is None:
        assert texts == {row[0] for row in rows()} - {row[0] for row in kept}
        assert manifest(tmp_path / "out")["dropped"] == {REASON: len(kept)}
    else:
        shares = {one["source"]: one for one in told}
        assert shares["email"]["share"] == pytest.approx(0.75, abs=0.01)
        assert sum(one["documents"] for one in told) == len(rows()) - len(kept)


def test_a_prepared_dataset_has_it_beside_its_other_tables(root: Path) -> None:
    home = run(root)
    kept = {row[0] for row in read_rows(table_path(prepared("small", root), HELD_OUT))}
    assert kept and not kept & {row[0] for row in table_rows(home / "general")}
