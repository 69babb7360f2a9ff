"""Claims: narrowed to what they compare, judged by the whole interval, and shown from records alone."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from pipelines.corpora.steps.step import TABLES
from pipelines.errors import RecipeError
from pipelines.judging.claims import ClaimForm, Verdict
from pipelines.judging.claims.judgement import verdict_of, verdict_of_all
from pipelines.judging.claims.pair import PairForm
from pipelines.judging.samples import SAMPLES, key_of, write_samples
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.claims import COMPARISON, measurements, recipe_of_claim
from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.plan import Step, plan
from pipelines.recipe.schema import Recipe, Stage
from pipelines.task_families import TaskFamily
from tasks.datasets.libraries import setting_of_dataset
from tasks.datasets.prepared import Prepared
from tasks.records.claims import PAGE, RECORDS, TOO_NEAR, record_claim, render_page
from tasks.records.claims_plots import drawings
from tasks.records.measured_claim import MeasuredClaim, MeasuredPart
from tasks.records.measurements import read_records
from tests.steps import RECIPES, ROOT, SHIPPED, library_of, shipped

CLAIMS = [(name, claim) for name in SHIPPED.names() for claim in shipped(name).claims]


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=[f"{name}-{claim}" for name, claim in CLAIMS])
def test_a_claim_trains_what_it_compares_and_nothing_else(name: str, claim: str) -> None:
    recipe = shipped(name)
    for part in measurements(recipe, recipe.claims[claim]).values():
        seeds = max(2, recipe.claims[claim].form.fewest_seeds)
        reduced = recipe_of_claim(recipe, claim, seeds=seeds, stages=part.stages, draws=1)
        assert all(reduced.compared(one).seeds == tuple(range(seeds)) for one in part.stages)
        stages, needed = reduced.stages, {one for one in part.stages if "/" not in one}
        if COMPARISON in stages:
            assert stages[COMPARISON].kind.judges and stages[COMPARISON].start == part.stages
            needed.add(COMPARISON)
        while more := {start for stage in needed for start in read_by(stages[stage]) if "/" not in start} - needed:
            needed |= more
        assert set(stages) == needed
        assert all(len(stages[one].seeds) == 1 for one in needed - set(part.stages)), "whose first model alone is read"


def read_by(stage: Stage) -> list[str]:
    """Stages whose models a stage reads."""
    starts = stage.start if isinstance(stage.start, tuple) else (getattr(stage.start, "untrained", stage.start),)
    networks = [one.from_ for one in stage.features] + [one.from_ for _, _, one in read_models(stage)]
    return [one for one in (*starts, stage.head_start, stage.teacher, *networks) if isinstance(one, str)]


def test_a_claim_that_nobody_makes_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"recipe adapter has no claim 'within_a_pint'. Did you mean 'within_a_point'"
    ):
        recipe_of_claim(shipped("adapter"), "within_a_pint")
    text = (RECIPES / "adapter.yaml").read_text().replace("system: adapter", "system: adaptor")
    library = library_of(tmp_path, adapter=text, regime=(RECIPES / "regime.yaml").read_text())
    with pytest.raises(
        RecipeError, match=r"adapter.yaml:\d+: claims.within_a_point.system: there is no stage 'adaptor'"
    ):
        library.load("adapter")


def test_the_page_is_made_of_the_records() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render_page(ROOT), "run: python -m tasks.records.claims"
    drawn = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / RECORDS).glob("*.svg")}
    assert drawn == drawings(read_records(ROOT / RECORDS)), "run: python -m tasks.records.claims"
    for path in (ROOT / RECORDS).glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        recipe = shipped(record["recipe"], *record.get("variants", ()))
        form = recipe.claims[record["claim"]].form
        data = "+".join(one["dataset"] for one in record["data"].get("several", [record["data"]]))
        assert path.name == f"{'.'.join((recipe.name, record['claim'], data, *record.get('variants', ())))}.json"
        if "effect" not in record:
            assert record["form"] == form.model_dump(mode="json")
            verdicts = [verdict_of_contrast(one, record, form) for one in record["contrasts"]]
            assert record["verdict"] in (verdict_of_all(verdicts), TOO_NEAR)
            assert [one["stage"] for one in record["sides"]] == [side.stage for side in form.sides()]
            continue
        effect = record["effect"]
        assert record["verdict"] in (verdict_of(effect["low"], effect["high"], record["at_least"]), TOO_NEAR)
        # what is shown is the system less the baseline, and its interval is around it
        for metric, shown in {record["metric"]: effect, **record["other_metrics"]}.items():
            difference = record["system"][metric]["mean"] - record["baseline"][metric]["mean"]
            assert shown["difference"] == pytest.approx(difference, abs=1e-9), f"{path.name}: {metric}"
            assert shown["low"] <= shown["difference"] <= shown["high"], f"{path.name}: {metric}"
        # an older record says of which stages it is; the claim may since have been stated of others
        if "definitions" in record:
            assert [record[side]["stage"] for side in ("system", "baseline")] == [one.stage for one in form.sides()]


def verdict_of_contrast(contrast: dict[str, Any], record: dict[str, Any], form: ClaimForm) -> Verdict:
    """The verdict on a recorded contrast, by its own interval."""
    inclusive = {one.label: one.inclusive for one in form.contrasts()}[contrast["label"]]
    ends = (contrast["low"], contrast["high"], contrast["at_least"])
    assert contrast["low"] <= contrast["effect"] <= contrast["high"]
    return verdict_of(*ends, exact=record["exact"], inclusive=inclusive)


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=[f"{name}-{claim}" for name, claim in CLAIMS])
def test_a_comparison_goes_from_the_baseline_to_the_system(name: str, claim: str) -> None:
    recipe = shipped(name)
    form = recipe.claims[claim].form
    stages = recipe_of_claim(recipe, claim, draws=1).stages
    if isinstance(form, PairForm) and not form.roles and COMPARISON in stages:
        assert stages[COMPARISON].start == (form.baseline, form.system)
        (compared,) = (*stages[COMPARISON].suite, *stages[COMPARISON].probes)
        assert compared.model_dump().get("ladder", stages[COMPARISON].start) == (form.baseline, form.system)


RIGHT = {"plain": 40, "adapter": 70}
"""Right answers of a hundred, of the stages of `adapter`'s claim."""
EXAMPLES = 100


