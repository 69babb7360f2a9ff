"""The servers of one checkout, on loopback by default: Prefect's server and worker, and MLflow's UI.

    make up    -> up(root)     starts what is missing, registers the deployments, prints the addresses
    make down  -> down(root)   stops what `up` started, and nothing else

`.cursus/services.json` records what was started. It is written after every step, so that an interrupted `up` leaves a
record that the next `up` completes and `down` clears.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from pipelines.errors import CursusError
from pipelines.messages.translation import message
from tasks.environment import ACCOUNT, MLFLOW_PORT, defaults, private_state_folder, state_folder, tracking_uri
from tasks.servers import mlflow_application, prefect_application, processes
from tasks.servers.accounts import VARIABLE, Account, required_account
from tasks.servers.flow_runs import report_ended_runs
from tasks.servers.processes import Process
from tasks.servers.registration import register, register_changes
from tasks.servers.tracking_database import is_database, migrate_tracking_store, refuse_network_folder

PREFECT_PORT = 4200
# Prefect warns that this worker takes the place of its own of the same type, as it is meant to
WORKER_COMMAND = ("-W", "ignore::UserWarning:prefect.utilities.dispatch", "-m", "tasks.servers.worker")
PATIENCE = 90.0
"""Seconds a server may take to answer. An idle two-core machine needs 15; a busy one has needed 60."""


class Services(BaseModel):
    """Addresses and processes of a checkout's servers."""

    prefect_url: str
    mlflow_url: str
    host: str = "127.0.0.1"
    """The address that both servers listen on."""
    prefect: Process | None = None
    mlflow: Process | None = None
    worker: Process | None = None

    def healthy(self) -> bool:
        """Whether all three processes run and both servers answer."""
        return (
            self.answers(self.prefect, f"{self.prefect_url}/api/health")
            and self.answers(self.mlflow, f"{self.mlflow_url}/health")
            and self.worker is not None
            and self.worker.alive()
        )

    @staticmethod
    def answers(process: Process | None, url: str) -> bool:
        return process is not None and process.alive() and processes.answers(url)


def running(root: Path) -> Services | None:
    """The servers of the checkout at `root` when `up` has completed and all of them are healthy; else None."""
    services = _read(root)
    return services if services is not None and services.healthy() else None


def up(
    root: Path,
    *,
    host: str = "127.0.0.1",
    prefect_port: int = PREFECT_PORT,
    mlflow_port: int = MLFLOW_PORT,
    notify: Callable[[str], None] = print,
) -> Services:
    """Start the Prefect server, a worker and the MLflow UI of the checkout at `root`, wait until they are healthy and
    pass their addresses to `notify`.

    Returns at once when they run already, unless a form has changed. A port that is in use is replaced by a free one (0
    requests a free one); a server that was killed is restarted at its old address. Takes about 20 s. Both servers
    require the checkout's account (`tasks.servers.accounts`); one that is made now is passed to `notify` once.

    Raises CursusError when the account is malformed, and, naming the log, when a server does not start or a deployment
    is rejected.
    """
    root = root.resolve()
    refuse_network_folder(root, os.environ.get("MLFLOW_TRACKING_URI") or tracking_uri(root))
    # registration calls the server from this process, so Prefect is imported here too
    for name, value in defaults(root).items():
        os.environ.setdefault(name, value)
    with _services_lock(root):
        account, made = required_account(root)
        services = _read(root)
        if services is not None and services.host != host:
            raise CursusError(f"the servers listen on {services.host}; stop them first with `make down`")
        if services is not None and services.healthy():
            report_ended_runs(root, f"{services.prefect_url}/api", account.line)
            changed = register_changes(root, f"{services.prefect_url}/api", account.line)
            forms = " " + message("Deployments and their forms were registered again.") if changed else ""
            notify(f"{message('Already running.')}{forms}\n{_addresses(root, services)}")
            return services
        notify(message("Starting the servers (about 20 s) …"))
        services = services or Services(
            prefect_url=_url(host, prefect_port), mlflow_url=_url(host, mlflow_port), host=host
        )
        _clear_broken(root, services, notify)
        _start_missing(root, services, account)
        notify(_addresses(root, services, account if made else None))
        return services


