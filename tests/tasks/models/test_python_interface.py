"""The Python interface on a small store: models by every kind of name, their predictions, their lineage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cursus
from tasks.decisions.journal import PromotionJournal
from tasks.decisions.record import PromotionDecision, now
from tests.steps import ROOT
from tests.tasks.conftest import LABELS, TEXTS, Builder
from tests.tasks.records.test_comparisons import TRUTH, answers, execution

PARAMS = """
default_dataset: docs
datasets:
  docs:
    language: en
    general: [{documentation: general}]
    domain: [{documentation: domain}]
    task: {documentation: scipy, labels_per_class: 20}
    recipe: regime
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a tracking database: nothing here needs MLflow."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "params.yaml").write_text(PARAMS, encoding="utf-8")
    monkeypatch.setenv("CURSUS_ROOT", str(root))
    return root


@pytest.fixture
def made(project: Path, classifier_folder: Path) -> dict[str, str]:
    return {name: step.fingerprint for name, step in Builder(project, classifier_folder).regime().items()}


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import sys, cursus; print(*{'torch', 'transformers', 'prefect', 'mlflow', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_model_predicts_by_fingerprint_and_from_its_folder(
    made: dict[str, str], classifier_folder: Path, project: Path
) -> None:
    model = cursus.load(made["classify@1"][:12])
    assert (model.fingerprint, model.task, model.labels) == (made["classify@1"], "text_classification", tuple(LABELS))
    assert model.columns == {"text": "string"}
    predictions = model.predict([TEXTS[0], {"text": TEXTS[1]}])
    assert [one.answer in LABELS for one in predictions] == [True, True]
    for one in predictions:
        assert one.probabilities is not None and set(one.probabilities) == set(LABELS)
        assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert one.answer == max(one.probabilities, key=one.probabilities.__getitem__)
    folder = cursus.load(classifier_folder)
    assert folder.fingerprint is None and folder.predict([TEXTS[0]])[0].answer == predictions[0].answer
    assert model.predict([]) == []


def test_a_dataset_and_an_alias_name_its_champion(made: dict[str, str], project: Path, classifier_folder: Path) -> None:
    with pytest.raises(cursus.CursusError, match="no model of the dataset 'docs' is champion"):
        cursus.load("docs@champion")
    decision = PromotionDecision(
        at=now(), action="promoted", model="docs-text-classification", alias="champion", fingerprint=made["small"],
        verdict=None, decided_by="Ada", reason="a test", evidence=None, champion=made["small"], former=None,
    )  # fmt: skip
    PromotionJournal(Builder(project, classifier_folder).store).add(decision)
    assert cursus.load("docs@champion").fingerprint == made["small"]
    assert cursus.lineage("docs@champion").fingerprint == made["small"]


def test_lineage_is_the_tree_and_its_records(made: dict[str, str]) -> None:
    ancestry = cursus.lineage(made["int8"])
    assert list(ancestry.records) == [
        made[name] for name in ("general", "domain", "task", "classify@0", "small", "int8")
    ]
    assert str(ancestry).startswith(f"int8 {made['int8']}\n") and "└─ int8 ◀" in str(ancestry)
    assert ancestry.records[made["classify@0"]].parents == {"start": made["task"]}


def test_executions_are_compared_with_the_first(project: Path, classifier_folder: Path) -> None:
    builder = Builder(project, classifier_folder)
    test, other = builder.table("test", TRUTH), builder.table("other", TRUTH[1:])
    for name, wrong, table in (("aaaa", 50, test), ("bbbb", 20, test), ("cccc", 20, other)):
        execution(builder, name, [answers(wrong, 0)], table)
    compared = cursus.compare("aaaa", "bbbb", "cccc")
    first, second, third = compared.executions
    assert [one[-4:] for one in compared.executions] == ["aaaa", "bbbb", "cccc"]
    (difference,) = compared.differences[second]
    assert difference.verdict == "better" and difference.interval.value == pytest.approx(30 / 120)
    assert not compared.differences[third] and "different test examples" in compared.unpaired[third]
    assert set(compared.parameters) == set(compared.scores) == {first, second, third}
    assert compared.parameters[first]["recipe"] == "regime" and compared.scores[first]
    for references, sentence in ((["aaaa"], "two executions"), (["aaaa", "aaa"], "twice"), (["aaaa", "zz"], "no exec")):
        with pytest.raises(cursus.CursusError, match=sentence):
            cursus.compare(*references)


def test_mistakes_are_one_sentence(made: dict[str, str], tmp_path: Path) -> None:
    model = cursus.load(made["small"])
    with pytest.raises(cursus.CursusError, match="got one text; write predict"):
        model.predict(TEXTS[0])
    with pytest.raises(cursus.CursusError, match="got one example; write predict"):
        model.predict({"text": TEXTS[0]})
    with pytest.raises(cursus.CursusError, match="example 2: the column 'text' is missing"):
        model.predict([TEXTS[0], {"words": "none"}])
    for given, sentence in (("\udcff", "half of a surrogate pair"), ({"text": b"bytes"}, "expected a text")):
        with pytest.raises(cursus.CursusError, match=f"example 1: the column 'text' holds .*{sentence}"):
            model.predict([given])
    with pytest.raises(cursus.CursusError, match="give the folder of a finished stage"):
        cursus.load(made["report"])
    with pytest.raises(cursus.CursusError, match="this process works on the project"):
        cursus.load(root=tmp_path / "another")
    with pytest.raises(cursus.CursusError, match="no run has made a model"):
        cursus.load()
    with pytest.raises(cursus.CursusError, match="not prepared"):
        cursus.dataset(prepare=False)
    with pytest.raises(cursus.CursusError, match="there is no recipe 'regmie'"):
        cursus.run("regmie")