def copy_recipes(root: Path) -> None:
    """Copy the shipped recipes into the project `root`; both sides of adapter's claim train at their own rates."""
    shutil.copytree(RECIPES, root / "recipes")
    path = root / "recipes" / "adapter.yaml"
    text, grids = re.subn(r"\n    tune: .*", "", path.read_text(encoding="utf-8"))
    assert grids == 1
    path.write_text(text, encoding="utf-8")


def measured(
    root: Path,
    store: Store,
    recipe: Recipe,
    name: str,
    rows: Mapping[str, np.ndarray],
    sample: str = "answers",
    without: Mapping[str, np.ndarray] | None = None,
    draws: int = 1,
) -> MeasuredClaim:
    """A claim of whose models a judge kept `rows`, by stage or, over several datasets, by `stage@dataset`; and those of
    baselines `without` a network. The rows of a further draw are those of its name, else those of the stage."""
    shutil.copy(ROOT / "params.yaml", root)
    claim = recipe.claims[name]
    parts = {}
    for part in measurements(recipe, claim).values():
        prepared = write_tables(root, part.trained)
        sources = {one: DataSource(digest=digest, path=one) for one, digest in prepared.digests.items()}
        setting = setting_of_dataset(root, part.judged)
        of_others = lambda owner: shipped(owner).stages  # noqa: E731
        reduced = recipe_of_claim(recipe, name, 2, part.stages, setting, draws, of_others)
        found = plan(reduced, SHIPPED, sources)
        for step in found.steps:
            kept = {one: rows[one] if one in rows else rows[f"{one}@{part.trained}"] for one in part.stages}
            kept |= {
                name: rows.get(name, kept[stage])
                for stage in part.stages
                for name in reduced.stages
                if name.startswith(f"{stage}_draw")
            }
            publish(store, step, sample, kept, without or {})
        parts[part] = MeasuredPart(found, prepared, prepared)
    return MeasuredClaim(recipe, name, claim, parts, store)