def down(root: Path, *, notify: Callable[[str], None] = print) -> None:
    """Stop the servers that `up` started for the checkout at `root`, including orphaned child processes."""
    root = root.resolve()
    with _services_lock(root):
        services = _read(root)
        # the worker first: it reports its runs as crashed to a server that still listens
        stopped = [name for name in ("worker", "mlflow", "prefect") if _clear(root, services, name)]
        (state_folder(root) / "services.json").unlink(missing_ok=True)
    ended = message("Stopped: {names}.", names=", ".join(stopped))
    notify(ended if stopped else message("Nothing was running."))


def _clear_broken(root: Path, services: Services, notify: Callable[[str], None]) -> None:
    """Drop servers that were killed or hang, stop their remaining processes, and choose a free address for them."""
    if not services.answers(services.prefect, f"{services.prefect_url}/api/health"):
        _clear(root, services, "prefect")
        before, services.prefect_url = services.prefect_url, _free_address("Prefect", services.prefect_url, notify)
        if services.prefect_url != before:
            # a worker that polls the old address would never receive a run
            _clear(root, services, "worker")
    if not services.answers(services.mlflow, f"{services.mlflow_url}/health"):
        _clear(root, services, "mlflow")
        services.mlflow_url = _free_address("MLflow", services.mlflow_url, notify)
    if services.worker is not None and not services.worker.alive():
        # the runs that it started continue, and report to the server themselves
        services.worker = None


def _start_missing(root: Path, services: Services, account: Account) -> None:
    from tasks.servers import deployments

    logs = state_folder(root) / "logs"
    api = f"{services.prefect_url}/api"
    environment = _environment(root, services) | account.prefect | account.mlflow
    own = {
        "prefect": prefect_application.protection(account.line, services.prefect_url),
        "mlflow": {**account.mlflow_server(root), "MLFLOW_BACKEND_STORE_URI": environment["MLFLOW_TRACKING_URI"]},
    }

    def ensure(name: str, *command: str) -> None:
        if getattr(services, name) is None:
            log = logs / f"{name}.log"
            variables = environment | own.get(name, {})
            started = processes.start(
                name, [sys.executable, *command], root=root, environment=variables, log=log, private=name in own
            )
            setattr(services, name, started)
            _write(root, services)

    port = int(services.prefect_url.rpartition(":")[2])
    with prefect_application.starting(Path(environment["PREFECT_HOME"])):
        ensure("prefect", *prefect_application.command(services.host, port))
        migrate_tracking_store(root, environment["MLFLOW_TRACKING_URI"])
        mlflow_port = int(services.mlflow_url.rpartition(":")[2])
        ensure("mlflow", *mlflow_application.command(root, services.host, mlflow_port))
        _wait(root, services, "prefect", f"{api}/health")
    auth = account.line
    register(root, api, auth, environment)
    report_ended_runs(root, api, auth)
    since, fresh = datetime.now(UTC), services.worker is None
    ensure("worker", *WORKER_COMMAND)
    _wait(root, services, "mlflow", f"{services.mlflow_url}/health")
    deadline = time.monotonic() + PATIENCE
    while fresh and not deployments.worker_seen(api, deployments.WORKER, auth=auth, since=since):
        if services.worker is None or not services.worker.alive() or time.monotonic() > deadline:
            raise CursusError(_failure(root, "worker"))
        time.sleep(0.3)


