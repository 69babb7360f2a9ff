"""What cannot be compared is refused with the reason, before anything is computed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from pipelines.errors import CursusError, DataError, RecipeError
from pipelines.judging.evaluations.stage import PREDICTIONS
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.store import Artifact
from tasks.datasets.prepared import Prepared
from tasks.decisions.journal import PromotionJournal
from tasks.decisions.record import PromotionDecision, now
from tasks.promotion.contest import Contest, check_predictions, judging, open_contest, refuse_other_items
from tasks.promotion.facts import lineage_evidence
from tasks.promotion.settings import PromotionSettings
from tests.tasks.conftest import LABELS, TEXTS, Builder
from tests.tasks.models.test_default import executed

MODEL = "docs-text-classification"


def crowned(builder: Builder, champion: Artifact) -> None:
    decision = PromotionDecision(
        at=now(),
        action="promoted",
        model=MODEL,
        alias="champion",
        fingerprint=champion.fingerprint,
        verdict="GO",
        decided_by="a test",
        reason="the first",
        evidence=None,
        champion=champion.fingerprint,
        former=None,
    )
    PromotionJournal(builder.store).add(decision)


def contest_of(root: Path, builder: Builder, candidate: Artifact, **options: Any) -> Contest:
    return open_contest(root, builder.store, candidate.fingerprint, "champion", **options)


@pytest.fixture
def train(builder: Builder) -> DataSource:
    return builder.table("train", TEXTS * 4)


@pytest.fixture
def prepared(root: Path, builder: Builder, train: DataSource) -> Prepared:
    """The dataset that the tables of `builder` are, as DVC would have it."""
    folder = root / "data" / "prepared" / "docs"
    sources = {"train": train, **{name: builder.table(name, TEXTS) for name in ("validation", "test")}}
    tables = {name: folder / f"{name}.parquet" for name in sources}
    digests = {name: source.digest for name, source in sources.items()}
    return Prepared("docs", "en", "text_classification", {}, folder, tables, digests, {}, LABELS, {}, {})


def test_a_first_candidate_has_no_champion_and_that_is_no_error(
    root: Path, builder: Builder, train: DataSource
) -> None:
    model = builder.step("classify", "finetune", data={"train": train})
    contest = contest_of(root, builder, model)
    assert contest.model == MODEL and contest.champion is None and contest.alias_state.champion is None


def test_where_no_model_is_named_the_candidate_is_that_of_the_latest_run_on_the_dataset(
    root: Path, builder: Builder, train: DataSource
) -> None:
    model = builder.step("classify", "finetune", data={"train": train})
    later = builder.step("later", "finetune", data={"train": train})
    executed(root, "2026-11-01", model.fingerprint)
    executed(root, "2026-11-02", later.fingerprint, dataset="news")
    latest = open_contest(root, builder.store, None, "champion")
    assert latest.candidate.record.fingerprint == later.fingerprint
    chosen = open_contest(root, builder.store, None, "champion", dataset="docs")
    assert chosen.candidate.record.fingerprint == model.fingerprint
    with pytest.raises(CursusError, match="no run on the dataset 'doc' has made a model.*Did you mean 'docs'"):
        open_contest(root, builder.store, None, "champion", dataset="doc")


def test_models_of_other_datasets_labels_and_tasks_are_refused(
    root: Path, builder: Builder, train: DataSource, classifier_folder: Path, tmp_path: Path
) -> None:
    champion = builder.step("classify", "finetune", data={"train": train})
    crowned(builder, champion)
    # two datasets whose models have one name
    files = "general: a.txt, domain: b.txt, task: {train: c.tsv, test: d.tsv}"
    (root / "params.yaml").write_text(f"datasets: {{news: {{model: {MODEL}, {files}}}}}\n")
    elsewhere = DataSource(digest="0" * 32, path="data/prepared/news/train.parquet")
    other = builder.step("other", "finetune", data={"train": elsewhere})
    with pytest.raises(DataError, match="one was trained on news, the other on docs"):
        contest_of(root, builder, other)
    assert contest_of(root, builder, other, compare=False).champion is None

    builder.model = shutil.copytree(classifier_folder, tmp_path / "labels")
    config = json.loads((builder.model / "config.json").read_text())
    config["id2label"]["2"] = "probability"
    (builder.model / "config.json").write_text(json.dumps(config))
    labelled = builder.step("labelled", "finetune", data={"train": train})
    with pytest.raises(DataError, match="only the candidate has probability and only the champion has stats"):
        contest_of(root, builder, labelled)

    body = builder.step("general", "pretrain")
    with pytest.raises(DataError, match="answers no task and cannot be evaluated"):
        contest_of(root, builder, body)
    for alias in ("candidate", "former_champion", "Champion!"):
        with pytest.raises(RecipeError, match="is no alias for a promotion"):
            open_contest(root, builder.store, champion.fingerprint, alias)
    with pytest.raises(CursusError, match="no registered model is called"):
        open_contest(root, builder.store, "cursus-nothing", "champion")


def test_other_test_items_are_refused_unless_the_model_was_judged_on_todays(
    root: Path, builder: Builder, prepared: Prepared, train: DataSource
) -> None:
    before = DataSource(digest="1" * 32, path=train.path)
    champion = builder.step("old", "finetune", data={"train": before})
    crowned(builder, champion)
    contest = contest_of(root, builder, builder.step("classify", "finetune", data={"train": train}))
    with pytest.raises(
        DataError, match="was never evaluated on today's test items: some of them may be in its training data"
    ):
        refuse_other_items(contest, prepared, builder.store)
    test = DataSource(digest=prepared.digests["test"], path="data/prepared/docs/test.parquet")
    builder.step("report", "evaluate", parents={"subject:old@0": champion.fingerprint}, data={"test": test})
    refuse_other_items(contest, prepared, builder.store)


def test_missing_predictions_are_refused(root: Path, builder: Builder, prepared: Prepared, train: DataSource) -> None:
    champion = builder.step("first", "finetune", data={"train": train})
    crowned(builder, champion)
    contest = contest_of(root, builder, builder.step("classify", "finetune", data={"train": train}))
    size = len(TEXTS)
    rows = [{"stage": stage, "index": index} for stage in ("champion", "candidate") for index in range(size)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), root / PREDICTIONS)
    check_predictions(root, prepared, contest, "task")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows[1:]), root / PREDICTIONS)
    with pytest.raises(DataError, match=f"the champion .* has {size - 1} predictions for {size} test items"):
        check_predictions(root, prepared, contest, "task")


def test_the_judging_step_is_identified_by_what_it_compares(
    root: Path, builder: Builder, prepared: Prepared, train: DataSource
) -> None:
    champion, other = (builder.step(name, "finetune", data={"train": train}) for name in ("first", "second"))
    crowned(builder, champion)
    contest, settings = contest_of(root, builder, other), PromotionSettings()
    (step,) = judging(contest, prepared, settings, root).values()
    assert step.name == "judge" and step.fingerprint == judging(contest, prepared, settings, root)["task"].fingerprint
    assert list(step.parents) == ["subject:champion@0", "subject:candidate@0"], "the champion is what is compared with"
    alone = replace(contest, champion=None)
    assert judging(alone, prepared, settings, root)["task"].fingerprint != step.fingerprint
    chinese = PromotionSettings.model_validate({"criteria": {"robustness": {"attacks": ["homophones"]}}})
    with pytest.raises(RecipeError, match=r"params.yaml: promotion\.criteria: homophones"):
        judging(contest, prepared, chinese, root)
    asks = PromotionSettings.model_validate({"criteria": {"quality": {"metric": "f1"}}})
    with pytest.raises(RecipeError, match=r"promotion\.criteria\.quality: the task has no metric 'f1'"):
        judging(contest, prepared, asks, root)


def test_a_lineage_with_a_hole_or_a_flipped_bit_is_told(builder: Builder) -> None:
    made = builder.regime()
    model = made["int8"].fingerprint
    whole = lineage_evidence(builder.store, model)
    assert not whole.flaws and whole.steps == 6 and set(whole.commits.values()) == {"0123abc"}
    weights = made["small"].folder / "model.safetensors"
    data = weights.read_bytes()
    weights.unlink()  # it may be a hard link
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "differs from what was published" in lineage_evidence(builder.store, model).flaws[0]
    shutil.rmtree(made["domain"].folder)
    assert len(lineage_evidence(builder.store, model).flaws) == 1, "what lies behind the damage was believed"
    weights.write_bytes(data)
    assert lineage_evidence(builder.store, model).flaws == (
        f"the ancestor {made['domain'].fingerprint[:12]} is not in the store",
    )
