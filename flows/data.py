"""The flow `data`: bring a dataset up to date and show the result."""

from __future__ import annotations

from prefect import flow, get_run_logger
from pydantic import BaseModel, ConfigDict, Field

from pipelines.safety.redaction import redacted_errors
from tasks.datasets.lock import data_in_use
from tasks.datasets.preparation import prepare_dataset
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment


class DataConfig(BaseModel):
    """The dataset of params.yaml to prepare."""

    model_config = ConfigDict(extra="forbid")

    dataset: str = Field(default="docstrings", description="An entry under 'datasets:' in params.yaml.")


@flow(name="data", flow_run_name="data {config.dataset}")
def data(config: DataConfig = DataConfig()) -> dict[str, str]:  # noqa: B008  # Prefect shows the default in its form
    """Prepare a dataset: pin, collect, clean, deduplicate, decontaminate, select, split, validate, card.

    Returns the md5 of its tables. Raises the CursusError of the failing step; nothing trains on a dataset that failed
    here.
    """
    root = project_root()
    prepare_environment(root)
    with (
        redacted_errors(),
        data_in_use(config.dataset, root, lambda: prepare_dataset(config.dataset, root), _notify) as prepared,
    ):
        return prepared.digests


def _notify(line: str) -> None:
    get_run_logger().warning(line)
