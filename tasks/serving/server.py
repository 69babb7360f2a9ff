"""One model behind HTTP, in this process, until it is stopped."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from pipelines.errors import CursusError
from pipelines.messages.translation import message
from pipelines.models.extracting import extract_task
from pipelines.serving.answering.answering_model import AnsweringModel
from tasks.environment import ACCOUNT, state_folder
from tasks.models.reference import named_model
from tasks.servers.accounts import VARIABLE
from tasks.servers.processes import Process
from tasks.servers.services import account_of_servers
from tasks.serving.application import ServedModel, create_application
from tasks.serving.batching import BatchLimits
from tasks.serving.protection import protected
from tasks.serving.running import ServingRecord, remove_record, state_of, write_record

PORT = 8000


@dataclass(frozen=True)
class ServerOptions:
    """How a model is served."""

    host: str = "127.0.0.1"
    port: int | None = None
    """None: `PORT`, or a free one where that is taken; 0: a free one."""
    threads: int = 1
    limits: BatchLimits = field(default_factory=BatchLimits)


def serve(
    root: Path,
    reference: str | None,
    dataset: str | None,
    task: str | None,
    options: ServerOptions,
    notify: Callable[[str], None],
) -> None:
    """Serve the model that `reference` names, or the default one of `dataset`, until SIGINT or SIGTERM; its title,
    address and account are passed to `notify` first.

    Raises CursusError for a reference that names nothing, a port that is taken, and a model that answers no task, or
    several where none is chosen.
    """
    import uvicorn

    state = state_of(root)  # before the model is resolved: what changes meanwhile is a change
    named = named_model(root, reference, dataset)
    notify(message("Model    {title}", title=named.title))
    with TemporaryDirectory(prefix="cursus-task-") as scratch:
        model = AnsweringModel(extract_task(named.folder, task, Path(scratch)), options.threads)
    served = ServedModel(named.title, named.fingerprint or "", model)
    account, made = account_of_servers(root)
    with _listening(options) as listener:
        port = int(listener.getsockname()[1])
        here = "127.0.0.1" if options.host in ("0.0.0.0", "::", "localhost") else options.host
        url = f"http://{f'[{here}]' if ':' in here else here}:{port}"
        app = protected(create_application(served, options.limits), account)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", server_header=False))
        created = psutil.Process().create_time()
        process = Process(pid=os.getpid(), created=created)
        record = ServingRecord(
            url=url,
            process=process,
            title=named.title,
            folder=str(named.folder.resolve()),
            task=task,
            reference=reference,
            dataset=dataset,
            state=state,
        )
        write_record(root, record)
        where = VARIABLE if os.environ.get(VARIABLE) else str(state_folder(root) / ACCOUNT)
        login = message("{line}   (shown once; it is in {file})", line=account.line, file=where) if made else where
        lines = message("Page     {url}", url=url), message("Account  {account}", account=login)
        notify("\n".join(lines))
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn repeats the signal once it has ended in order
            notify(message("Stopped."))
        finally:
            remove_record(root)


def _listening(options: ServerOptions) -> socket.socket:
    """A socket that listens where the options say."""
    if not options.host.strip():
        raise CursusError("--host is empty, which would listen on every address; name one, for example 127.0.0.1")
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    for port in [options.port] if options.port is not None else [PORT, 0]:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, port))
            listener.listen(128)
        except (OSError, TypeError, UnicodeError) as error:  # the latter two for a name that no host can have
            listener.close()
            reason = getattr(error, "strerror", None) or str(error)
            continue
        return listener
    raise CursusError(f"cannot listen on {options.host}, port {options.port or PORT}: {reason}; choose another --port")
