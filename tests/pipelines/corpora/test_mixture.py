"""Mixtures: shares as asked, epochs counted, the same choice for any order; what cannot be mixed is told with its
line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.settings.dataset import load_settings
from pipelines.corpora.settings.mixture import MixtureSettings
from pipelines.corpora.shards.folders import write_table
from pipelines.corpora.shards.tables import TEXTS
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.mixture import Mixture
from pipelines.corpora.steps.shuffle import LESS_THAN_ONCE, shuffle_tables
from pipelines.errors import RecipeError
from tests.pipelines.corpora.rows_of_tables import table_rows
from tests.pipelines.corpora.small_dataset import PARAMS
from tests.small_corpus import documents

NAMES = ("email", "asyncio", "unittest")


def texts_of(name: str, amount: int) -> list[str]:
    return documents(name)[:amount]


def mixed(
    folder: Path, amounts: dict[str, int], members: dict[str, list[str]] | None = None, **said: Any
) -> tuple[dict[str, list[str]], dict[str, dict[str, Any]], dict[str, Any]]:
    """Texts by collection after mixing, what was told of each member, and the manifest."""
    write_table(
        folder / "in",
        TEXTS,
        [
            (text, f"{name}:{n}", name)
            for name, amount in amounts.items()
            for n, text in enumerate(texts_of(name, amount))
        ],
        Tally(),
    )
    mixture = Mixture(MixtureSettings(**said), members or {name: [name] for name in amounts})
    whole, told = shuffle_tables([folder / "in"], folder / "out", folder / "work", 1, mixture)
    found: dict[str, list[str]] = {name: [] for name in amounts}
    for text, _, name in table_rows(folder / "out"):
        found[name].append(text)
    return found, {one["source"]: one for one in told}, whole


sizes = st.fixed_dictionaries({name: st.integers(1, 80) for name in NAMES})
weights = st.fixed_dictionaries({name: st.floats(0.05, 20) for name in NAMES})


@settings(max_examples=15, deadline=None)
@given(sizes, weights, st.sampled_from(["documents", "characters"]), st.floats(0.2, 3))
def test_shares_are_met_within_one_document(
    amounts: dict[str, int], weights: dict[str, float], unit: str, size: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found, told, _ = mixed(Path(folder), amounts, weights=weights, unit=unit, size=size)

    def measure(text: str) -> int:
        return len(text) if unit == "characters" else 1

    natural = sum(measure(text) for name, amount in amounts.items() for text in texts_of(name, amount))
    for name, amount in amounts.items():
        asked = weights[name] / sum(weights.values()) * size * natural
        got = sum(map(measure, found[name]))
        assert abs(got - asked) <= max(measure(text) for text in texts_of(name, amount))
        times = {text: found[name].count(text) for text in texts_of(name, amount)}
        assert max(times.values()) - min(times.values()) <= 1, "no text is repeated twice more than another"
        assert told[name]["epochs"] == pytest.approx(got / sum(map(measure, times)))
        assert told[name]["written_documents"] == len(found[name]) and told[name]["documents"] == amount
        assert max(times.values()) <= told[name]["most_copies"]


def test_a_temperature_is_the_multilingual_rule(tmp_path: Path) -> None:
    amounts = {"email": 80, "asyncio": 20, "unittest": 5}
    _, told, _ = mixed(tmp_path, amounts, temperature=0.5)
    powers = {name: (amount / 105) ** 0.5 for name, amount in amounts.items()}
    for name, power in powers.items():
        assert told[name]["share_asked"] == pytest.approx(power / sum(powers.values()))
        assert told[name]["share"] == pytest.approx(told[name]["share_asked"], abs=1 / 105)
    assert told["email"]["epochs"] < 1 < told["asyncio"]["epochs"] < told["unittest"]["epochs"]


@pytest.mark.parametrize(("temperature", "epochs"), [(1.0, [1, 1, 1]), (0.0, [35 / 80, 35 / 20, 35 / 5])])
def test_a_temperature_goes_from_natural_to_uniform(tmp_path: Path, temperature: float, epochs: list[float]) -> None:
    _, told, _ = mixed(tmp_path, {"email": 80, "asyncio": 20, "unittest": 5}, temperature=temperature)
    assert [told[name]["epochs"] for name in ("email", "asyncio", "unittest")] == pytest.approx(epochs)


def test_what_is_left_out_is_counted_with_samples_and_lies_in_what_a_larger_share_leaves_in(tmp_path: Path) -> None:
    amounts = {"email": 60, "asyncio": 60}
    kept = []
    for weight in (1, 2):
        folder = tmp_path / str(weight)
        found, told, whole = mixed(folder, amounts, weights={"email": weight, "asyncio": 9})
        assert whole["dropped"] == {LESS_THAN_ONCE: 60 - told["email"]["written_documents"]}
        assert all(one["source"].startswith("email:") for one in whole["samples"][LESS_THAN_ONCE])
        kept.append(set(found["email"]))
    assert kept[0] < kept[1] and len(kept[0]) == 12


def test_sources_of_one_language_keep_their_proportions(tmp_path: Path) -> None:
    amounts = {"email": 60, "asyncio": 30, "unittest": 10}
    members = {"en": ["email", "asyncio"], "zh": ["unittest"]}
    found, told, _ = mixed(tmp_path, amounts, members, temperature=0.5, by="language")
    assert told["en"]["share_asked"] == pytest.approx(0.75) and told["zh"]["share_asked"] == pytest.approx(0.25)
    assert len(found["unittest"]) == 25 and len(found["email"]) + len(found["asyncio"]) == 75
    assert 1.4 < len(found["email"]) / len(found["asyncio"]) < 2.9


SOURCES = "general: [{path: texts/general, name: old}, {path: texts/new, name: new, language: zh}]"


@pytest.mark.parametrize(
    ("mixture", "line", "says"),
    [
        ("{weights: {old: 1}}", 5, "there is no weight for 'new'; every source needs one"),
        ("{weights: {old: 1, nwe: 2, new: 1}}", 5, "no source of 'general' is called 'nwe'. Did you mean 'new'?"),
        ("{weights: {old: 1, new: 0}}", 5, "greater than 0"),
        ("{weights: {old: 1, new: 1}, temperature: 0.5}", 5, "weights and temperature are mutually exclusive"),
        ("{by: language}", 5, "set weights (source → share) or temperature"),
        ("{temperature: 2}", 5, "less than or equal to 1"),
        ("{temprature: 0.5}", 5, "Did you mean 'temperature'?"),
        ("{weights: {en: 1, fr: 2}, by: language}", 5, "no language of 'general' is called 'fr'"),
    ],
)
def test_a_mixture_that_cannot_be_is_told_with_its_line(tmp_path: Path, mixture: str, line: int, says: str) -> None:
    params = PARAMS.replace("general: texts/general", f"{SOURCES}\n    mixtures:\n      general: {mixture}")
    (tmp_path / "params.yaml").write_text(params)
    with pytest.raises(RecipeError) as told:
        load_settings(tmp_path)
    assert says in str(told.value)
    assert str(told.value).startswith(f"params.yaml:{line}: datasets.small.mixtures.general")


def test_one_source_is_no_mixture(tmp_path: Path) -> None:
    params = PARAMS.replace("    task:", "    mixtures: {domain: {temperature: 0.5}}\n    task:")
    (tmp_path / "params.yaml").write_text(params)
    with pytest.raises(
        RecipeError, match="params.yaml:5: .*'domain' has one source, 'texts/domain.csv': there is nothing to"
    ):
        load_settings(tmp_path)


def test_a_mixture_says_the_same_in_json() -> None:
    said = MixtureSettings.model_validate({"weights": {"a": 1, "b": 2}, "unit": "characters"})
    assert MixtureSettings.model_validate(json.loads(said.model_dump_json())) == said
