"""A lineage is made again from its records alone; what differs is found at the first stage, with the reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from pipelines.corpora.shards.digests import dvc_digest
from pipelines.errors import DataError, StoreError
from pipelines.judging.subjects import Subject
from pipelines.lineage.differences import NOTHING
from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import RECORD, DataSource, Provenance
from pipelines.lineage.store import Artifact, Store
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Step
from pipelines.training.ranks.run import run
from tasks.reproduction.record import Reproduction, StageComparison, reproduction_folder
from tasks.reproduction.reproduce import Remake, compare, generations, rebuild, together, warnings
from tasks.stages.steps import provenance_of
from tests.steps import library_of, plan_of

RECIPE = """\
name: tiny
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 400}
    backbone:
      name: transformer
      architecture: bert
      dims: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32}
    corruption: token_mask
    head: masked_lm
    objective: masked_lm
    strategy: full
    budget: {tokens: 3072, batch_tokens: 1024, length: 32}
  classify:
    kind: finetune
    start: general
    corpus: task
    corruption: []
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    budget: {epochs: 1, length: 32, batch_texts: 12}
    seeds: [1, 0]
  report:
    kind: evaluate
    start: classify
    corpus: task
    suite: [scores, {name: footprint, stages: [classify], rounds: 2}]
"""
DATA = "data/prepared/small"


def publish(step: Step, tables: dict[str, Path], store: Store, root: Path) -> Artifact:
    """Compute a step and publish it, as a run does."""
    folders = {role: store.folder(name) for role, name in step.parents.items()}
    out = store.workspace(step.fingerprint)
    job = Job(
        fingerprint=step.fingerprint, recipe=step.recipe, stage_name=step.label, stage=step.stage, seed=step.seed,
        language="en", family=step.family, start=folders.get("start"),
        subjects=tuple(
            Subject(
                stage=role.removeprefix("subject:").partition("@")[0], seed=int(role.partition("@")[2]), folder=folder,
                fingerprint=folder.name, answers="classify" in role,
            )
            for role, folder in folders.items() if role.startswith("subject:")
        ),
        tables={name: tables[name] for name in step.data}, out=out, runtime=Runtime(),
    )  # fmt: skip
    result = run(job)
    (out / "result.json").unlink()
    return store.publish(provenance_of(job, step, result, "2026-01-01T00:00:00+00:00", 1.0, root))


@pytest.fixture(scope="module")
def made(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with prepared tables, and a store with the whole lineage of the tiny recipe."""
    root = tmp_path_factory.mktemp("reproduced")
    (root / DATA).mkdir(parents=True)
    own = {name: Path(shutil.copy(path, root / DATA)) for name, path in tables.items()}
    (root / DATA / "summary.json").write_text('{"language": "en"}')
    sources = {name: DataSource(digest=dvc_digest(path), path=f"{DATA}/{path.name}") for name, path in own.items()}
    (root / "recipes").mkdir()
    store = Store(root / "data" / "store")
    for step in plan_of(library_of(root / "recipes", tiny=RECIPE), "tiny", sources).steps:
        publish(step, own, store, root)
    shutil.rmtree(root / "recipes")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy, to be tampered with."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def named(store: Store, stage: str) -> str:
    """The fingerprint of a stage, of any of its seeds."""
    return [record.fingerprint for record in store.all() if record.stage == stage][-1]


def made_again(root: Path, stage: str) -> list[StageComparison]:
    """What `cursus reproduce` does, without its flow."""
    store, other = Store(root / "data" / "store"), Store(root / "again")
    found: list[StageComparison] = []
    for generation in generations(rebuild(root, store, named(store, stage))):
        done: dict[str, Artifact] = {}
        for remake in (remake for group in together(generation) for remake in group):
            done[remake.step.fingerprint] = publish(remake.step, dict(remake.tables), other, root)
        found += [compare(remake, done.get(remake.step.fingerprint), store, 1.0) for remake in generation]
        if any(one.outcome == "differs" for one in found):
            break
    return found


