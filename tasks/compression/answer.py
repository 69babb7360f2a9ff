"""The answer to a request to compress: the form to serve, chosen from what was measured, in a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.judging.front import Choice, ServedForm, choose
from pipelines.judging.limits import Limits
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.store import Store
from pipelines.networks.folder import CONFIGURATION, ONNX, SAFETENSORS
from pipelines.reports.elements.front import draw_front, front_file
from pipelines.reports.sections.compression import decision
from tasks.compression.request import CompressionRequest
from tasks.datasets.planning import store_folder

COMPRESSED = "compressed"
"""Folder of a project with the models that were chosen."""
KEPT = "compression.json"
"""Record in the kept folder: what it is, and why it was chosen."""
PICTURE = "compression.svg"
"""Drawing in the kept folder, and next to the report."""
ANY_COSINE, ANY_LOSS = -1.0, 2.0
"""Limits of an export that refuse nothing: the form was measured on the whole test table before it was chosen."""


@dataclass(frozen=True)
class Measured:
    """What was measured of the routes over a model."""

    forms: tuple[ServedForm, ...]
    """The teacher as it is first."""
    metric: str
    fingerprints: dict[str, str]
    """Stage → its model."""
    left_out: dict[str, str]
    """What was not measured → the reason."""

    @classmethod
    def read(cls, store: Store, evaluation: str) -> Measured:
        """From an evaluation, by its fingerprint. Raises DataError where it is not in the store."""
        artifact = store.get(evaluation)
        if artifact is None:
            raise DataError("the measurement of the routes is not in the store; run the same `cursus compress` again")
        document = json.loads((artifact.folder / EVALUATION).read_text(encoding="utf-8"))
        section = next(one for one in document["sections"].values() if "forms" in one)
        parents = artifact.provenance.parents.items()
        models = {role.removeprefix("subject:").rpartition("@")[0]: fingerprint for role, fingerprint in parents}
        forms = tuple(map(ServedForm.read, section["forms"]))
        return cls(forms, section["metric"], models, section["left_out"])

    def choose(self, limits: Limits) -> Choice:
        return choose(self.forms, limits)

    def sentence(self, limits: Limits, choice: Choice) -> str:
        return decision(self.forms, self.metric, limits, choice)

    def picture(self, limits: Limits, choice: Choice) -> str:
        """The text of the drawing as a file of its own."""
        return front_file(draw_front(self.forms, self.metric, limits, choice.form))


def destination_of(root: Path, compression: CompressionRequest, to: str | None) -> Path:
    """The folder of the chosen model: `to`, or one that is named after the teacher."""
    return Path(to).absolute() if to else root / COMPRESSED / compression.fingerprint[:12]


def keep(
    root: Path,
    measured: Measured,
    choice: Choice,
    limits: Limits,
    destination: Path,
    notify: Callable[[str], None] = lambda line: None,
) -> None:
    """Write the chosen form into the folder `destination`, which `cursus predict --model` opens; nothing is done where
    it is there already.

    Raises DataError where the folder holds something else.
    """
    form = choice.form
    fingerprint = measured.fingerprints[form.stage]
    record: dict[str, Any] = {
        "fingerprint": fingerprint,
        "runtime": form.runtime,
        "within": str(limits),
        "decision": measured.sentence(limits, choice),
        "measured": asdict(form),
    }
    kept = _kept(destination)
    if (kept.get("fingerprint"), kept.get("runtime")) == (fingerprint, form.runtime):
        write_text_atomically(destination / KEPT, _json(record))
        write_text_atomically(destination / PICTURE, measured.picture(limits, choice))
        return
    _refuse_occupied(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}-") as scratch:
        folder = Path(scratch) / "model"
        _write_model(root, fingerprint, form.runtime, folder, notify)
        write_text_atomically(folder / KEPT, _json(record))
        write_text_atomically(folder / PICTURE, measured.picture(limits, choice))
        if destination.exists():
            os.replace(destination, Path(scratch) / "before")
        os.replace(folder, destination)


def _write_model(root: Path, fingerprint: str, runtime: str, out: Path, notify: Callable[[str], None]) -> None:
    """Write a model of the store in the format of a runtime into the folder `out`."""
    from pipelines.serving.exporting.export import ExportLimits, export
    from pipelines.serving.runtimes import reference_runtime
    from tasks.models.exporting import material_of, source_of

    stored = Store(store_folder(root)).folder(fingerprint)
    if (stored / ONNX).is_file():
        _copy(stored, out, ONNX)
        return
    with tempfile.TemporaryDirectory(prefix="cursus-task-") as scratch:
        source = source_of(root, fingerprint, None, Path(scratch))
        if runtime == reference_runtime():
            _copy(source.folder, out, SAFETENSORS)
            return
        limits = ExportLimits(ANY_COSINE, ANY_LOSS, rounds=5, only=(runtime,))
        data = material_of(root, source, None)
        export(source.folder, out, data, limits, model=source.title, fingerprint=fingerprint, report_progress=notify)


def _copy(source: Path, out: Path, weights: str) -> None:
    """Copy the configuration, the tokenizer and the file `weights` of a stage's folder into the new folder `out`."""
    out.mkdir()
    for name in (*CONFIGURATION, weights):
        if (source / name).is_file():
            shutil.copyfile(source / name, out / name)


def _kept(folder: Path) -> dict[str, Any]:
    """The record of a folder that was kept; empty where there is none."""
    try:
        record: dict[str, Any] = json.loads((folder / KEPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record


def _refuse_occupied(destination: Path) -> None:
    if destination.exists() and not (destination / KEPT).is_file() and any(destination.iterdir()):
        raise DataError(f"{destination}: holds files that are no compressed model; name another folder with --to")


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"