def test_a_record_says_which_side_is_which_and_who_won(tmp_path: Path) -> None:
    recipe, store = shipped("adapter"), Store(tmp_path / "store")
    result = measured(tmp_path, store, recipe, "within_a_point", {one: answers(right) for one, right in RIGHT.items()})
    record = record_claim(tmp_path, result)
    assert (record["baseline"]["stage"], record["baseline"]["accuracy"]["mean"]) == ("plain", pytest.approx(0.4))
    assert (record["system"]["stage"], record["system"]["accuracy"]["mean"]) == ("adapter", pytest.approx(0.7))
    assert record["effect"]["difference"] == pytest.approx(0.3) and record["effect"]["verdict"] == "better"
    assert set(record["other_metrics"]) == set(TaskFamily.default().metrics) - {"accuracy"}
    assert record["verdict"] == "reproduced" and record["seeds"] == 2 and record["at_least"] == -0.01
    for side, number in (("baseline", 1), ("system", 2)):
        made = [one.fingerprint for one in result.trained(result.form.sides()[2 - number])]
        assert record[side]["fingerprints"] == made and len(made) == 2
        assert (record[side]["parameters"], record[side]["tokens"]) == (number * 1000, number * 20)
    (written,) = (tmp_path / RECORDS).glob("*.json")
    assert json.loads(written.read_text(encoding="utf-8")) == json.loads(json.dumps(record))
    row = next(line for line in (tmp_path / PAGE).read_text(encoding="utf-8").splitlines() if "within_a_point" in line)
    assert "| plain 0.400 | adapter 0.700 | +0.300 [+0." in row and "(required: above -0.010)" in row
    (sides,) = (
        line for line in (tmp_path / PAGE).read_text(encoding="utf-8").splitlines() if "equal: seeds, data" in line
    )
    assert sides.startswith("| adapter · within_a_point | equal: seeds, data; not: tokens 20 / 10; steps 10 / 5;")


def test_a_difference_of_differences_over_two_datasets_is_recorded(tmp_path: Path) -> None:
    recipe = shipped("tune_or_not")
    claim = next(name for name, one in recipe.claims.items() if len(one.form.sides()) == 4)
    form, data = recipe.claims[claim].form, recipe.claims[claim].data
    assert isinstance(data, dict)
    tuned, frozen = (side.stage for side in form.sides()[:2])
    shares = {f"{tuned}@{data['system']}": 90, f"{frozen}@{data['system']}": 40}
    shares |= {f"{tuned}@{data['baseline']}": 60, f"{frozen}@{data['baseline']}": 50}
    rows = {side: answers(right) for side, right in shares.items()}
    result = measured(tmp_path, Store(tmp_path / "store"), recipe, claim, rows)
    record = record_claim(tmp_path, result)
    (contrast,) = record["contrasts"]
    assert contrast["effect"] == pytest.approx(0.9 - 0.4 - (0.6 - 0.5)) and record["verdict"] == "reproduced"
    assert [one["figure"]["mean"] for one in record["sides"]] == pytest.approx([0.9, 0.4, 0.6, 0.5])
    (written,) = (tmp_path / RECORDS).glob("*.json")
    assert written.name == f"tune_or_not.{claim}.{data['system']}+{data['baseline']}.json"
    drawing = (tmp_path / RECORDS / "gains_more.svg").read_text(encoding="utf-8")
    assert all(f"{tuned} on {dataset}" in drawing for dataset in data.values()) and "+0.400 [+0." in drawing
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert "(claims/gains_more.svg)" in page
    assert "## Other forms and figures" in page and f"{tuned} on {data['system']} 0.900 [" in page
    assert "| gains more |" in page and "| +0.400 [+0." in page


