"""Claims: narrowed to what they compare, judged by the whole interval, and shown from records alone."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from pipelines.corpora.steps.step import TABLES
from pipelines.errors import RecipeError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.claims import COMPARISON, recipe_of_claim
from pipelines.recipe.kinds import Kind
from pipelines.recipe.load import Library
from pipelines.recipe.plan import Step, plan
from tasks.datasets.prepared import Prepared
from tasks.records.claims import PAGE, RECORDS, record_claim, render_page, verdict
from tests.steps import RECIPES, ROOT, library_of

LIBRARY = Library(RECIPES)
CLAIMS = [(name, claim) for name in LIBRARY.names() for claim in LIBRARY.load(name).claims]


@pytest.mark.parametrize(
    ("low", "high", "at_least", "said"),
    [
        (0.01, 0.05, 0.0, "reproduced"),
        (-0.01, 0.05, 0.0, "cannot tell at this scale"),
        (-0.05, -0.01, 0.0, "not reproduced"),
        (-0.008, 0.02, -0.01, "reproduced"),
        (-0.03, -0.008, -0.01, "cannot tell at this scale"),
        (-0.03, -0.011, -0.01, "not reproduced"),
    ],
)
def test_a_verdict_asks_for_the_whole_interval(low: float, high: float, at_least: float, said: str) -> None:
    assert verdict(low, high, at_least) == said


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=[f"{name}-{claim}" for name, claim in CLAIMS])
def test_a_claim_trains_what_it_compares_and_nothing_else(name: str, claim: str) -> None:
    recipe = LIBRARY.load(name)
    stages = recipe_of_claim(recipe, claim, seeds=2).stages
    told = recipe.claims[claim]
    assert stages[told.system].seeds == stages[told.baseline].seeds == (0, 1)
    assert stages[COMPARISON].kind is Kind.EVALUATE and stages[COMPARISON].start == (told.baseline, told.system)
    needed = {COMPARISON, told.baseline, told.system}
    while (
        more := {
            start
            for stage in needed
            if isinstance(start := getattr(stages[stage].start, "untrained", stages[stage].start), str)
            and "/" not in start
        }
        - needed
    ):
        needed |= more
    assert set(stages) == needed


def test_a_claim_that_nobody_makes_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"recipe adapter has no claim 'within_a_pint'. Did you mean 'within_a_point'"
    ):
        recipe_of_claim(LIBRARY.load("adapter"), "within_a_pint")
    text = (RECIPES / "adapter.yaml").read_text().replace("system: adapter", "system: adaptor")
    library = library_of(tmp_path, adapter=text, bert=(RECIPES / "bert.yaml").read_text())
    with pytest.raises(
        RecipeError, match=r"adapter.yaml:\d+: claims.within_a_point.system: there is no stage 'adaptor'"
    ):
        library.load("adapter")


def test_the_page_is_made_of_the_records() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render_page(ROOT)
    for path in (ROOT / RECORDS).glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        effect = record["effect"]
        assert path.name == f"{record['recipe']}.{record['claim']}.{record['data']['dataset']}.json"
        assert record["verdict"] == verdict(effect["low"], effect["high"], record["at_least"])
        assert record["claim"] in LIBRARY.load(record["recipe"]).claims
        # what is shown is the system less the baseline, and its interval is around it
        for metric, shown in {record["metric"]: effect, **record["other_metrics"]}.items():
            difference = record["system"][metric]["mean"] - record["baseline"][metric]["mean"]
            assert shown["difference"] == pytest.approx(difference, abs=1e-9), f"{path.name}: {metric}"
            assert shown["low"] <= shown["difference"] <= shown["high"], f"{path.name}: {metric}"
        claim = LIBRARY.load(record["recipe"]).claims[record["claim"]]
        assert (record["baseline"]["stage"], record["system"]["stage"]) == (claim.baseline, claim.system)


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=[f"{name}-{claim}" for name, claim in CLAIMS])
def test_a_comparison_goes_from_the_baseline_to_the_system(name: str, claim: str) -> None:
    recipe = LIBRARY.load(name)
    told = recipe.claims[claim]
    (compared,) = recipe_of_claim(recipe, claim).stages[COMPARISON].suite
    assert compared.model_dump()["ladder"] == (told.baseline, told.system)


MEANS = {"plain": 0.4, "adapter": 0.7}
"""Accuracy of the stages of `adapter`'s claim, in the test below; its macro-F1 is a tenth less, and falls."""


