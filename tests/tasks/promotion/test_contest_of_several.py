"""Promotion of models of several tasks: every task is judged, and a loss on one of them is enough to refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.errors import DataError, RecipeError
from pipelines.judging.gate import judge_tasks
from pipelines.judging.gate.evidence import Evidence, LeakageEvidence, LineageEvidence
from pipelines.judging.gate.lineage import LineageCriterion
from pipelines.judging.gate.quality import QualityCriterion
from pipelines.judging.gate.verdict import sentence, verdict
from pipelines.lineage.provenance import DataSource
from tasks.datasets.prepared import Prepared
from tasks.decisions.journal import PromotionJournal
from tasks.decisions.record import PromotionDecision, now
from tasks.promotion.contest import judging, open_contest, refuse_other_items
from tasks.promotion.settings import PromotionSettings
from tests.tasks.answering_folders import line, save_several
from tests.tasks.conftest import LABELS, TEXTS, Builder

TOPIC = line("task", "text_classification", "sequence_classification", tuple(LABELS))
RTE = line("rte", "pair_classification", "sequence_classification", ("no", "yes"))
TAGS = line("names", "tagging", "tagging", ("O", "B-name", "I-name"))
SEVERAL = "docs-several-tasks"
TABLES = ("train", "validation", "test", "rte.train", "rte.validation", "rte.test")


@pytest.fixture
def tables(builder: Builder) -> dict[str, DataSource]:
    return {name: builder.table(name, TEXTS) for name in TABLES}


@pytest.fixture
def prepared(root: Path, tables: dict[str, DataSource]) -> Prepared:
    folder = root / "data" / "prepared" / "docs"
    paths = {name: root / source.path for name, source in tables.items()}
    digests = {name: source.digest for name, source in tables.items()}
    return Prepared("docs", "en", "text_classification", {}, folder, paths, digests, {}, LABELS, {}, {})


def test_every_task_is_judged_and_only_the_same_tasks_compare(
    root: Path,
    builder: Builder,
    classifier_folder: Path,
    tables: dict[str, DataSource],
    prepared: Prepared,
    tmp_path: Path,
) -> None:
    learned = {name: tables[name] for name in ("train", "rte.train")}
    builder.model = save_several(classifier_folder, tmp_path / "both", {"topic": TOPIC, "pairs": RTE})
    champion, candidate = (builder.step(name, "finetune", data=learned) for name in ("first", "share"))
    decision = PromotionDecision(
        at=now(), action="promoted", model=SEVERAL, alias="champion", fingerprint=champion.fingerprint,
        verdict="GO", decided_by="a test", reason="the first", evidence="a" * 64, further_evidence=("b" * 64,),
        champion=champion.fingerprint, former=None,
    )  # fmt: skip
    journal = PromotionJournal(builder.store)
    journal.add(decision)
    assert {"a" * 64, "b" * 64} <= journal.referenced(), "what judged any of its tasks stays in the store"

    contest = open_contest(root, builder.store, candidate.fingerprint, "champion")
    assert contest.model == SEVERAL and set(contest.tasks) == {"task", "rte"}
    refuse_other_items(contest, prepared, builder.store)
    steps = judging(contest, prepared, PromotionSettings(), root)
    assert {task: (step.name, step.stage.corpus) for task, step in steps.items()} == {
        "task": ("judge_task", ("task",)), "rte": ("judge_rte", ("rte",)),
    }  # fmt: skip
    assert set(steps["rte"].data) == {"rte.train", "rte.validation", "rte.test"}
    # a metric that one of the tasks has not
    asks = PromotionSettings.model_validate({"criteria": {"quality": {"metric": "pearson"}}})
    with pytest.raises(RecipeError, match=r"criteria\.quality \(of rte\): the task has no metric 'pearson'"):
        judging(contest, prepared, asks, root)
    changed = {**contest.candidate.tasks}
    changed["rte"] = replace(changed["rte"], train=DataSource(digest="1" * 32, path=tables["rte.train"].path))
    with pytest.raises(DataError, match=r"trained on .*rte\.train\.parquet .* never evaluated on today's test items"):
        refuse_other_items(
            replace(contest, candidate=replace(contest.candidate, tasks=changed)), prepared, builder.store
        )

    builder.model = save_several(classifier_folder, tmp_path / "other", {"topic": TOPIC, "tags": TAGS})
    names = DataSource(digest="2" * 32, path="data/prepared/docs/named/names.train.parquet")
    other = builder.step("other", "finetune", data={"train": tables["train"], "names.train": names})
    with pytest.raises(DataError, match="one answers the tasks names, task, the other the tasks rte, task"):
        open_contest(root, builder.store, other.fingerprint, "champion")

    builder.model = save_several(classifier_folder, tmp_path / "twice", {"topic": TOPIC, "again": TOPIC})
    twice = builder.step("twice", "finetune", data={"train": tables["train"]})
    with pytest.raises(DataError, match="its lines again, topic all answer task"):
        open_contest(root, builder.store, twice.fingerprint, "champion")


def test_a_loss_on_one_task_refuses_a_gain_on_another() -> None:
    def evidence(difference: float) -> Evidence:
        measured = {"difference": difference, "low": difference - 0.001, "high": difference + 0.001}
        scores = {
            "stages": [{"stage": "candidate", "accuracy": {"mean": 0.5, "low": 0.4, "high": 0.6}}],
            "metrics": ["accuracy"],
            "ladder": [{"accuracy": measured}],
        }
        leakage = LeakageEvidence("docs", {}, 0, 0, 50, True)
        return Evidence(("accuracy",), 50, True, (scores,), leakage, LineageEvidence(3, (), {}, None, ""))

    both = {"rte": evidence(-0.2), "topic": evidence(0.3)}
    quality = judge_tasks(QualityCriterion(), both)
    assert [(one.title, one.outcome) for one in quality] == [("quality on rte", "missed"), ("quality on topic", "met")]
    assert verdict(quality) == "NO-GO" and sentence("NO-GO", quality).startswith("NO-GO: quality on rte missed")
    (lineage,) = judge_tasks(LineageCriterion(), both)
    assert lineage.title == "lineage", "what is true of the model is said once"