def change(root: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Tamper with the record of an artifact, and seal it again, as whoever meant it would."""
    path = root / "data" / "store" / name / RECORD
    record = json.loads(path.read_bytes())
    edit(record)
    path.write_text(Provenance.model_validate(record).sealed().to_json())


def first(found: Iterable[StageComparison]) -> StageComparison:
    return next(one for one in found if one.outcome == "differs")


def test_a_whole_lineage_is_made_again_byte_for_byte(made: Path) -> None:
    """The recipe is gone: the stages, seeds, parents in their order, tables and threads are all in the records."""
    found = made_again(made, "report")
    assert [(one.stage, one.outcome) for one in found] == [
        ("general", "identical"), ("classify@1", "identical"), ("classify@0", "identical"), ("report", "identical"),
    ]  # fmt: skip
    again = Store(made / "again")
    assert {record.fingerprint for record in again.all()} == {
        record.fingerprint for record in Store(made / "data" / "store").all()
    }, "the same identities: an artifact made again would be a hit"
    shutil.rmtree(again.root)


def test_a_changed_weight_is_found_and_so_is_a_changed_record(root: Path) -> None:
    store = Store(root / "data" / "store")
    change(root, named(store, "classify"), lambda record: record["files"]["model.safetensors"].update(sha256="0" * 64))
    found = made_again(root, "classify")
    assert [one.outcome for one in found] == ["identical", "differs"]
    assert list(first(found).files) == ["model.safetensors"] and first(found).files["model.safetensors"].startswith(
        "000"
    )
    assert "the stored file equals the reproduced one, so its recorded digest was changed" in first(found).reasons[0]


def test_another_seed_is_found_in_a_record_that_contradicts_itself_and_in_one_that_does_not(root: Path) -> None:
    store = Store(root / "data" / "store")
    name = named(store, "general")
    change(root, name, lambda record: record.update(seed=7))
    (only,) = made_again(root, "general")
    assert (
        only.outcome == "differs" and "its seed differs from that in its identity" in only.reasons[0] and not only.files
    )
    change(root, name, lambda record: record["identity"].update(seed=7))
    (only,) = made_again(root, "general")
    assert "its fingerprint is not that of its identity" in only.reasons[0]
    # whoever forges the name as well is found out by computing
    record = json.loads((store.root / name / RECORD).read_bytes())
    forged = fingerprint(record["identity"])
    (store.root / name).rename(store.root / forged)
    change(root, forged, lambda record: record.update(fingerprint=forged))
    (only,) = made_again(root, "general")
    assert only.reasons == [NOTHING] and {"metrics.jsonl", "model.safetensors"} <= only.files.keys()


def test_changed_data_is_the_reason_at_the_first_stage_that_read_it(root: Path) -> None:
    path = root / DATA / "train.parquet"
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.slice(1), path)
    store = Store(root / "data" / "store")
    remakes = rebuild(root, store, named(store, "classify"))
    (warned,) = warnings(remakes, root)
    assert warned.startswith("the table train has changed: md5 ") and "(classify@" in warned
    found = made_again(root, "classify")
    assert [one.outcome for one in found] == ["identical", "differs"]
    assert first(found).reasons[0].startswith("the table train has changed: md5 ")
    assert "model.safetensors" in first(found).files


def test_what_is_recorded_of_the_machine_and_the_code_is_a_reason(root: Path) -> None:
    store = Store(root / "data" / "store")

    def elsewhere(record: dict[str, Any]) -> None:
        record["identity"]["code"] = "0123456789abcdef"
        record["environment"]["packages"]["torch"] = "2.12.1"
        record["environment"]["device"] = "another processor avx2"
        record["environment"]["runtime"]["devices"] = 2
        record["files"]["config.json"]["sha256"] = "1" * 64

    name = named(store, "general")
    before = rebuild(root, store, name)[0].record
    change(root, name, elsewhere)
    (remake,) = rebuild(root, store, name)
    told = warnings([remake], root)
    assert told[0].startswith("the code of its parts has changed: 01234567 then, ") and told[0].endswith("(general)")
    assert told[1].startswith("torch 2.12.1 then, 2.") and "another device: another processor avx2 then, " in told[2]
    made = Artifact(store.folder(name), before)
    compared = compare(replace(remake, contradiction=None), made, store, 1.0)
    assert compared.files.keys() == {"config.json"} and "devices: 2 then, 1 here" in compared.reasons


def test_what_cannot_be_made_again_is_refused_before_anything_is_computed(root: Path) -> None:
    store = Store(root / "data" / "store")
    general = named(store, "general")
    (root / DATA / "general.parquet").rename(root / "moved.parquet")
    with pytest.raises(
        DataError, match=r"general.parquet: does not exist any more.*`cursus data small`.*Nothing was computed"
    ):
        rebuild(root, store, named(store, "classify"))
    (root / "moved.parquet").rename(root / DATA / "general.parquet")
    for path in ("../outside.parquet", "/etc/passwd"):
        change(root, general, lambda record, path=path: record["data"]["general"].update(path=path))
        with pytest.raises(StoreError, match="which is not in the project"):
            rebuild(root, store, general)
    change(root, general, lambda record: record["data"]["general"].update(path=f"{DATA}/general.parquet"))
    change(root, general, lambda record: record["identity"]["stage"].update(objective=["of_another_time"]))
    with pytest.raises(StoreError, match="cannot be reproduced by this version: .*of_another_time.* check that out"):
        rebuild(root, store, general)


def test_a_reproduction_goes_on_in_its_folder_and_in_no_other(tmp_path: Path) -> None:
    store, model = Store(tmp_path / "store"), "a" * 64
    stages = [StageComparison(stage="general", recipe="tiny", fingerprint=model)]
    assert reproduction_folder(store, model, tmp_path / "new") == tmp_path / "new"
    chosen = reproduction_folder(store, model, None)
    chosen.mkdir(parents=True)
    result = Reproduction(model="m", fingerprint=model, folder=chosen, stages=stages)
    result.write()
    assert reproduction_folder(store, model, None) == reproduction_folder(store, model, chosen) == chosen, (
        "it was stopped"
    )
    result.put(stages[0].model_copy(update={"outcome": "differs"}))
    result.write()
    assert reproduction_folder(store, model, None) not in (chosen, tmp_path), "evidence is kept"
    with pytest.raises(StoreError, match="is not empty"):
        reproduction_folder(store, model, chosen)
    with pytest.raises(StoreError, match="is not empty"):
        reproduction_folder(store, "b" * 64, tmp_path)


def test_steps_of_a_generation_are_made_side_by_side_only_where_they_were_computed_alike(made: Path) -> None:
    store = Store(made / "data" / "store")
    remakes = rebuild(made, store, named(store, "report"))
    seeds = [remake for remake in remakes if remake.record.stage == "classify"]
    assert {len(group) for group in together(seeds)} <= {1, 2}
    alone = [seeds[0], on_threads(seeds[1], 64)]
    assert [len(group) for group in together(alone)] == [1, 1]


def on_threads(remake: Remake, threads: int) -> Remake:
    record = remake.record
    environment = record.environment.model_copy(update={"runtime": {**record.environment.runtime, "threads": threads}})
    return replace(remake, record=record.model_copy(update={"environment": environment}))
