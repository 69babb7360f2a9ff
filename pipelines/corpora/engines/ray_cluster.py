"""Join a running Ray cluster as a driver, always at an address given by the user, never one that Ray discovers.

Ray executes any code that it is sent, so a cluster that other machines can reach must require a token. All machines of
a cluster see the checkout, its environment and its data under the same paths (a shared file system).
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from pipelines.errors import CursusError
from pipelines.safety.loopback import is_loopback

ANSWER_SECONDS = 3.0
"""Timeout in seconds for a TCP connection to the cluster."""
JOIN_SECONDS = 45.0
"""Timeout in seconds for joining. Ray itself would try for two minutes where another program listens."""
PASSED_ON = (
    "CURSUS_ROOT",
    "DO_NOT_TRACK",
    "HF_HUB_OFFLINE",
    "HF_HUB_DISABLE_TELEMETRY",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
)
"""Environment variables that are passed on to the cluster's processes. Secrets are not among them."""


def _checked(address: str) -> str:
    if not re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-f:]+\]:\d+", address, re.IGNORECASE):
        raise ValueError(
            f"the address of a Ray cluster is host:port, not {address!r} (`ray start --head --port 6379` starts one at "
            "127.0.0.1:6379)"
        )
    return address


Address = Annotated[str, AfterValidator(_checked)]
"""`host:port` of a cluster's head node."""


def check(address: str) -> None:
    """Raise CursusError, within seconds, unless Ray is installed and `address` accepts connections.

    Without a token, an address on another machine is refused.
    """
    if importlib.util.find_spec("ray") is None:
        raise CursusError("Ray is not installed: pip install -c requirements.lock -e '.[ray]'")
    host, _, port = address.rpartition(":")
    if not is_loopback(host) and not _has_token():
        raise CursusError(
            f"the Ray cluster at {address} is on another machine and no token is set: anyone who can reach such a "
            "cluster can "
            "run code on it. Start it with RAY_AUTH_MODE=token, and set both it and RAY_AUTH_TOKEN_PATH here "
            "(docs/clusters.md)"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except OSError as error:
        raise CursusError(f"no Ray cluster answers at {address}: {error.strerror or error}") from None


def join(address: str, environment: Mapping[str, str], *, show_logs: bool) -> None:
    """Join the cluster at `address` as a driver, and add `environment` to that of its processes; `show_logs` prints
    their output here.

    CursusError when it does not answer, is not a Ray cluster, or refuses this machine's token.
    """
    check(address)
    import ray

    host = address.rpartition(":")[0]
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    code = str(Path(__file__).parents[3])
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            ray.init(
                address=address,
                _node_ip_address=host if is_loopback(host) else None,
                namespace="cursus",
                logging_level=logging.ERROR,
                log_to_driver=show_logs,
                runtime_env={"env_vars": {**passed_on, **environment, "PYTHONPATH": code}},
            )
        except (Exception, SystemExit) as error:
            errors.append(error)

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # in its own thread, because ray.init has no timeout
    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(JOIN_SECONDS)
    if thread.is_alive() or errors:
        reason = f" ({' '.join(str(errors[0]).split())[:300]})" if errors else ""
        raise CursusError(
            f"{address} answers, but is not a Ray cluster that accepts this machine{reason}. Its version of Ray and "
            "its token "
            "(RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH) must be those of this machine, which must be one of its nodes: "
            f"`ray start --address {address} --num-cpus 0` joins it without CPUs for work"
        )


def nodes() -> dict[str, dict[str, float]]:
    """Living nodes of the joined cluster: address → resources, by Ray's names (CPU, GPU, memory in bytes)."""
    import ray

    members: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {node["NodeManagerAddress"]: node["Resources"] for node in members if node["Alive"]}


def _has_token() -> bool:
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or str(Path.home() / ".ray" / "auth_token")
    enabled = os.environ.get("RAY_AUTH_MODE", "token") == "token"
    return enabled and bool(os.environ.get("RAY_AUTH_TOKEN") or Path(path).is_file())
