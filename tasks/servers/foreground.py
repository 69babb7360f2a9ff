"""One server of a checkout in the foreground, for containers and service managers.

    python -m tasks.servers.foreground prefect --host 0.0.0.0 --port 4200
    python -m tasks.servers.foreground mlflow --host 0.0.0.0 --port 5000
    python -m tasks.servers.foreground deployments          registers prefect.yaml at PREFECT_API_URL, and ends
    python -m tasks.servers.foreground worker

They are the servers of `cursus up`, with the same account and the same checks of who asks; their databases are those of
PREFECT_API_DATABASE_CONNECTION_URL and MLFLOW_TRACKING_URI. The account is that of CURSUS_ACCOUNT or `.cursus/account`;
none is generated.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pipelines.errors import CursusError
from tasks.environment import ACCOUNT, MLFLOW_PORT, defaults, private_state_folder, project_root, state_folder
from tasks.servers import mlflow_application, prefect_application
from tasks.servers.accounts import VARIABLE, Account, account
from tasks.servers.services import PREFECT_PORT, WORKER_COMMAND
from tasks.servers.tracking_database import migrate_tracking_store


def command(name: str, root: Path, host: str, port: int) -> list[str]:
    """The arguments after `python` of server `name`, which listens on `host` and `port`; the worker ignores both."""
    if name == "prefect":
        return prefect_application.command(host, port)
    if name == "mlflow":
        return mlflow_application.command(root, host, port)
    return [*WORKER_COMMAND, "--healthcheck"]


def variables(name: str, root: Path, known: Account, port: int, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of server `name`: what is `given`, the checkout's defaults, and what requires the account."""
    merged = {**defaults(root), **given, **known.prefect, "PREFECT_SERVER_UI_API_URL": "/api", "PYTHONUNBUFFERED": "1"}
    if name == "prefect":
        merged |= prefect_application.protection(known.line, f"http://127.0.0.1:{port}")
    elif name == "mlflow":
        merged |= {**known.mlflow_server(root), "MLFLOW_BACKEND_STORE_URI": merged["MLFLOW_TRACKING_URI"]}
    return merged


def run(name: str, root: Path, host: str, port: int) -> None:
    """Replace this process by server `name`, or register the deployments and return.

    Raises CursusError when there is no account, it is malformed, or a deployment is rejected.
    """
    known = account(root)
    if known is None:
        raise CursusError(
            f"these servers require an account: set {VARIABLE} to name:password, or write that line to "
            f"{state_folder(root) / ACCOUNT}"
        )
    os.umask(0o077)
    private_state_folder(root)
    environment = {**os.environ, **variables(name, root, known, port, os.environ)}
    if name == "deployments":
        from tasks.servers.registration import register

        os.environ.update(environment)
        register(root, environment["PREFECT_API_URL"], known.line, environment)
        return
    if name == "mlflow":
        migrate_tracking_store(root, environment["MLFLOW_TRACKING_URI"])
    os.chdir(root)
    os.execve(sys.executable, [sys.executable, *command(name, root, host, port)], environment)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tasks.servers.foreground")
    parser.add_argument("name", choices=["prefect", "mlflow", "deployments", "worker"])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    arguments = parser.parse_args()
    port = arguments.port or (MLFLOW_PORT if arguments.name == "mlflow" else PREFECT_PORT)
    try:
        run(arguments.name, project_root(), arguments.host, port)
    except CursusError as mistake:
        sys.exit(f"{mistake}")


if __name__ == "__main__":
    main()
