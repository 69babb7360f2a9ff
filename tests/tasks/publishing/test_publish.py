"""`cursus publish`: a folder that plain transformers opens, with a card of what is on record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from flows.cli.app import app
from pipelines.lineage.provenance import RECORD
from tests.tasks.conftest import LABELS, Builder

OPEN = """
import sys
sys.modules.update(dict.fromkeys(("cursus", "pipelines", "tasks", "flows")))
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1]).eval()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
with torch.no_grad():
    logits = model(**tokenizer(["Solve a linear system."], return_tensors="pt")).logits
print(model.config.id2label[int(logits.argmax())])
"""
SCORE = {"mean": 0.6125, "low": 0.55, "high": 0.675, "per_seed": [0.61, 0.615]}
EVALUATION = {
    "dataset": {},
    "sections": {
        "classification": {
            "metrics": ["accuracy"],
            "examples": 12,
            "stages": [{"stage": "classify", "seeds": [0, 1], "accuracy": SCORE}],
        },
        "baselines": {"baselines": [{"name": "majority", "accuracy": {"mean": 0.3, "low": 0.2, "high": 0.4}}]},
    },
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classifier_folder: Path) -> tuple[Path, dict[str, str]]:
    root = tmp_path / "project"
    root.mkdir()
    (root / "params.yaml").write_text("datasets: {}\n", encoding="utf-8")
    monkeypatch.setenv("CURSUS_ROOT", str(root))
    made = Builder(root, classifier_folder).regime()
    evaluation = made["report"].folder / "evaluation.json"
    evaluation.chmod(0o644)
    evaluation.write_text(json.dumps(EVALUATION), encoding="utf-8")
    (root / "docs" / "claims").mkdir(parents=True)
    for recipe, sentence in (("regime", "Every stage pays."), ("crf", "A claim of another recipe.")):
        claim = {"recipe": recipe, "claim": "pays", "says": sentence, "verdict": "reproduced"}
        (root / "docs" / "claims" / f"{recipe}.json").write_text(json.dumps(claim), encoding="utf-8")
    return root, {name: step.fingerprint for name, step in made.items()}


def publish(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["publish", *arguments])


def test_a_published_model_opens_in_plain_transformers_with_a_card_of_its_record(
    project: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    root, made = project
    out = tmp_path / "published" / "model"
    done = publish(made["classify@1"], str(out), "--title", "Topics", "--licence", "apache-2.0")
    assert done.exit_code == 0, done.output
    assert "opens with AutoModelForSequenceClassification" in done.output
    opened = subprocess.run(
        [sys.executable, "-I", "-c", OPEN, str(out)], cwd="/", capture_output=True, text=True, check=True
    )
    assert opened.stdout.strip() in LABELS

    text = (out / "README.md").read_text(encoding="utf-8")
    header = YAML(typ="safe").load(text.split("---\n")[1])
    assert (header["license"], header["library_name"]) == ("apache-2.0", "transformers")
    assert header["pipeline_tag"] == "text-classification"
    (result,) = header["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "accuracy", "value": 0.6125}]
    assert "| 0.550–0.675 | 12 | 2 |" in text and "training majority" in text
    for line in ("## Intended use", "**Leaks**", "Licences of the data: not stated", f"`{made['general'][:12]}`"):
        assert line in text
    assert all(label in text for label in LABELS) and "AutoModelForSequenceClassification" in text
    assert "- `regime/pays`: Every stage pays. **reproduced**" in text and "of another recipe" not in text
    assert str(root) not in text and "{{" not in text and "{%" not in text

    records = json.loads((out / "lineage.json").read_text(encoding="utf-8"))
    assert [record["fingerprint"] for record in records] == [
        made[name] for name in ("general", "domain", "task", "classify@1")
    ]
    assert not (out / RECORD).exists() and not (out / "metrics.jsonl").exists()
    assert not [path for path in out.parent.iterdir() if path != out], "nothing temporary is left"


def test_what_cannot_be_published_is_one_sentence(
    project: tuple[Path, dict[str, str]], tmp_path: Path, classifier_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project[1]
    (tmp_path / "taken").mkdir()
    refused = {
        "exists already": [made["small"], str(tmp_path / "taken")],
        "no record to make a card of": [str(classifier_folder), str(tmp_path / "new")],
    }
    for sentence, arguments in refused.items():
        done = publish(*arguments)
        assert done.exit_code == 2 and sentence in done.stderr.splitlines()[-1]
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "no-token"))
    command = [sys.executable, "-m", "cursus", "publish", made["small"], "hub:ada/topics"]
    hub = subprocess.run(command, env=os.environ, capture_output=True, text=True)
    assert hub.returncode == 2 and "the hub needs a token" in hub.stderr.splitlines()[-1]
    assert "copying the model" not in hub.stderr, "before anything is copied"
    assert not (tmp_path / "new").exists()
