"""The registry: the models a project offers under a name, each version tagged with where it came from.

    cursus-classifier@candidate    the last classifier of an execution, packed so that `mlflow models serve` answers
    cursus-encoder@candidate       the last encoder before fine-tuning, a Hugging Face folder

An artifact that is registered already keeps its version; only the alias moves.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.components import did_you_mean
from pipelines.errors import CursusError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from tasks.environment import state_folder
from tasks.recorder import Recorder
from tasks.tracked_values import TrackedStep
from tasks.tracking import Tracker, survives

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CLASSIFIER = "cursus-classifier"
ENCODER = "cursus-encoder"
CANDIDATE = "candidate"
DESCRIPTIONS = {
    CLASSIFIER: "A text classifier that answers with a label and the probability of every label.",
    ENCODER: "An encoder after its last pre-training stage: a Hugging Face folder to fine-tune from.",
}
SERVING = ("mlflow", "numpy", "pandas", "pydantic", "tokenizers", "transformers")
"""What a served classifier needs, and onnxruntime or torch."""
REFERENCE = re.compile(r"(?:models:/)?(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>[^/@]+))?")


class Registry:
    """The registered models of the MLflow that `tracker` records to."""

    def __init__(self, tracker: Tracker) -> None:
        self.recorder: Recorder = tracker.recorder
        self.failure = tracker.failure

    @survives
    def register_final(
        self, store: Store, provenances: Sequence[Provenance], scores: Mapping[str, float]
    ) -> dict[str, str]:
        """Register what an execution offers, given its steps in the order they ran; model name to version.

        The classifier is the last compressed model, else the first seed of the last fine-tuning; the encoder is the
        last model trained on plain text. `scores` become tags of the classifier's version.
        """
        versions = {}
        classifier, encoder = final_models(provenances)
        if classifier is not None:
            versions[CLASSIFIER] = self.register(CLASSIFIER, classifier, store, scores)
        if encoder is not None:
            versions[ENCODER] = self.register(ENCODER, encoder, store, {})
        return versions

    def register(self, name: str, provenance: Provenance, store: Store, scores: Mapping[str, float]) -> str:
        """Offer an artifact as the candidate of `name`; its version. Raises whatever MLflow raises."""
        client = self.recorder.client
        folder = store.root / provenance.fingerprint
        known = {model.name for model in client.search_registered_models()}
        if name not in known:
            client.create_registered_model(name, description=DESCRIPTIONS[name])
        version = self._version_of(name, provenance.fingerprint)
        if version is None:
            run = self.recorder.recorded(provenance.fingerprint) or self.recorder.record(provenance, folder)
            if name == CLASSIFIER:
                model = self._pack(provenance, folder, run)
            else:
                model = self.recorder.model_of(provenance.fingerprint) or self.recorder.log_model(
                    name, run, folder, TrackedStep.of(provenance).tags(), provenance.kind
                )
            made = client.create_model_version(
                name, f"models:/{model}", run, tags=_tags(provenance), model_id=model, await_creation_for=0
            )
            version = str(made.version)
        for score, value in scores.items():
            client.set_model_version_tag(name, version, f"cursus.score.{score}", f"{value:.4f}")
        client.set_registered_model_alias(name, CANDIDATE, version)
        return version

    def resolve(self, reference: str) -> tuple[str, str]:
        """What `cursus-classifier`, `cursus-classifier@candidate` or `models:/cursus-classifier/1` names.

        A bare name is its candidate. Answers the full reference and the fingerprint. Raises CursusError where there is
        no such model, version or alias.
        """
        from mlflow.exceptions import MlflowException

        parts = REFERENCE.fullmatch(reference)
        names = [model.name for model in self.recorder.client.search_registered_models()]
        if parts is None or parts["name"] not in names:
            known = did_you_mean(parts["name"], names) if parts and names else " None is registered yet: `cursus run`."
            raise CursusError(f"no registered model is called {reference!r}.{known}")
        try:
            found = self._named(parts["name"], parts["version"], parts["alias"] or CANDIDATE)
        except MlflowException:
            versions = [str(version.version) for version in self._versions(parts["name"])]
            raise CursusError(
                f"{parts['name']} has no version or alias {parts['version'] or parts['alias'] or CANDIDATE!r}. "
                f"Versions: {', '.join(versions) or 'none'}"
            ) from None
        fingerprint = found.tags.get("cursus.fingerprint")
        if fingerprint is None:
            raise CursusError(
                f"models:/{parts['name']}/{found.version} was not registered by cursus: it has no fingerprint"
            )
        return f"models:/{parts['name']}/{found.version}", fingerprint

    def _named(self, name: str, version: str | None, alias: str) -> ModelVersion:
        client = self.recorder.client
        return client.get_model_version(name, version) if version else client.get_model_version_by_alias(name, alias)

    def _versions(self, name: str) -> list[ModelVersion]:
        return list(self.recorder.client.search_model_versions(f"name = '{name}'"))

    def _version_of(self, name: str, fingerprint: str) -> str | None:
        for version in self._versions(name):
            if version.tags.get("cursus.fingerprint") == fingerprint:
                return str(version.version)
        return None

    def _pack(self, provenance: Provenance, folder: Path, run: str) -> str:
        """The id of a model that MLflow can serve: the artifact's folder, our code, and nothing pickled."""
        with warnings.catch_warnings():
            # MLflow warns about its own type hints when this module of its is first imported
            warnings.filterwarnings("ignore", category=UserWarning, module="mlflow")
            import mlflow.pyfunc
        from mlflow.models import ModelSignature
        from mlflow.types import ColSpec, DataType, Schema
        from mlflow.types.schema import Map

        # a list hint as the signature would refuse data frames over HTTP; this takes both
        answer = Schema([ColSpec(DataType.string, "label"), ColSpec(Map(DataType.double), "probabilities")])
        signature = ModelSignature(inputs=Schema([ColSpec(DataType.string, "text")]), outputs=answer)
        with tempfile.TemporaryDirectory(dir=state_folder(self.recorder.root)) as aside:
            packed = Path(aside) / "model"
            mlflow.pyfunc.save_model(
                packed,
                python_model=str(_source("tasks.serving")),
                artifacts={"model": str(folder)},
                code_paths=[str(_source("pipelines").parent)],
                pip_requirements=_requirements(folder),
                signature=signature,
                input_example={"text": ["How to solve a linear system."]},
            )
            tags = {
                **{
                    f"{tag}.served" if tag == "cursus.fingerprint" else tag: value
                    for tag, value in _tags(provenance).items()
                },
                "cursus.packed": "true",
            }
            return self.recorder.log_model(CLASSIFIER, run, packed, tags, "classifier")


def final_models(provenances: Sequence[Provenance]) -> tuple[Provenance | None, Provenance | None]:
    """The classifier and the encoder that steps, in the order they ran, end in; None where there is no such step."""
    compressed = [step for step in provenances if step.kind == "compress"]
    tuned = [step for step in provenances if step.kind == "finetune"]
    encoders = [step for step in provenances if step.kind in ("pretrain", "adapt_domain", "adapt_task")]
    classifier = compressed[-1] if compressed else None
    if classifier is None and tuned:
        classifier = min((step for step in tuned if step.stage == tuned[-1].stage), key=lambda step: step.seed)
    return classifier, encoders[-1] if encoders else None


def _tags(provenance: Provenance) -> dict[str, str]:
    step = TrackedStep.of(provenance)
    return {**step.tags(), "cursus.dataset": step.dataset or "none"}


def _source(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def _requirements(folder: Path) -> list[str]:
    engine = "onnxruntime" if (folder / "model.onnx").exists() else "torch"
    # a local build's suffix (+cpu) is of this machine, not of the model
    return [f"{name}=={importlib.metadata.version(name).split('+')[0]}" for name in (*SERVING, engine)]