def _environment(root: Path, services: Services) -> dict[str, str]:
    """The environment of every server: the user's, with this checkout's own folders and addresses."""
    unset = {name: value for name, value in defaults(root).items() if name not in os.environ}
    folders = {name: defaults(root)[name] for name in ("CURSUS_ROOT", "PREFECT_HOME", "MLFLOW_TRACKING_URI")}
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    if is_database(uri) and not uri.startswith("sqlite"):
        folders["MLFLOW_TRACKING_URI"] = uri  # a database that the user has set up for many writers
    return {
        **os.environ,
        **unset,
        **folders,
        "PREFECT_API_URL": f"{services.prefect_url}/api",
        # a browser calls the API at the address from which it loaded the page, by whatever name
        "PREFECT_SERVER_UI_API_URL": "/api",
        "PREFECT_CLI_PROMPT": "false",
        # a run launched from the UI should start within seconds, and polling is cheap with one worker
        "PREFECT_WORKER_QUERY_SECONDS": "3",
        # a schedule switched on in the UI shows its next runs within seconds, not after a minute
        "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "10",
        "PYTHONUNBUFFERED": "1",
    }


def _clear(root: Path, services: Services | None, name: str) -> bool:
    """Stop service `name` with all its remaining processes, and drop its record. Returns whether any process ran."""
    process: Process | None = getattr(services, name) if services is not None else None
    handles = {handle.pid: handle for handle in processes.tree(process)} if process is not None else {}
    handles |= {handle.pid: handle for handle in processes.marked(name, root)}
    processes.stop(list(handles.values()))
    if services is not None:
        setattr(services, name, None)
    return bool(handles)


def _wait(root: Path, services: Services, name: str, url: str) -> None:
    process: Process = getattr(services, name)
    if not processes.wait_until_answers(url, process, seconds=PATIENCE):
        raise CursusError(_failure(root, name))


def _failure(root: Path, name: str) -> str:
    log = state_folder(root) / "logs" / f"{name}.log"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
    last = f" Its last line of output: {lines[-1].strip()}" if lines else ""
    return (
        f"{name}: the server ended, or did not answer within {PATIENCE:.0f} s.{last} Its log is {log}; "
        f"`make down` cleans up."
    )


def _url(host: str, port: int) -> str:
    """URL at which this machine reaches a server that listens on `host`."""
    here = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host
    return f"http://{f'[{here}]' if ':' in here else here}:{port or processes.free_port()}"


def _free_address(name: str, url: str, notify: Callable[[str], None]) -> str:
    port = int(url.rpartition(":")[2])
    if not processes.port_taken(port):
        return url
    free = f"{url.rpartition(':')[0]}:{processes.free_port()}"
    notify(message("Port {port} is in use by another program; {name} uses {free}.", port=port, name=name, free=free))
    return free


def _addresses(root: Path, services: Services, made: Account | None = None) -> str:
    where = VARIABLE if os.environ.get(VARIABLE) else str(state_folder(root) / ACCOUNT)
    account = message("the line in {file}", file=where)
    if made is not None:
        account = message("{line}   (shown once; it is in {file})", line=made.line, file=where)
    lines = (
        f"Prefect  {services.prefect_url}",
        f"MLflow   {services.mlflow_url}",
        message("Account  {account}", account=account),
        message("Prefect asks for the whole line, MLflow for name and password. Stop them with `make down`."),
    )
    return "\n".join(lines)


def account_of_servers(root: Path) -> tuple[Account, bool]:
    """The account that every server of the project requires, and whether it was made now."""
    with _services_lock(root):
        return required_account(root)


@contextmanager
def _services_lock(root: Path) -> Iterator[None]:
    """Lock the checkout's services: two concurrent `up`s would start everything twice."""
    from filelock import FileLock, Timeout

    state = private_state_folder(root)
    try:
        with FileLock(state / "services.lock", timeout=2 * PATIENCE):
            yield
    except Timeout:
        raise CursusError(
            f"{state / 'services.lock'}: another `make up` or `make down` is in progress; wait for it to end"
        ) from None


def _read(root: Path) -> Services | None:
    file = state_folder(root) / "services.json"
    try:
        return Services.model_validate_json(file.read_text())
    except (FileNotFoundError, ValidationError):
        return None


def _write(root: Path, services: Services) -> None:
    file = state_folder(root) / "services.json"
    temporary = file.with_suffix(".part")
    temporary.write_text(services.model_dump_json(indent=2))
    os.replace(temporary, file)
