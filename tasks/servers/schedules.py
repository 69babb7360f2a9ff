"""Schedules of deployments on a Prefect server: what `cursus schedule` adds, lists and removes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipelines.components import did_you_mean
from pipelines.errors import CursusError
from tasks.servers.requests import mistake

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.responses import DeploymentResponse


@dataclass(frozen=True)
class RunSchedule:
    """A schedule of a deployment."""

    deployment: str
    name: str
    when: str
    active: bool
    config: Mapping[str, Any]


def read_schedules(api: str, auth: str | None) -> list[RunSchedule]:
    """All schedules on the server at `api`."""
    with _connected(api, auth) as (_, deployments):
        return [
            RunSchedule(
                deployment=deployment.name,
                name=schedule.slug or str(schedule.id),
                when=_when(schedule.schedule),
                active=bool(schedule.active),
                config=(schedule.parameters or {}).get("config", {}),
            )
            for deployment in deployments.values()
            for schedule in deployment.schedules
        ]


def add_schedule(
    root: Path, api: str, auth: str | None, deployment: str, cron: str, timezone: str, config: Mapping[str, Any]
) -> RunSchedule:
    """Add a schedule, or replace that of the same name; the name is made of the `config` of its runs.

    Raises CursusError for an unknown deployment or time zone, an invalid cron line, and a mistake in the config.
    """
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule

    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        raise CursusError(f"--{first['loc'][0]}: {first['input']!r}: {message}") from None
    with _connected(api, auth) as (client, deployments):
        chosen = _named(deployments, deployment)
        parameters = {"config": dict(config)} if config else {}
        schema = chosen.parameter_openapi_schema or {}
        if (problem := mistake(root, str(chosen.entrypoint), parameters, schema)) is not None:
            raise CursusError(problem)
        slug = _slug(config)
        for known in chosen.schedules:
            if known.slug == slug:
                client.delete_deployment_schedule(chosen.id, known.id)
        created = DeploymentScheduleCreate(schedule=schedule, active=True, parameters=parameters, slug=slug)
        client.create_deployment_schedules(chosen.id, [created])
    return RunSchedule(chosen.name, slug, _when(schedule), True, config)


def remove_schedule(api: str, auth: str | None, deployment: str, name: str) -> None:
    """Remove the schedule `name` of a deployment. Raises CursusError for an unknown one."""
    with _connected(api, auth) as (client, deployments):
        chosen = _named(deployments, deployment)
        known = {schedule.slug or str(schedule.id): schedule for schedule in chosen.schedules}
        if name not in known:
            raise CursusError(f"{deployment} has no schedule {name!r}.{did_you_mean(name, known)}")
        client.delete_deployment_schedule(chosen.id, known[name].id)


@contextmanager
def _connected(api: str, auth: str | None) -> Iterator[tuple[SyncPrefectClient, dict[str, DeploymentResponse]]]:
    """A client of the server at `api`, and its deployments by name."""
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(api, auth_string=auth) as client:
        yield client, {deployment.name: deployment for deployment in client.read_deployments()}


def _named(deployments: Mapping[str, DeploymentResponse], name: str) -> DeploymentResponse:
    if name not in deployments:
        raise CursusError(f"there is no deployment {name!r}.{did_you_mean(name, deployments)}")
    return deployments[name]


def _slug(config: Mapping[str, Any]) -> str:
    """The name of a schedule: what is not left to defaults, `reviews-hour-smoke`."""
    words = [key if value is True else " ".join(value) if isinstance(value, list) else str(value)
             for key, value in config.items()]  # fmt: skip
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-") or "default"


def _when(schedule: Any) -> str:
    cron = getattr(schedule, "cron", None)
    return f"{cron} {schedule.timezone or 'UTC'}" if cron else str(schedule)
