"""The probe stage as a whole: its record, that it is the same twice, and what it refuses before anything computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pipelines.errors import RecipeError
from pipelines.judging.probes.stage import STATISTICS, probe
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import PROBES
from pipelines.recipe.kinds import Kind
from pipelines.recipe.problems import Setting
from tests.pipelines.judging.probes.small_models import job_on, save_model, write_table
from tests.pipelines.training.small_recipe import GENERAL
from tests.small_tasks import DERIVED
from tests.steps import RECIPES, library_of, plan_of


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from tests.small_corpus import documents

    folder = tmp_path_factory.mktemp("trees")
    texts = documents("email", "argparse")[:60]
    rows = [DERIVED["dependency_parsing"](texts, number) for number in range(60)]
    return {
        "train": write_table(folder / "train.parquet", rows[:40]),
        "test": write_table(folder / "test.parquet", rows[40:]),
    }


def test_every_probe_of_a_stage_sees_every_model_and_twice_the_same(tmp_path: Path, trees: dict[str, Path]) -> None:
    folders = {
        "general": [save_model(tmp_path / "0", 0)],
        "domain": [save_model(tmp_path / "1", 1), save_model(tmp_path / "2", 2)],
    }
    probes = [
        "linear",
        {"name": "structural", "epochs": 2},
        {"name": "edge", "epochs": 2},
        {"name": "attention_relations", "least": 1},
    ]
    result = probe(job_on(folders, trees, "dependency_parsing", probes, tmp_path / "once"))
    assert any(name.startswith("probe/structural/uuas/") for name in result.metrics)
    document = json.loads((tmp_path / "once" / PROBES).read_text())
    probe(job_on({"general": folders["general"]}, trees, "dependency_parsing", probes[1:3], tmp_path / "again"))
    again = json.loads((tmp_path / "again" / PROBES).read_text())
    for name, section in again["sections"].items():
        assert section["stages"] == document["sections"][name]["stages"][:1]
    assert list(document["sections"]) == ["linear", "structural", "edge", "attention_relations"]
    for name, section in document["sections"].items():
        assert [(one["stage"], one["seeds"]) for one in section["stages"]] == [("general", [0]), ("domain", [0, 1])]
        assert section["layers"] == ([1, 2] if name == "attention_relations" else [0, 1, 2])
        (change,) = section["changes"]
        for number, layer in enumerate(change["layers"]):
            before, after = (stage["layers"][number] for stage in section["stages"])
            for metric in section["metrics"]:
                assert before[metric]["low"] <= before[metric]["mean"] <= before[metric]["high"]
                assert layer[metric]["difference"] == pytest.approx(
                    after[metric]["mean"] - before[metric]["mean"], abs=2e-6
                )
    arrays = load_file(tmp_path / "once" / STATISTICS)
    right, _, words = arrays["linear/domain@1/layers"][2].sum(0)
    assert right / words == pytest.approx(
        document["sections"]["linear"]["stages"][1]["layers"][2]["accuracy"]["per_seed"][1], abs=1e-6
    )
    assert all(array.dtype == np.float64 for array in arrays.values())


def recipe(tmp_path: Path, stage: str, family: str | None = None, before: str = GENERAL) -> None:
    library_of(tmp_path, mine=before + "  look:\n    kind: probe\n" + stage).load("mine", setting=Setting(family, "en"))


def test_a_probe_stage_is_read(tmp_path: Path) -> None:
    library = library_of(
        tmp_path, mine=GENERAL + "  look: {kind: probe, start: general, probes: linear, budget: {length: 32}}\n"
    )
    found = library.load("mine").stages["look"]
    assert found.kind is Kind.PROBE and found.kind.judges and [one.name for one in found.probes] == ["linear"]


@pytest.mark.parametrize(
    ("stage", "family", "told"),
    [
        ("    start: general\n", None, "needs at least one probe; known: attention_relations, edge"),
        ("    start: general\n    probes: [linear, linear]\n", None, "linear is given twice"),
        ("    probes: linear\n", None, "starts from the stages it probes"),
        ("    start: nowhere\n    probes: linear\n", None, "there is no stage 'nowhere'"),
        (
            "    start: general\n    probes: linear\n    budget: {length: 128}\n",
            None,
            "128 tokens do not fit the 64 positions",
        ),
        (
            "    start: general\n    probes: structural\n    budget: {length: 32}\n",
            "tagging",
            "structural is defined for dependency_parsing; this dataset is tagging; probes that fit: edge, forgetting, "
            "linear",
        ),
        ("    start: general\n    probes: linnear\n", None, "Did you mean 'linear'?"),
    ],
)
def test_what_cannot_be_probed_is_refused_when_the_recipe_is_read(
    tmp_path: Path, stage: str, family: str | None, told: str
) -> None:
    with pytest.raises(RecipeError) as error:
        recipe(tmp_path, stage, family)
    assert told in str(error.value) and "mine.yaml:" in str(error.value)


@pytest.mark.parametrize(
    ("reference", "probes", "told"),
    [
        ("word2vec/general", "linear", "word_vectors) has one vector per word whatever its context"),
        (
            "ulmfit/general",
            "attention_relations",
            "awd_lstm) has a recurrent state, and no attention",
        ),
        ("t5/general", "linear", "linear needs a backbone"),
        ("regime/int8", "linear", "is an exported graph of dynamic_int8, without hidden states"),
        ("regime/report", "linear", "is of kind evaluate and produces no model"),
    ],
)
def test_models_without_what_a_probe_looks_at_are_refused(
    tmp_path: Path, reference: str, probes: str, told: str
) -> None:
    for path in RECIPES.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    stages = f"stages:\n  look: {{kind: probe, start: [{reference}], probes: {probes}, budget: {{length: 64}}}}\n"
    library = library_of(tmp_path, mine=f"name: mine\npaper: arXiv:1909.03368\n{stages}")
    with pytest.raises(RecipeError) as error:
        library.load("mine")
    assert told.removeprefix("linear needs a backbone") in str(error.value)


def test_a_folder_that_is_no_model_is_told_before_anything_is_written(tmp_path: Path, trees: dict[str, Path]) -> None:
    folder = save_model(tmp_path / "0")
    (folder / "model.safetensors").unlink()
    with pytest.raises(RecipeError, match="no model.safetensors"):
        probe(job_on({"general": [folder]}, trees, "dependency_parsing", ["linear"], tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_order_of_the_subjects_and_the_probe_s_keys_are_part_of_a_step_s_identity(tmp_path: Path) -> None:
    names = ("general", "domain")
    data = {name: DataSource(digest=name, path=name) for name in ("general", "domain", "train", "test")}
    made = []
    for number, (start, probes) in enumerate(
        (
            ("general, domain", "linear"),
            ("domain, general", "linear"),
            ("general, domain", "{name: linear, penalty: 2.0}"),
        )
    ):
        look = f"  look: {{kind: probe, start: [{start}], probes: {probes}, budget: {{length: 32}}}}\n"
        text = GENERAL + "  domain: {kind: adapt_domain, start: general, corpus: domain}\n" + look
        found = plan_of(library_of(tmp_path, **{f"mine{number}": text}), f"mine{number}", data)
        step = next(step for step in found.steps if step.name == "look")
        assert set(step.data) == {"train", "test"} and len(step.parents) == len(names)
        made.append(step.fingerprint)
    assert len(set(made)) == 3
