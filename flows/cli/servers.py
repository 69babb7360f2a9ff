"""`cursus up`, `deploy`, `schedule` and `down`: the servers of this checkout, and what they launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import handle_errors
from pipelines.errors import CursusError
from pipelines.messages.translation import message
from tasks.environment import project_root

if TYPE_CHECKING:
    from tasks.servers.schedules import RunSchedule

console = Console(highlight=False)


@handle_errors
def up(
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for other machines, too (docs/servers.md).")
    ] = "127.0.0.1",
) -> None:
    """Start the Prefect server, a worker and the MLflow UI on this machine, and print their addresses."""
    root = project_root()
    from tasks.servers.services import up as start

    start(root, host=host)


@handle_errors
def deploy() -> None:
    """Register the deployments of prefect.yaml again, with forms made from params.yaml and recipes/ as they are now."""
    from tasks.servers.access import deploy as register

    api = register(project_root())
    typer.echo(message("registered; the forms are at {address}", address=f"{api.removesuffix('/api')}/deployments"))


@handle_errors
def schedule(
    deployment: Annotated[
        str | None, typer.Argument(help="A deployment of prefect.yaml, for example regime; all schedules without one.")
    ] = None,
    cron: Annotated[str | None, typer.Option(help="When: minute, hour, day, month, weekday, as in crontab.")] = None,
    timezone: Annotated[str, typer.Option(help="The time zone of --cron, for example Europe/Berlin.")] = "UTC",
    dataset: Annotated[
        str | None, typer.Option("--data", help="A dataset of params.yaml; its default without.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="A recipe; the dataset's own without.")] = None,
    variant: Annotated[list[str] | None, typer.Option("--variant", help="A variant of the recipe; repeatable.")] = None,
    stage: Annotated[str | None, typer.Option(help="The stage, of the deployment stage.")] = None,
    claim: Annotated[str | None, typer.Option(help="recipe/claim, of the deployment claim.")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes and budgets.")] = False,
    remove: Annotated[str | None, typer.Option(help="Remove the schedule of this name.")] = None,
) -> None:
    """Run a deployment regularly, on the servers that `cursus up` started; without --cron, list the schedules.

    Example: cursus schedule regime --cron "0 2 * * *" --data reviews
    """
    root = project_root()
    options = {
        "--cron": cron, "--remove": remove, "--data": dataset, "--recipe": recipe, "--variant": variant or None,
        "--stage": stage, "--claim": claim, "--smoke": smoke or None,
    }  # fmt: skip
    _check_options(deployment, [name for name, value in options.items() if value is not None])
    from tasks.servers.access import prefect_access
    from tasks.servers.notification import addresses
    from tasks.servers.schedules import add_schedule, read_schedules, remove_schedule

    api, auth = prefect_access(root)
    if deployment is not None and remove is not None:
        remove_schedule(api, auth, deployment, remove)
        console.print(message("removed  {what}", what=f"{deployment}: {remove}"), markup=False)
        return
    if deployment is None or cron is None:
        _show_schedules([one for one in read_schedules(api, auth) if deployment in (None, one.deployment)])
        return
    on = {"data": [dataset] if dataset else []} if claim is not None else {"dataset": dataset}
    chosen = {"claim": claim, "stage": stage, **on, "recipe": recipe, "variants": variant, "smoke": smoke}
    config = {key: value for key, value in chosen.items() if value}
    added = add_schedule(root, api, auth, deployment, cron, timezone, config)
    console.print(message("scheduled  {what}", what=f"{added.deployment}: {added.name}, {added.when}"), markup=False)
    if not addresses(root):
        line = message("nobody is told if it fails: docs/servers.md shows how to add an address")
        console.print(line, markup=False)


def _check_options(deployment: str | None, used: Sequence[str]) -> None:
    """Refuse options that would be ignored: the command would list schedules, and seem to have added or removed one."""
    if used and deployment is None:
        raise CursusError(f"{used[0]} needs a deployment: `cursus schedule regime {used[0]} …`")
    if "--remove" in used and len(used) > 1:
        other = next(name for name in used if name != "--remove")
        raise CursusError(f"--remove takes no {other}; it names a schedule, as `cursus schedule {deployment}` lists it")
    if used and not {"--cron", "--remove"} & set(used):
        raise CursusError(f"{used[0]} is for a new schedule: add --cron, which says when it runs")


def _show_schedules(schedules: Sequence[RunSchedule]) -> None:
    table = Table(message("deployment"), message("schedule"), message("when"), "", message("request"))
    for one in schedules:
        request = ", ".join(f"{key}: {value}" for key, value in one.config.items())
        table.add_row(one.deployment, one.name, one.when, message("on" if one.active else "off"), request)
    console.print(table)


@handle_errors
def down() -> None:
    """Stop the servers that `cursus up` started."""
    from tasks.servers.services import down as stop

    stop(project_root())
