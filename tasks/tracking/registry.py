"""MLflow's model registry: the registered models of a project, each version tagged with where it came from.

    reviews-text-classification@candidate    the final model of an execution, packed for `mlflow models serve`
    reviews-encoder@candidate                the backbone it was fine-tuned from, a Hugging Face folder

Names are those of `tasks.tracking.names`. An artifact that is already registered keeps its version; only the alias
moves.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.components import did_you_mean
from pipelines.errors import CursusError
from pipelines.lineage.locks import Lock
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.models.extracting import answering_lines
from pipelines.recipe.final_models import ANSWERING_KINDS
from tasks.environment import state_folder
from tasks.tracking.backfill import ensure_run
from tasks.tracking.names import answering_name, backbone_name, dataset_of, description
from tasks.tracking.packing import save_packed
from tasks.tracking.recorder import Recorder
from tasks.tracking.tracked_values import PARENT, TrackedStep

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CANDIDATE = "candidate"
WARNING = "cursus.warning"
"""Tag of a version that is not surely above its baselines: a sentence that says which."""
REFERENCE = re.compile(r"(?:models:/)?(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>[^/@]+))?")


class Registry:
    """The registered models of the MLflow that `recorder` writes to. Every method raises what MLflow raises."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def register_final(
        self,
        store: Store,
        answering: Provenance | None,
        backbone: Provenance | None,
        scores: Mapping[str, float],
        warning: str | None = None,
        about: str | None = None,
    ) -> dict[str, str]:
        """Register the final model of an execution and the backbone that it continues; model name to version.

        `scores` become tags of the final model's version, and so does `warning`: why it is not surely above its
        baselines. `about` is the version's description, in Markdown.
        """
        versions, root = {}, self.recorder.root
        if answering is not None:
            name = answering_name(root, store, answering)
            versions[name] = self.register(name, answering, store, scores, warning, about)
        if backbone is not None:
            name = backbone_name(root, store, backbone)
            versions[name] = self.register(name, backbone, store, {})
        return versions

    def register(
        self,
        name: str,
        provenance: Provenance,
        store: Store,
        scores: Mapping[str, float],
        warning: str | None = None,
        about: str | None = None,
    ) -> str:
        """Register an artifact as the candidate of `name` and return its version, whose tags hold `scores` and
        `warning`, and whose description is `about`."""
        client = self.recorder.client
        version = self.ensure_version(name, provenance, store)
        for score, value in scores.items():
            client.set_model_version_tag(name, version, f"cursus.score.{score}", f"{value:.4f}")
        if warning is not None:
            client.set_model_version_tag(name, version, WARNING, warning)
        elif WARNING in client.get_model_version(name, version).tags:
            client.delete_model_version_tag(name, version, WARNING)
        if about is not None:
            client.update_model_version(name, version, description=about)
        client.set_registered_model_alias(name, CANDIDATE, version)
        return version

    def ensure_version(self, name: str, provenance: Provenance, store: Store) -> str:
        """The version of `name` for an artifact, created if there is none yet. No alias moves."""
        # runs that waited for the same step register its model at the same moment: one of them creates the version
        turn = Lock.take(state_folder(self.recorder.root) / "locks" / "registry", wait=True)
        assert turn is not None
        try:
            return self._ensure_version(name, provenance, store)
        finally:
            turn.release()

    def _ensure_version(self, name: str, provenance: Provenance, store: Store) -> str:
        client = self.recorder.client
        folder = store.root / provenance.fingerprint
        known = {model.name for model in client.search_registered_models()}
        if name not in known:
            client.create_registered_model(name, description=description(store, provenance))
        version = self.version_of(name, provenance.fingerprint)
        if version is None:
            run = ensure_run(self.recorder, provenance, folder)
            if provenance.kind in ANSWERING_KINDS:
                model = self._pack(name, provenance, store, run)
            else:
                model = self.recorder.model_of(provenance.fingerprint) or self.recorder.log_model(
                    name, run, folder, TrackedStep.of(provenance).tags(), provenance.kind
                )
            made = client.create_model_version(
                name,
                f"models:/{model}",
                run,
                tags=_tags(store, provenance) | _task_tags(folder),
                model_id=model,
                await_creation_for=0,
            )
            version = str(made.version)
        return version

    def fingerprint_at(self, name: str, alias: str) -> str | None:
        """The fingerprint of the version that `alias` points to; None without such a model, alias or tag."""
        (model,) = self.recorder.client.search_registered_models(f"name = '{name}'") or [None]
        version = model.aliases.get(alias) if model is not None else None
        if version is None:
            return None
        return self.recorder.client.get_model_version(name, str(version)).tags.get("cursus.fingerprint")

    def resolve(self, reference: str) -> tuple[str, str]:
        """Resolve `reviews-encoder`, `reviews-encoder@candidate` or `models:/reviews-encoder/1`.

        A bare name means its candidate. Returns the full reference and the fingerprint. Raises CursusError when there
        is no such model, version or alias.
        """
        from mlflow.exceptions import MlflowException

        parts = REFERENCE.fullmatch(reference)
        names = [model.name for model in self.recorder.client.search_registered_models()]
        if parts is None or parts["name"] not in names:
            known = did_you_mean(parts["name"], names) if parts and names else " None is registered yet: `cursus run`."
            raise CursusError(f"no registered model is called {reference!r}.{known}")
        try:
            version = self._named(parts["name"], parts["version"], parts["alias"] or CANDIDATE)
        except MlflowException:
            versions = [str(known.version) for known in self._versions(parts["name"])]
            raise CursusError(
                f"{parts['name']} has no version or alias {parts['version'] or parts['alias'] or CANDIDATE!r}. "
                f"Versions: {', '.join(versions) or 'none'}"
            ) from None
        fingerprint = version.tags.get("cursus.fingerprint")
        if fingerprint is None:
            raise CursusError(
                f"models:/{parts['name']}/{version.version} was not registered by cursus: it has no fingerprint"
            )
        return f"models:/{parts['name']}/{version.version}", fingerprint

    def fingerprints(self) -> set[str]:
        """The fingerprints of all versions of all registered models."""
        models = self.recorder.client.search_registered_models()
        versions = [version for model in models for version in self._versions(model.name)]
        return {version.tags["cursus.fingerprint"] for version in versions if "cursus.fingerprint" in version.tags}

    def _named(self, name: str, version: str | None, alias: str) -> ModelVersion:
        client = self.recorder.client
        return client.get_model_version(name, version) if version else client.get_model_version_by_alias(name, alias)

    def _versions(self, name: str) -> list[ModelVersion]:
        return list(self.recorder.client.search_model_versions(f"name = '{name}'"))

    def version_of(self, name: str, fingerprint: str) -> str | None:
        """The version of `name` with this fingerprint; None when there is none."""
        for version in self._versions(name):
            if version.tags.get("cursus.fingerprint") == fingerprint:
                return str(version.version)
        return None

    def _pack(self, name: str, provenance: Provenance, store: Store, run: str) -> str:
        """Log a model that MLflow can serve and return its id."""
        with tempfile.TemporaryDirectory(dir=state_folder(self.recorder.root)) as temporary:
            packed = Path(temporary) / "model"
            save_packed(store.folder(provenance.fingerprint), packed)
            tags = {
                **{
                    f"{tag}.served" if tag == "cursus.fingerprint" else tag: value
                    for tag, value in _tags(store, provenance).items()
                },
                "cursus.packed": "true",
            }
            return self.recorder.log_model(name, run, packed, tags, "answering")


def _tags(store: Store, provenance: Provenance) -> dict[str, str]:
    """Those that people filter by; the record has everything else."""
    step = TrackedStep.of(provenance)
    own = {name: value for name, value in step.tags().items() if not name.startswith(PARENT)}
    return {**own, "cursus.dataset": dataset_of(store, provenance)}


def _task_tags(folder: Path) -> dict[str, str]:
    """The tasks of a model that answers several, each with its family."""
    lines = answering_lines(folder)
    tasks = ", ".join(f"{name} ({line.family.name})" for name, line in lines.items() if line.family is not None)
    return {"cursus.tasks": tasks} if tasks else {}
