"""Claims as recipes state them: every form is short to write, and what cannot be measured is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.claims import (
    COMPARISON,
    Measurement,
    claim_on,
    figure_source,
    measurements,
    recipe_of_claim,
)
from pipelines.recipe.kinds import Kind
from pipelines.recipe.plan import JudgedData, plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Recipe
from tests.steps import RECIPES, library_of

STAGES = (RECIPES / "tune_or_not.yaml").read_text(encoding="utf-8").partition("claims:")[0]
GPT = (RECIPES / "gpt.yaml").read_text(encoding="utf-8").partition("claims:")[0]
REGIME = (RECIPES / "regime.yaml").read_text(encoding="utf-8")
LINE = len(STAGES.splitlines()) + 2
"""Line of the first claim in `stated`."""


def stated(claim: str, stages: str = STAGES) -> str:
    """A recipe that makes one claim."""
    return f'{stages}claims:\n  known: {{says: It is., published: "none", {claim}}}\n'


def loaded(folder: Path, claim: str, stages: str = STAGES) -> Recipe:
    folder.mkdir(exist_ok=True)
    return library_of(folder, stating=stated(claim, stages), regime=REGIME).load("stating")


def test_without_a_form_a_claim_is_greater(tmp_path: Path) -> None:
    short = "system: tuned, baseline: frozen_mix, at_least: -0.01, metric: accuracy, data: docstrings"
    long = "greater: {system: tuned, baseline: frozen_mix, at_least: -0.01}, figure: accuracy, data: docstrings"
    one, other = (loaded(tmp_path / str(number), text) for number, text in enumerate((short, long)))
    assert one.claims["known"] == other.claims["known"]
    assert recipe_of_claim(one, "known").stages == recipe_of_claim(other, "known").stages


@pytest.mark.parametrize(
    ("claim", "start"),
    [
        ("in_order: [tuned, frozen_mix, frozen_top], data: docstrings", ("frozen_top", "frozen_mix", "tuned")),
        ("rises_with: [frozen_top, frozen_mix, tuned], data: docstrings", ("frozen_top", "frozen_mix", "tuned")),
        ("times: {system: frozen_top, baseline: tuned, at_least: 1}, figure: bytes, data: docstrings",
         ("tuned", "frozen_top")),
        ("within: {system: frozen_mix, baseline: tuned, margin: 0.01}, data: docstrings", ("tuned", "frozen_mix")),
    ],
)  # fmt: skip
def test_a_comparison_judges_the_best_last(tmp_path: Path, claim: str, start: tuple[str, ...]) -> None:
    recipe = loaded(tmp_path, claim)
    assert recipe_of_claim(recipe, "known").stages[COMPARISON].start == start


def test_the_judge_is_the_one_that_can_judge_the_stages(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, "in_order: [task, domain, general], figure: perplexity, data: docstrings", GPT)
    source = figure_source(recipe, "known", Setting())
    assert (source.judge, source.figure.lower) == ("perplexity", True)
    layer = "greater: {system: tuned, baseline: frozen_top}, figure: linear/layer, by: {name: linear, examples: 40}"
    recipe = loaded(tmp_path / "probed", f"{layer}, data: docstrings")
    judging = recipe_of_claim(recipe, "known").stages[COMPARISON]
    assert judging.kind is Kind.PROBE and judging.probes[0].model_dump()["examples"] == 40
    recipe = loaded(tmp_path / "trained", "greater: {system: frozen_top, baseline: tuned}, figure: training_seconds, "
                    "data: docstrings")  # fmt: skip
    assert COMPARISON not in recipe_of_claim(recipe, "known").stages, "the records of training have it"


def test_bytes_need_no_seeds_and_scores_five(tmp_path: Path) -> None:
    text = "greater: {system: tuned, baseline: frozen_top}, data: docstrings"
    recipe = loaded(tmp_path / "one", f"{text}, figure: bytes")
    assert recipe_of_claim(recipe, "known").stages["tuned"].seeds == (0,)
    recipe = loaded(tmp_path / "five", text)
    assert recipe_of_claim(recipe, "known").stages["tuned"].seeds == (0, 1, 2, 3, 4)
    assert recipe_of_claim(recipe, "known", seeds=2).stages["tuned"].seeds == (0, 1)


def test_a_spread_over_seeds_needs_seeds(tmp_path: Path) -> None:
    text = "steadier: {system: tuned, baseline: frozen_top}, data: docstrings"
    recipe = loaded(tmp_path / "five", text)
    assert recipe_of_claim(recipe, "known").stages["tuned"].seeds == (0, 1, 2, 3, 4)
    with pytest.raises(RecipeError, match="of the form steadier needs 3 seeds, got 2"):
        recipe_of_claim(recipe, "known", seeds=2)
    recipe = loaded(tmp_path / "one", f"{text}, figure: bytes")
    with pytest.raises(RecipeError, match="no seed changes bytes: a claim of the form steadier needs another"):
        recipe_of_claim(recipe, "known")


GAINS = "gains_more: {system: [tuned, frozen_mix], baseline: [tuned, frozen_mix]}"
TRANSFERS = "transfers: {system: tuned, baseline: frozen_mix}"


def test_a_claim_over_two_datasets_is_measured_in_two_parts(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, f"{GAINS}, data: {{system: pairs, baseline: texts}}")
    parts = list(dict.fromkeys(measurements(recipe, recipe.claims["known"]).values()))
    both = ("frozen_mix", "tuned")
    assert parts == [Measurement("pairs", "pairs", "task", both), Measurement("texts", "texts", "task", both)]
    changed = claim_on(recipe.claims["known"], ["system=stsb"])
    assert changed.data == {"system": "stsb", "baseline": "texts"}
    with pytest.raises(RecipeError, match="has no role 'sytem': its roles are system, baseline"):
        claim_on(recipe.claims["known"], ["sytem=stsb"])


def test_what_transfers_is_trained_here_and_judged_there(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, f"{TRANSFERS}, data: {{trained: here, judged: there}}")
    (part,) = dict.fromkeys(measurements(recipe, recipe.claims["known"]).values())
    assert (part.trained, part.judged, part.items) == ("here", "there", "there/task")
    with pytest.raises(RecipeError, match="takes --data trained=NAME --data judged=NAME, got elsewhere"):
        claim_on(recipe.claims["known"], ["elsewhere"])
    names = ("general", "domain", "task_text", "train", "validation", "test")
    here, there = ({name: DataSource(digest=f"{of} {name}", path=f"{of}/{name}") for name in names} for of in "ab")
    library = library_of(tmp_path, stating=stated(f"{TRANSFERS}, data: {{trained: a, judged: b}}"), regime=REGIME)
    found = plan(recipe_of_claim(recipe, "known", 1), library, here, judged_on=JudgedData(there, "zh"))
    for step in found.steps:
        judging = step.name == COMPARISON
        assert {source.path[0] for source in step.data.values()} == ({"b"} if judging else {"a"})
        assert step.language == ("zh" if judging else None)
    same = plan(recipe_of_claim(recipe, "known", 1), library, here)
    assert [one.fingerprint for one in same.steps][:-1] == [one.fingerprint for one in found.steps][:-1]


MT_DNN = (RECIPES / "mt_dnn.yaml").read_text(encoding="utf-8").partition("claims:")[0]


def test_a_stage_of_several_tasks_is_judged_on_that_of_the_others(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, "system: share, baseline: alone_pairs, metric: accuracy, data: docstring_tasks", MT_DNN)
    (part,) = dict.fromkeys(measurements(recipe, recipe.claims["known"]).values())
    assert (part.task, part.stages) == ("pairs", ("alone_pairs", "share"))
    assert recipe_of_claim(recipe, "known").stages[COMPARISON].corpus == ("pairs",)
    other = "greater: {system: share, baseline: share2}, metric: accuracy, data: docstring_tasks"
    stages = MT_DNN.rstrip() + "\n  share2: {like: share}\n"
    assert _refusal(tmp_path, other, stages).endswith(
        "claims.known.task: stage 'share' answers pairs, similarity, task; name the one on which it is judged"
    )
    recipe = loaded(tmp_path, f"{other}, task: pairs", stages)
    assert recipe_of_claim(recipe, "known").stages[COMPARISON].corpus == ("pairs",)


NGRAM = (RECIPES / "ngram.yaml").read_text(encoding="utf-8").partition("claims:")[0]
AGAINST_COUNTS = "times: {system: general, baseline: ngram/trigram, at_least: 1}, figure: perplexity, data: docstrings"


def test_a_baseline_may_be_a_stage_of_another_recipe(tmp_path: Path) -> None:
    back = "system: trigram, baseline: gpt/general, figure: perplexity, data: docstrings"
    counted = stated(back, NGRAM)
    library = library_of(tmp_path, gpt=stated(AGAINST_COUNTS, GPT), ngram=counted)
    recipe = library.load("gpt")
    reduced = recipe_of_claim(recipe, "known")
    assert reduced.stages[COMPARISON].start == ("ngram/trigram", "general")
    names = ("general", "domain", "task_text", "train", "validation", "test")
    data = {name: DataSource(digest=name, path=name) for name in names}
    steps = [(step.recipe, step.name) for step in plan(reduced, library, data).steps]
    assert set(steps) == {("ngram", "trigram"), ("gpt", "general"), ("gpt", COMPARISON)}
    assert steps.count(("ngram", "trigram")) == 1 and steps.count(("gpt", "general")) == 5, "counting draws nothing"
    found = plan(recipe_of_claim(library.load("ngram"), "known", 2), library, data)
    roles = found.steps[-1].parents
    assert list(roles) == ["subject:gpt/general@0", "subject:gpt/general@1", "subject:trigram@0"]
    counts = recipe_of_claim(library.load("ngram"), "known").stages
    assert set(counts) == {"trigram", COMPARISON}, "recipes may compare each other"


def test_a_recipe_that_is_like_another_claims_nothing_by_itself(tmp_path: Path) -> None:
    """Its stages may be others, or fewer."""
    first = REGIME.replace("claims:", "claims:  # of the regime", 1)
    assert "adaptation" in library_of(tmp_path, regime=first).load("regime").claims
    shorter = "like: regime\nstages: {from_general: null, report: null}\n"
    assert library_of(tmp_path, regime=first, shorter=shorter).load("shorter").claims == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("ngram/trigramm", "recipe ngram has no stage 'trigramm'. Did you mean 'trigram'?"),
        ("ngrm/trigram", "there is no recipe 'ngrm'. Did you mean 'ngram'?"),
    ],
)
def test_an_unknown_stage_of_another_recipe_is_refused(tmp_path: Path, wrong: str, message: str) -> None:
    text = stated(AGAINST_COUNTS.replace("ngram/trigram", wrong), GPT)
    with pytest.raises(RecipeError) as refused:
        library_of(tmp_path, stating=text, ngram=NGRAM).load("stating")
    line = len(GPT.splitlines()) + 2
    expected = f"{tmp_path / 'stating.yaml'}:{line}: claims.known.times.baseline: {message}"
    assert str(refused.value).startswith(expected), refused.value


def _refusal(folder: Path, claim: str, stages: str = STAGES) -> str:
    with pytest.raises(RecipeError) as refused:
        loaded(folder, claim, stages)
    return str(refused.value)


REFUSED = {
    "a figure that no judge records": (
        "system: tuned, baseline: frozen_top, figure: perplexty, data: docstrings",
        "known.figure: no judge records 'perplexty'. Did you mean 'perplexity'? Known: accuracy, ",
    ),
    "a metric by its other key": (
        "system: tuned, baseline: frozen_top, metric: acuracy, data: docstrings",
        "known.metric: no judge records 'acuracy'. Did you mean 'accuracy'?",
    ),
    "a figure of other models": (
        "system: tuned, baseline: frozen_top, figure: perplexity, data: docstrings",
        "known.figure: stage 'frozen_top' answers a task, but no evaluation here judges task models",
    ),
    "a judge that does not record the figure": (
        "system: tuned, baseline: frozen_top, figure: bytes, by: scores, data: docstrings",
        "known.by: 'scores' does not record bytes; recorded by: saved_size",
    ),
    "a misspelt option of the judge": (
        "system: tuned, baseline: frozen_top, figure: linear/layer, by: {name: linear, exmples: 4}, data: docstrings",
        "known.by: probe 'linear' has no key 'exmples'. Did you mean 'examples'?",
    ),
    "an unknown stage in a list": (
        "in_order: [tuned, frozen_mx], data: docstrings",
        "known.in_order.1: there is no stage 'frozen_mx'. Did you mean 'frozen_mix'?",
    ),
    "an unknown stage in a form": (
        "times: {system: tned, baseline: frozen_mix, at_least: 2}, data: docstrings",
        "known.times.system: there is no stage 'tned'. Did you mean 'tuned'?",
    ),
    "a list of one": (
        "in_order: [tuned], data: docstrings",
        "known.in_order: claim form 'in_order', stages: a comparison needs at least 2 stages, got tuned",
    ),
    "too few seeds to have a spread": (
        "steadier: {system: tuned, baseline: frozen_mix}, seeds: 2, data: docstrings",
        "known.seeds: steadier compares seeds: give 3 or more, got 2",
    ),
    "a form beside a system": (
        "in_order: [tuned, frozen_mix], system: tuned, data: docstrings",
        "known.system: belongs into in_order: a claim with a form has no system",
    ),
    "two forms": (
        "in_order: [tuned, frozen_mix], rises_with: [tuned, frozen_mix, frozen_top], data: docstrings",
        "known.rises_with: a claim has one form; this one has in_order and rises_with",
    ),
    "no form": (
        "system: tuned, data: docstrings",
        "known: a claim has `system` and `baseline`, or a form: exceeds, falls_with_shift",
    ),
    "a misspelt form": (
        "in_ordr: [tuned, frozen_mix], data: docstrings",
        "known.in_ordr: claim has no key 'in_ordr'. Did you mean 'in_order'?",
    ),
    "an option that the form does not have": (
        "times: {system: tuned, baseline: frozen_mix, at_last: 2}, data: docstrings",
        "known.times: claim form 'times' has no key 'at_last'. Did you mean 'at_least'?",
    ),
    "a figure twice": (
        "system: tuned, baseline: frozen_mix, metric: mcc, figure: mcc, data: docstrings",
        "known.figure: the same as metric: give one of them",
    ),
    "several datasets for a form of one": (
        "system: tuned, baseline: frozen_mix, data: {here: a, there: b}",
        "known.data: greater is about one dataset: give its name",
    ),
    "one dataset for a form of several": (
        f"{TRANSFERS}, data: docstrings",
        "known.data: transfers is about several datasets: give a mapping with the keys trained, judged",
    ),
    "other roles": (
        f"{GAINS}, data: {{pairs: a, texts: b}}",
        "known.data: gains_more has the roles system, baseline, got pairs, texts",
    ),
    "the same gain twice": (
        f"{GAINS}, data: docstrings",
        "known.gains_more: the stage 'tuned' is on both sides: give other stages, or data for system, baseline",
    ),
    "no dataset": ("system: tuned, baseline: frozen_mix", "known: the key 'data' is missing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_claim_that_cannot_be_measured_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    claim, message = REFUSED[name]
    text = _refusal(tmp_path, claim)
    assert text.startswith(f"{tmp_path / 'stating.yaml'}:{LINE}: claims.{message}"), text
    assert "\n" not in text


def test_a_metric_of_another_family_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, "system: tuned, baseline: frozen_top, metric: las, data: docstrings")
    with pytest.raises(RecipeError, match="/known: figure: no judge records 'las' of text_classification"):
        figure_source(recipe, "known", Setting(family="text_classification"))