def test_an_order_of_perplexities_is_recorded_and_drawn_on_a_logarithmic_axis(tmp_path: Path) -> None:
    recipe, store = shipped("ngram"), Store(tmp_path / "store")
    stages = [side.stage for side in recipe.claims["orders"].form.sides()]
    nats = np.linspace(90, 110, 40)
    texts = {
        stage: np.stack([nats * factor, np.full(40, 20.0), np.full(40, 70.0)], axis=1)
        for stage, factor in zip(stages, (0.6, 0.7, 0.8, 1.0, 1.4), strict=True)
    }
    record = record_claim(tmp_path, measured(tmp_path, store, recipe, "orders", texts, "perplexity"))
    assert record["verdict"] == "reproduced" and record["lower"] and record["judge"] == "perplexity"
    assert record["contrasts"][0]["label"] == f"{stages[0]} against {stages[1]}"
    assert [one["effect"] for one in record["contrasts"]] == sorted(one["effect"] for one in record["contrasts"])
    drawing = (tmp_path / RECORDS / "in_order.svg").read_text(encoding="utf-8")
    means = [one["figure"]["mean"] for one in record["sides"]]
    assert means[-1] / means[0] > 10
    dots = [float(x) for x in re.findall(r'class="mean" cx="([\d.]+)"', drawing)][-len(stages) :]
    steps = np.diff(dots) / np.diff(np.log(means))
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-3), "equal quotients are equally far apart"


def test_bytes_have_one_seed_no_interval_and_a_quotient(tmp_path: Path) -> None:
    recipe, store = shipped("qbert"), Store(tmp_path / "store")
    sizes = {"full": np.asarray([[6e6]]), "grouped": np.asarray([[1.25e6]])}
    record = record_claim(tmp_path, measured(tmp_path, store, recipe, "smaller", sizes, "weight_bytes"))
    (contrast,) = record["contrasts"]
    assert contrast["effect"] == contrast["low"] == contrast["high"] == pytest.approx(4.8)
    assert record["exact"] and record["verdict"] == "reproduced" and record["data"]["dataset"] == "docstrings"
    drawing = (tmp_path / RECORDS / "times.svg").read_text(encoding="utf-8")
    assert "4.8 times reproduced" in drawing and ">5 times<" in drawing
    row = next(line for line in (tmp_path / PAGE).read_text(encoding="utf-8").splitlines() if "qbert" in line)
    assert "| weight bytes ↓ |  | times | grouped 1,250,000; full 6,000,000 | 4.8 times (required: at least 4) |" in row


def write_tables(root: Path, name: str) -> Prepared:
    """A prepared dataset with two examples in each table."""
    tables = {one: root / f"{name}.{one}.parquet" for one in TABLES}
    for path in tables.values():
        parquet.write_table(pyarrow.table({"text": ["one", "two"]}), path)
    digests = {one: hashlib.md5(f"{name}/{one}".encode()).hexdigest() for one in tables}
    return Prepared(
        name=name, language="en", family="text_classification", families={}, folder=root, tables=tables,
        digests=digests, outputs={}, labels=["a", "b"], summary={}, verdict={},
    )  # fmt: skip


def publish(
    store: Store, step: Step, sample: str, rows: Mapping[str, np.ndarray], without: Mapping[str, np.ndarray]
) -> None:
    """The artifact of a step: of the comparison the sample of its models, of any other how large its model is."""
    work = store.workspace(step.fingerprint)
    if step.name == COMPARISON:
        write_samples(
            {key_of(sample, stage, seed): one for stage, one in rows.items() for seed in (0, 1)}
            | {key_of(sample, name, 0): one for name, one in without.items()},
            work / SAMPLES,
        )
    number = 1 + list(RIGHT).index(step.name) if step.name in RIGHT else 0
    if store.get(step.fingerprint) is not None:
        return
    store.publish(
        Provenance(
            fingerprint=step.fingerprint, recipe=step.recipe, stage=step.name, kind=str(step.stage.kind),
            seed=step.seed, identity=dict(step.identity), parents=dict(step.parents), data=dict(step.data), files={},
            result={"parameters": number * 1000, "tokens": number * 10, "steps": number * 5},
            environment=Environment(
                python="3", platform="", packages={}, commit=None, started="2026-01-01T00:00:00", seconds=60.0
            ),
        )
    )  # fmt: skip


def answers(right: int) -> np.ndarray:
    """Statistics of a model that classifies the first `right` examples of `EXAMPLES` rightly."""
    gold = ["a", "b"] * (EXAMPLES // 2)
    given = [one if index < right else "ab".replace(one, "") for index, one in enumerate(gold)]
    return TaskFamily.default().statistics(gold, given, ["a", "b"])
