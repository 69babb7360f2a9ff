"""Links between MLflow's logged models: the models that a model was made from, as tags and as a description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.safety.markdown import inert
from tasks.tracking.tracked_values import TrackedStep, key

if TYPE_CHECKING:
    from tasks.tracking.recorder import Recorder

PARENT_MODEL = "cursus.parent_model."
"""Beginning of the tags with the ids of the models that a model was made from."""
NOTE = "mlflow.note.content"
"""The tag that MLflow shows as a description, in Markdown."""


def parent_model_tags(recorder: Recorder, step: TrackedStep) -> dict[str, str]:
    """Tags of the model that `step` makes; none for a step without parents. Raises what MLflow raises."""
    tags, links = {}, []
    for role, fingerprint in step.parents.items():
        if (model_id := recorder.model_of(fingerprint)) is not None:
            parent = recorder.client.get_logged_model(model_id)
            tags[f"{PARENT_MODEL}{key(role)}"] = model_id
            address = f"#/experiments/{parent.experiment_id}/models/{model_id}"
            links.append(f"- {inert(role)}: [{inert(parent.name)}]({address})")
    return {**tags, NOTE: "\n".join(["Made from:", "", *links])} if links else {}
