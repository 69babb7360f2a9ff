"""The order of a table: a permutation, random, and moved by nothing but the texts."""

from __future__ import annotations

import tempfile
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.settings.mixture import MixtureSettings
from pipelines.corpora.shards import folders as shards
from pipelines.corpora.shards.folders import table_files, write_table
from pipelines.corpora.shards.tables import TEXTS, Row
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps import shuffle
from pipelines.corpora.steps.mixture import Mixture
from pipelines.corpora.steps.shuffle import shuffle_tables
from tests.pipelines.corpora.rows_of_tables import table_rows
from tests.small_corpus import documents


def rows() -> list[Row]:
    found = [(text, f"email:{n}", "email") for n, text in enumerate(documents("email"))]
    return found + [(text, f"asyncio:{n}", "asyncio") for n, text in enumerate(documents("asyncio"))]


def shuffled_rows(found: list[Row], folder: Path, cut: int | None = None) -> list[Row]:
    """`found` shuffled, as one table or as two."""
    parts = [found] if cut is None else [found[:cut], found[cut:]]
    tables = []
    for number, part in enumerate(parts):
        tables.append(folder / f"in{number}")
        write_table(tables[-1], TEXTS, part, Tally())
    shuffle_tables(tables, folder / "out", folder / "work", 1)
    return list(table_rows(folder / "out"))


texts = st.text(st.characters(codec="utf-8"), max_size=30)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(texts, st.sampled_from("xy")), max_size=30), st.integers(0, 30), st.integers(1, 400))
def test_an_order_is_a_permutation_whatever_the_shards(found: list[tuple[str, str]], cut: int, bucket: int) -> None:
    given_rows: list[Row] = [(text, f"{n}", name) for n, (text, name) in enumerate(found)]
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        pytest.MonkeyPatch.context() as to,
    ):
        whole = shuffled_rows(given_rows, Path(first))
        to.setattr(shuffle, "BUCKET_BYTES", bucket)
        to.setattr(shuffle, "GROUP_BYTES", bucket)
        assert shuffled_rows(given_rows[::-1], Path(second), cut) == whole
    assert sorted(whole) == sorted(given_rows)


def test_a_prefix_is_a_random_sample(tmp_path: Path) -> None:
    found = shuffled_rows(rows(), tmp_path)
    assert found != rows()
    share = sum(name == "email" for *_, name in rows()) / len(rows())
    prefix = [name for *_, name in found[:100]]
    assert abs(prefix.count("email") / 100 - share) < 0.15  # three standard deviations
    lengths = [len(text) for text, *_ in found]
    assert 0.5 < sum(lengths[:150]) / 150 / (sum(lengths) / len(lengths)) < 2


def test_any_number_of_processes_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 40_000)
    for module in (shuffle, shards):
        monkeypatch.setattr(module, "ALONE_BELOW", 0)
    write_table(tmp_path / "a", TEXTS, rows()[::2], Tally())
    write_table(tmp_path / "b", TEXTS, rows()[1::2], Tally())
    mixture = Mixture(
        MixtureSettings(weights={"email": 3, "asyncio": 1}), {name: [name] for name in ("email", "asyncio")}
    )
    digests = []
    for processes in (1, 2):
        out = tmp_path / f"out{processes}"
        shuffle_tables([tmp_path / "a", tmp_path / "b"], out, tmp_path / f"work{processes}", processes, mixture)
        assert len(table_files(out)) > 3
        digests.append({path.name: sha256(path.read_bytes()).hexdigest() for path in out.iterdir()})
    assert digests[0] == digests[1]


def test_copies_of_a_text_stand_far_apart(tmp_path: Path) -> None:
    write_table(tmp_path / "in", TEXTS, rows(), Tally())
    mixture = Mixture(
        MixtureSettings(weights={"email": 1, "asyncio": 1}, size=4), {n: [n] for n in ("email", "asyncio")}
    )
    whole, _ = shuffle_tables([tmp_path / "in"], tmp_path / "out", tmp_path / "work", 1, mixture)
    found = [text for text, *_ in table_rows(tmp_path / "out")]
    assert len(found) == whole["documents"] == 4 * len(rows())
    beside = sum(one == other for one, other in pairwise(found))
    assert beside < len(found) / 50
