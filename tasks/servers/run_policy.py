"""Which runs this checkout's worker starts: those of the deployments in `prefect.yaml`, exactly as they are there.

Whoever may write to Prefect's API can create deployments and runs. A deployment names the code that is imported and
the steps that are executed before it; a run may override the command, the environment and the folder of its process.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import CursusError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

POOL = "cursus"
PULL_STEP = "prefect.deployments.steps.set_working_directory"


class RefusedRunError(CursusError):
    """A run that this checkout's `prefect.yaml` does not provide for."""


def job_template(root: Path) -> dict[str, Any]:
    """The work pool's template: nothing in it can be overridden by a deployment or a run.

    It has no placeholder; and no `env`, which Prefect would merge with that of a run although the schema has none.
    """
    return {
        "job_configuration": {"stream_output": True, "working_dir": str(root)},
        "variables": {"type": "object", "properties": {}, "additionalProperties": False},
    }


def refusal(root: Path, run: FlowRun, deployment: DeploymentResponse | None, template: dict[str, Any]) -> str | None:
    """Why a run is not started, or None. `template` is that of the pool that the run is in."""
    from ruamel.yaml import YAML

    if deployment is None:
        return "it belongs to no deployment"
    declared = YAML(typ="safe").load(root / "prefect.yaml")["deployments"]
    entrypoints = {one["name"]: one["entrypoint"] for one in declared}
    if deployment.name not in entrypoints or entrypoints[deployment.name] != deployment.entrypoint:
        return f"prefect.yaml has no deployment {deployment.name!r} of {deployment.entrypoint!r}"
    if deployment.pull_steps != [{PULL_STEP: {"directory": str(root)}}]:
        return f"its deployment {deployment.name!r} has steps that prefect.yaml does not have"
    if deployment.job_variables or run.job_variables:
        return "it overrides variables of its process (job_variables)"
    if template != job_template(root):
        return f"the template of the work pool {POOL!r} was changed; `cursus up` restores it"
    return None
