"""What sides had in common is counted from the records of their training, and nothing else is called equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.lineage.provenance import DataSource, Environment, FileDigest, Provenance
from pipelines.lineage.results import METRICS
from pipelines.lineage.store import Artifact
from tasks.records.fairness import differing_settings, fairness_record, fairness_text, training_record

STAGE = {"optimizer": {"lr": 1e-4, "name": "adamw"}, "budget": {"batch_texts": 8, "epochs": 5}, "objective": ["ce"]}
EXAMPLES = {"train": 20, "test": 10}


def artifact(folder: Path, name: str, seed: int = 0, parents: dict[str, str] | None = None, **changes: Any) -> Artifact:
    """A trained model that read `tokens` in `steps`; its fingerprint is made of its name."""
    path = folder / f"{name}{seed}"
    path.mkdir()
    losses = [{"step": step, "train/loss": 3 / step} for step in range(1, 31)]
    (path / METRICS).write_text("".join(json.dumps(line) + "\n" for line in losses))
    values = {"tokens": 100, "steps": 6, "kind": "finetune", "stage": STAGE, "untrained": False} | changes
    provenance = Provenance(
        fingerprint=fingerprint_of(name, seed), recipe="r", stage=name, kind=values["kind"], seed=seed,
        identity={"stage": values["stage"], "untrained": values["untrained"]}, parents=parents or {},
        data={f"{name[0]}_table": DataSource(digest="d", path="data/prepared/x/train")},
        files={METRICS: FileDigest(sha256="c" * 64, bytes=3)},
        result={"tokens": values["tokens"], "steps": values["steps"], "parameters": 7},
        environment=Environment(
            python="3", platform="", packages={}, commit="c0", started="2026-01-01T00:00:00", seconds=2.0
        ),
    )  # fmt: skip
    return Artifact(path, provenance)


def fingerprint_of(name: str, seed: int) -> str:
    return (name.encode().hex() + str(seed)).ljust(64, "0")[:64]


def test_early_stopping_shows_in_tokens_steps_and_epochs(tmp_path: Path) -> None:
    early = [artifact(tmp_path, "early", seed, tokens=100 + seed, steps=6) for seed in (0, 1)]
    full = [artifact(tmp_path, "entire", seed, tokens=250, steps=15) for seed in (0, 1)]
    trained = [training_record(models, {}, EXAMPLES) for models in (early, full)]
    assert trained[0]["of_each_seed"] == {
        "seed": [0, 1], "tokens": [100, 101], "steps": [6, 6], "epochs": [2.0, 2.0], "seconds": [2.0, 2.0]
    }  # fmt: skip
    record = {"fairness": fairness_record(trained, [7, 7], [STAGE, STAGE])}
    text = fairness_text(record)
    assert text == "equal: seeds, data, parameters, rate; not: tokens 100.5 / 250; steps 6 / 15; epochs 2 / 5"
    assert json.loads(json.dumps(record)) == record


def test_equal_sides_are_called_equal(tmp_path: Path) -> None:
    models = [training_record([artifact(tmp_path, name)], {}, EXAMPLES) for name in ("even", "else")]
    assert fairness_text({"fairness": fairness_record(models, [7, 7], [STAGE, STAGE])}) == (
        "equal: seeds, data, tokens, steps, epochs, parameters, rate"
    )


def test_what_stages_before_read_counts_but_not_a_shape(tmp_path: Path) -> None:
    general = artifact(tmp_path, "general", tokens=5000, kind="pretrain")
    domain = artifact(tmp_path, "domain", tokens=3000, kind="adapt_domain", parents={"start": general.fingerprint})
    everything = {one.fingerprint: one for one in (general, domain)}
    tuned = artifact(tmp_path, "tuned", parents={"start": domain.fingerprint})
    scratch = artifact(tmp_path, "scratch", parents={"start": domain.fingerprint}, untrained=True)
    trained = [training_record([one], everything, EXAMPLES) for one in (tuned, scratch)]
    assert [one["before"]["tokens"] for one in trained] == [8000, 0]
    assert trained[0]["before"]["stages"] == ["domain", "general"]
    assert set(trained[0]["tables"]) == {"t_table", "d_table", "g_table"} and set(trained[1]["tables"]) == {"s_table"}
    text = fairness_text({"fairness": fairness_record(trained, [7, 7], [STAGE, STAGE])})
    assert "tokens before 8,000 / 0" in text and "tables d_table+g_table+t_table / s_table" in text
    assert "data" not in text.partition(";")[0]


def test_a_curve_keeps_its_end(tmp_path: Path) -> None:
    curve = training_record([artifact(tmp_path, "long")], {}, EXAMPLES)["curves"]
    points = curve["of_the_first_seed"]["points"]
    assert len(points) <= 12 and points[-1] == [30, 0.1] and curve["sha256"] == ["c" * 64]


def test_settings_differ_by_key_and_parts_as_a_whole() -> None:
    other = {**STAGE, "optimizer": {"lr": 2e-4, "name": "adamw"}, "budget": {"batch_texts": 8, "epochs": 3}}
    assert differing_settings([STAGE, other]) == ["optimizer", "budget.epochs"]
    assert differing_settings([STAGE, {**STAGE, "objective": []}, STAGE]) == ["objective"]
    assert differing_settings([STAGE, dict(STAGE)]) == []


@pytest.mark.parametrize(("tokens", "text"), [
    (20, "equal: tokens, parameters, seeds (tokens and parameters only"),
    (40, "equal: parameters, seeds; not: tokens 20 / 10 (tokens and parameters only"),
])  # fmt: skip
def test_old_records_are_marked_with_what_they_do_not_know(tokens: int, text: str) -> None:
    side = {"fingerprints": ["a", "b"], "parameters": 7}
    old = {"effect": {}, "system": {**side, "tokens": tokens}, "baseline": {**side, "tokens": 20}}
    assert fairness_text(old).startswith(text)
