"""The flow `data`: bring a dataset up to date and show the result."""

from __future__ import annotations

from prefect import flow, get_run_logger
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows.process.run_name import dataset_name
from pipelines.safety.redaction import redacted_errors
from tasks.datasets.lock import data_in_use
from tasks.datasets.planning import resolve_request
from tasks.datasets.preparation import prepare_dataset
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment


class DataConfig(BaseModel):
    """The dataset of params.yaml to prepare."""

    model_config = ConfigDict(extra="forbid")

    dataset: str | None = Field(None, description="A dataset of params.yaml; its default when empty.")


def _run_name() -> str:
    config = DataConfig.model_validate(flow_run.parameters.get("config") or {})
    return f"data of {dataset_name(config.dataset)}"


@flow(name="data", flow_run_name=_run_name, validate_parameters=True)
def data(config: DataConfig = DataConfig()) -> dict[str, str]:  # noqa: B008  # Prefect shows the default in its form
    """Prepare a dataset: pin, collect, clean, deduplicate, decontaminate, select, split, validate, card.

    Returns the md5 of its tables. Raises the CursusError of the failing step; nothing trains on a dataset that failed
    here.
    """
    root = project_root()
    prepare_environment(root)
    with redacted_errors():
        dataset = resolve_request(root, config.dataset, None, (), False).dataset
        with data_in_use(dataset, root, lambda: prepare_dataset(dataset, root), _notify) as prepared:
            return prepared.digests


def _notify(line: str) -> None:
    get_run_logger().warning(line)
