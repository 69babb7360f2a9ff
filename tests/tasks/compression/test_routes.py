"""The shipped routes over finished models: which fit, what is refused, and that nothing finished is computed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import CursusError, RecipeError
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.routes import REPORT, TEACHER, Route, RoutesOver, fitting, read_routes, with_earlier
from pipelines.task_families import TaskFamily
from tasks.compression.finished import finished_model, uncompressed
from tasks.compression.request import SUITE
from tests.steps import RECIPES
from tests.tasks.compression.finished_models import SOURCES, finished

ROUTES = read_routes(RecipeFolders((RECIPES,)))
SETTING = Setting("text_classification", "en", {}, {})


def test_every_shipped_route_fits_a_classifier_and_plans_over_its_finished_lineage(tmp_path: Path) -> None:
    store, made = finished(tmp_path, "regime")
    model = finished_model(store, made["classify@0"])
    library = Library(RECIPES)
    fits, unfit = fitting(model, ROUTES, library, SETTING, SUITE)
    assert not unfit and {one.name for one in fits} == set(ROUTES)
    over = RoutesOver(model, tuple(fits), SUITE)
    steps = plan(over.load(library, SETTING), library, SOURCES, TaskFamily.default(), given=over.given).steps
    known = {step.fingerprint: step for step in steps}
    assert made["classify@0"] in known and known[made["classify@0"]].name == TEACHER
    assert {made[name] for name in ("vectors", "general", "domain", "task")} <= set(known), "its lineage is finished"
    report = next(step for step in steps if step.name == REPORT)
    assert next(iter(report.parents)) == f"subject:{TEACHER}@0", "all scores are compared with the teacher's"
    assert {role.removeprefix("subject:").partition("@")[0] for role in report.parents} == {TEACHER, *ROUTES}
    half = next(step for step in steps if step.name == "half")
    assert half.parents == {"start": made["classify@0"], "teacher": made["classify@0"]}
    assert half.stage.tokenizer == known[made["classify@0"]].stage.tokenizer


def test_what_a_route_computes_depends_on_the_model_and_on_nothing_that_is_beside_it(tmp_path: Path) -> None:
    store, made = finished(tmp_path, "regime")
    library = Library(RECIPES)

    def fingerprint(label: str, *names: str) -> str:
        model = finished_model(store, made[label])
        over = RoutesOver(model, tuple(ROUTES[name] for name in names), SUITE)
        steps = plan(over.load(library, SETTING), library, SOURCES, TaskFamily.default(), given=over.given).steps
        return next(step.fingerprint for step in steps if step.name == "half")

    assert fingerprint("classify@0", "half") == fingerprint("classify@0", "half", "quarter", "bits8", "bits4")
    assert fingerprint("classify@0", "half") != fingerprint("classify@1", "half")


def test_a_route_that_does_not_fit_a_model_is_named_with_the_reason(tmp_path: Path) -> None:
    store, made = finished(tmp_path, "crf", "tagging")
    setting = Setting("tagging", "en", {}, {})
    fits, unfit = fitting(finished_model(store, made["softmax@0"]), ROUTES, Library(RECIPES), setting, SUITE)
    assert {one.name for one in fits} >= {"half_states", "bits8", "bits4"}, "what needs no logits of classes"
    for name, word in {"half": "match_logits", "patient": "cross_entropy", "bilstm": "sequence_classification"}.items():
        assert word in unfit[name] and f"{name}.yaml:" in unfit[name], unfit[name]


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        (
            "small",
            "is itself compressed (select_layers in stage small); compress the model that it was made of: classify",
        ),
        (
            "int8",
            "is itself compressed (dynamic_int8 in stage int8); compress the model that it was made of: classify",
        ),
        ("domain", "was trained on plain text (adapt_domain) and answers no task"),
    ],
)
def test_a_model_that_no_route_starts_from_is_refused(label: str, reason: str, tmp_path: Path) -> None:
    store, made = finished(tmp_path, "regime")
    with pytest.raises(CursusError) as caught:
        finished_model(store, made[label])
    assert reason in str(caught.value) and made[label][:8] in str(caught.value)


@pytest.mark.parametrize("label", ["int8", "small", "classify@0"])
def test_the_model_that_a_compressed_one_was_made_of_is_one_that_routes_start_from(label: str, tmp_path: Path) -> None:
    store, made = finished(tmp_path, "regime")
    whole = uncompressed(store, made[label])
    assert whole.stage == "classify"
    assert finished_model(store, whole.fingerprint).fingerprint == whole.fingerprint


def written(folder: Path, **files: str) -> RecipeFolders:
    (folder / "routes").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / "routes" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return RecipeFolders((folder, RECIPES))


BITS = """\
stages:
  {name}:
    like: teacher
    kind: compress
    start: {start}
    objective: []
    strategy: []
    compression: {{name: group_quantization, bits: {bits}}}
"""


def test_a_route_is_one_file_of_a_project_and_comes_before_a_shipped_one(tmp_path: Path) -> None:
    own = BITS.format(name="own", start="teacher", bits=2)
    routes = read_routes(written(tmp_path, own=own, bits8=BITS.format(name="bits8", start="teacher", bits=4)))
    assert set(routes) == {*ROUTES, "own"} and routes["bits8"].stages["bits8"]["compression"]["bits"] == 4
    assert [one.name for one in with_earlier(ROUTES["half_bits4"], ROUTES)] == ["half", "half_bits4"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("stage: {}\n", "bad.yaml:1: a route has no key 'stage'. Did you mean 'stages'?"),
        ("stages: {other: {}}\n", "bad.yaml:1: a route has a stage of its own name, bad"),
        (
            "description: x\nstages:\n  bad: {}\n  teacher: {}\n",
            "bad.yaml:4: 'teacher' is the name of a stage that every",
        ),
        ("saves: money\nstages:\n  bad: {}\n", "bad.yaml:1: saves: 'money' is unknown; write bytes or time"),
        ("stages:\n  bad: {}\n  half: {}\n", "route 'bad' has a stage 'half' too"),
    ],
)
def test_a_file_that_is_no_route_is_refused_with_its_line(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        read_routes(written(tmp_path, bad=text))
    assert reason in str(caught.value)


def test_a_mistake_in_a_stage_is_reported_with_file_and_line(tmp_path: Path) -> None:
    store, made = finished(tmp_path / "store", "regime")
    text = "description: x\nstages:\n  own:\n    like: teacher\n    start: teacher\n    compresion: select_layers\n"
    own = {"own": Route.read((written(tmp_path, own=text).folders[0]) / "routes" / "own.yaml")}
    fits, unfit = fitting(finished_model(store, made["classify@0"]), own, Library(RECIPES), SETTING, SUITE)
    assert not fits and "own.yaml:6" in unfit["own"] and "compresion" in unfit["own"]