def test_a_record_says_which_side_is_which_and_who_won(tmp_path: Path) -> None:
    recipe = recipe_of_claim(LIBRARY.load("adapter"), "within_a_point", seeds=2)
    claim = recipe.claims["within_a_point"]
    assert (claim.baseline, claim.system) == tuple(MEANS)
    prepared, store = write_tables(tmp_path), Store(tmp_path / "store")
    sources = {name: DataSource(digest=digest, path=name) for name, digest in prepared.digests.items()}
    found = plan(recipe, LIBRARY, sources)
    for step in found.steps:
        publish(store, step)
    record = record_claim(tmp_path, "within_a_point", found, store, prepared)
    assert (record["baseline"]["stage"], record["baseline"]["accuracy"]["mean"]) == ("plain", 0.4)
    assert (record["system"]["stage"], record["system"]["accuracy"]["mean"]) == ("adapter", 0.7)
    assert record["effect"] == {"difference": 0.3, "low": 0.2, "high": 0.4, "verdict": "pays"}
    assert record["other_metrics"]["macro_f1"]["difference"] == -0.1
    assert record["verdict"] == "reproduced" and record["seeds"] == 2
    for side, number in (("baseline", 1), ("system", 2)):
        made = [step.fingerprint for step in found.steps if step.name == record[side]["stage"]]
        assert record[side]["fingerprints"] == made and len(made) == 2
        assert (record[side]["parameters"], record[side]["tokens"]) == (number * 1000, number * 20)
    (written,) = (tmp_path / RECORDS).glob("*.json")
    assert json.loads(written.read_text(encoding="utf-8")) == json.loads(json.dumps(record))
    row = next(line for line in (tmp_path / PAGE).read_text(encoding="utf-8").splitlines() if "within_a_point" in line)
    assert "| plain 0.400 | adapter 0.700 | +0.300 [+0.200, +0.400]" in row


def write_tables(root: Path) -> Prepared:
    """A prepared dataset with two examples in each table."""
    tables = {name: root / f"{name}.parquet" for name in TABLES}
    for path in tables.values():
        parquet.write_table(pyarrow.table({"text": ["one", "two"]}), path)
    digests = {name: f"{number:032x}" for number, name in enumerate(tables)}
    return Prepared("docs", "en", "text_classification", root, tables, digests, ["a", "b"], {}, {})


def publish(store: Store, step: Step) -> None:
    """The artifact of a step: of the comparison what it measured, of any other how large its model is."""
    work = store.workspace(step.fingerprint)
    if step.name == COMPARISON:
        (work / EVALUATION).write_text(json.dumps({"sections": {"classification": MEASURED}}), encoding="utf-8")
    number = 1 + list(MEANS).index(step.name) if step.name in MEANS else 0
    store.publish(
        Provenance(
            fingerprint=step.fingerprint, recipe=step.recipe, stage=step.name, kind=str(step.stage.kind),
            seed=step.seed, identity=dict(step.identity), parents=dict(step.parents), data=dict(step.data), files={},
            result={"parameters": number * 1000, "tokens": number * 10},
            environment=Environment(
                python="3", platform="", packages={}, commit=None, started="2026-01-01T00:00:00", seconds=60.0
            ),
        )
    )  # fmt: skip


MEASURED = {
    "metrics": ["accuracy", "macro_f1"],
    "verdict_metric": "accuracy",
    "stages": [
        {"stage": stage, "accuracy": {"mean": mean}, "macro_f1": {"mean": 0.5 - 0.1 * number}}
        for number, (stage, mean) in enumerate(MEANS.items())
    ],
    "ladder": [
        {
            "accuracy": {"difference": 0.3, "low": 0.2, "high": 0.4, "verdict": "pays"},
            "macro_f1": {"difference": -0.1, "low": -0.2, "high": 0.0, "verdict": "cannot tell"},
        }
    ],
}
"""What the evaluation of the comparison writes."""
