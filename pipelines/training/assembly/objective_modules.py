"""Modules that objectives own: they train with the network, are in its checkpoints, and are saved beside it.

objectives/[<line>/]<objective>.safetensors, for the next stage with the same objective; the model's own weights never
include them
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.opening import line_network
from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Companion
from pipelines.recipe.lines import line_views
from pipelines.recipe.starts import Untrained

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

    from pipelines.recipe.job import Job

FOLDER = "objectives"
"""Subfolder of a model folder for the parameters of objectives."""

log = logging.getLogger(__name__)


def build_modules(
    job: Job, network: PreTrainedModel, companions: Mapping[str, Mapping[str, Companion]]
) -> dict[str, dict[str, nn.Module]]:
    """Line → objective → the module that it owns, for all that own one.

    The weights are those that the start of the stage was saved with, where they have the same shapes, else random ones
    from torch's global generator. Raises RecipeError for a damaged file, and for two objectives of one name.
    """
    start = None if job.start is None or isinstance(job.stage.start, Untrained) else job.start / FOLDER
    modules: dict[str, dict[str, nn.Module]] = {}
    for line, view in line_views(job.stage).items():
        student = line_network(network, line).config
        teacher = next((one.network.config for one in companions[line].values() if not one.trains), None)
        modules[line] = {}
        for objective in view.objective:
            shapes = None if teacher is None else (NetworkShape.of(student), NetworkShape.of(teacher))
            if shapes and objective.needs_teacher and (unfit := objective.unfit(*shapes)) is not None:
                raise RecipeError(f"stage {job.stage_name}: objective {objective.name}: {unfit}")
            module = objective.build(student, teacher)
            if module is None:
                continue
            if objective.name in modules[line]:
                raise RecipeError(f"objective {objective.name}: it owns parameters, so a stage can name it only once")
            if start is not None and (saved := start / line / f"{objective.name}.safetensors").is_file():
                _load(module, saved)
            modules[line][objective.name] = module.train()
    return modules


def save_modules(modules: Mapping[str, nn.Module], out: Path, line: str = "") -> None:
    """Write the parameters of every module of a line under `out`."""
    from safetensors.torch import save_file

    for name, module in modules.items():
        (out / FOLDER / line).mkdir(parents=True, exist_ok=True)
        weights = {key: value.detach().cpu().contiguous() for key, value in module.state_dict().items()}
        save_file(weights, out / FOLDER / line / f"{name}.safetensors")


def _load(module: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise RecipeError(f"{path}: damaged or not a safetensors file ({error})") from None
    shapes = {key: value.shape for key, value in module.state_dict().items()}
    if shapes != {key: value.shape for key, value in weights.items()}:
        # another teacher, or other options: what was learned belongs to neither
        log.warning("%s: its parameters have other shapes than this stage's objective, which begins anew", path)
        return
    module.load_state_dict(weights)
