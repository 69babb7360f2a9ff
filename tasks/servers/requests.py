"""The request of a flow run, checked against params.yaml and the recipes before a process is started for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import CursusError
from pipelines.judging.limits import EXAMPLE, Limits
from tasks.datasets.claim_requests import ClaimRequest
from tasks.datasets.planning import check_stage, lattice_request, load_recipe, resolve_request
from tasks.servers.suggestions import suggested


def mistake(root: Path, entrypoint: str, parameters: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """What is wrong with the parameters of a run of the flow at `entrypoint`, or None.

    `schema` is that of its deployment. What the server has checked is checked again: a user may switch that off, and
    the files may have changed since.
    """
    from prefect.utilities.schema_tools import ValidationError, validate

    check = CHECKS.get(entrypoint)
    try:
        if check is not None:
            check(root, parameters.get("config") or {})
        validate(dict(parameters), dict(schema), raise_on_error=True)
    except CursusError as error:
        return str(error)
    except ValidationError as error:
        return suggested(str(error))
    return None


def _run(root: Path, config: Mapping[str, Any]) -> None:
    names = config.get("dataset"), config.get("recipe"), tuple(config.get("variants") or ())
    recipe = load_recipe(root, resolve_request(root, *names, bool(config.get("smoke"))))
    if config.get("stage") is not None:
        check_stage(recipe, config["stage"])


def _claim(root: Path, config: Mapping[str, Any]) -> None:
    if (name := config.get("claim")) is not None:
        ClaimRequest.resolve(root, name, config.get("data") or (), config.get("variants") or ())


def _lattice(root: Path, config: Mapping[str, Any]) -> None:
    names = config.get("dataset"), config.get("recipe"), config.get("variants") or ()
    seeds, sizes = config.get("seeds"), config.get("sizes") or ()
    load_recipe(root, lattice_request(root, *names, seeds, sizes, bool(config.get("smoke"))))


def _compress(root: Path, config: Mapping[str, Any]) -> None:
    Limits.parse(str(config.get("within") or EXAMPLE))


def _data(root: Path, config: Mapping[str, Any]) -> None:
    resolve_request(root, config.get("dataset"), None, (), False)


CHECKS: Mapping[str, Callable[[Path, Mapping[str, Any]], None]] = {
    "flows.regime.regime": _run,
    "flows.stage.stage": _run,
    "flows.claim.claim": _claim,
    "flows.lattice.lattice": _lattice,
    "flows.compress.compress": _compress,
    "flows.data.data": _data,
}
"""Entry point → check of the configuration."""
