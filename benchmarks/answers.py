"""Duration of `cursus predict`, with and without a server of the model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from benchmarks.checkouts import ROOT, cursus, users_shell
from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.record import Goal, Measured
from benchmarks.harness.turns import median
from benchmarks.serving import CHECKPOINT

PARAMS = "datasets:\n  docs:\n    language: en\n"
SERVED, ALONE = "cursus predict, a server up", "cursus predict, no server"


class Answers(Benchmark):
    """The command from its start to its end, in a project of its own."""

    name = "answers"
    what = "`cursus predict` of one text by a classifier on MiniLM-L6, with `cursus serve` up for it, and without."
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure=SERVED, at_most=1, unit="s"),)

    def unavailable(self) -> str | None:
        return missing(CHECKPOINT, extra="minilm")

    def measure(self, setting: Setting) -> Measured:
        model = classifier(setting.folder("model"))
        project = setting.folder("project")
        (project / "params.yaml").write_text(PARAMS, encoding="utf-8")

        def answered() -> float:
            return cursus(project, "predict", "--model", str(model), "How are two arrays multiplied?", code=ROOT)

        rounds = 2 if setting.quick else 9
        alone = [answered() for _ in range(rounds)]
        with served(project, model):
            answered()  # the server's first answer warms it up
            through = [answered() for _ in range(rounds)]
        return Measured(figures=(median(SERVED, through, "s"), median(ALONE, alone, "s")))


def classifier(folder: Path) -> Path:
    """The shipped encoder with a layer of random weights for three labels."""
    import importlib.util

    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    spec = importlib.util.find_spec(CHECKPOINT)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent / "model"
    torch.manual_seed(0)
    labels = {0: "array", 1: "string", 2: "file"}
    network = AutoModelForSequenceClassification.from_pretrained(
        source, trust_remote_code=False, id2label=labels, label2id={name: number for number, name in labels.items()}
    )
    network.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, trust_remote_code=False).save_pretrained(folder)
    return folder


@contextmanager
def served(project: Path, model: Path) -> Iterator[None]:
    """`cursus serve` of a model while the context lasts, from when it answers."""
    environment = {**users_shell(), "CURSUS_ROOT": str(project), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cursus", "serve", str(model), "--port", "0"]
    with subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if not any(line.startswith("Page") for line in iter(process.stdout.readline, "")):
                raise RuntimeError(f"cursus serve ended with status {process.wait()} before it answered")
            yield
        finally:
            process.terminate()
