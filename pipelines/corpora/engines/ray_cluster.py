"""A running Ray cluster, joined as a driver: always at an address that the user wrote, never at one that Ray finds by itself.

Ray runs whatever code it is sent, so a cluster that other machines can reach must ask for a token. Machines of a cluster see
the checkout, its environment and its data under the same paths (a shared file system).
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
"""What a cluster's machine may take to accept a connection."""
JOIN_SECONDS = 45.0
"""What joining may take. Ray itself would try for two minutes with an address where something else listens."""
HANDED_ON = (
    "CURSUS_ROOT",
    "DO_NOT_TRACK",
    "HF_HUB_OFFLINE",
    "HF_HUB_DISABLE_TELEMETRY",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
)
"""Variables of this process that the cluster's processes get too. Secrets are not among them."""


def _checked(address: str) -> str:
    if not re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-f:]+\]:\d+", address, re.IGNORECASE):
        raise ValueError(
            f"say where the cluster is, as host:port (`ray start --head --port 6379` makes one at 127.0.0.1:6379), not {address!r}"
        )
    return address


Address = Annotated[str, AfterValidator(_checked)]
"""`host:port` of a cluster's head."""


def check(address: str) -> None:
    """Raise CursusError, within seconds, unless Ray is installed here and something answers at `address`.

    An address beyond this machine is refused where no token is set.
    """
    if importlib.util.find_spec("ray") is None:
        raise CursusError("Ray is not installed: pip install -c requirements.lock -e '.[ray]'")
    host, _, port = address.rpartition(":")
    if not is_loopback(host) and not _has_token():
        raise CursusError(
            f"the Ray cluster at {address} is beyond this machine and no token is set: whoever reaches such a cluster runs code "
            "on it. Start it with RAY_AUTH_MODE=token, and set both it and RAY_AUTH_TOKEN_PATH here (docs/clusters.md)"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except OSError as trouble:
        raise CursusError(f"no Ray cluster answers at {address}: {trouble.strerror or trouble}") from None


def join(address: str, environment: Mapping[str, str], *, show_logs: bool) -> None:
    """Join the cluster at `address` as a driver, whose processes get `environment` added to theirs; what they print is printed
    here too if `show_logs`.

    Raises CursusError where it does not answer, speaks something else, or refuses this machine's token.
    """
    check(address)
    import ray

    host = address.rpartition(":")[0]
    handed = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    code = str(Path(__file__).parents[3])
    trouble: list[BaseException] = []

    def attempt() -> None:
        try:
            ray.init(
                address=address,
                _node_ip_address=host if is_loopback(host) else None,
                namespace="cursus",
                logging_level=logging.ERROR,
                log_to_driver=show_logs,
                runtime_env={"env_vars": {**handed, **environment, "PYTHONPATH": code}},
            )
        except (Exception, SystemExit) as error:
            trouble.append(error)

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # in a thread of its own: it does not listen to any limit of time
    trying = threading.Thread(target=attempt, daemon=True)
    trying.start()
    trying.join(JOIN_SECONDS)
    if trying.is_alive() or trouble:
        said = f" ({' '.join(str(trouble[0]).split())[:300]})" if trouble else ""
        raise CursusError(
            f"{address}: something answers, but no Ray cluster that lets this machine in{said}. Its version of Ray and its token "
            "(RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH) must be those of this machine, which must be one of its nodes: "
            f"`ray start --address {address} --num-cpus 0` makes it one that computes nothing"
        )


def nodes() -> dict[str, dict[str, float]]:
    """The living nodes of the cluster that was joined: address to resources, by Ray's names (CPU, GPU, memory in bytes)."""
    import ray

    known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {node["NodeManagerAddress"]: node["Resources"] for node in known if node["Alive"]}


def _has_token() -> bool:
    kept = os.environ.get("RAY_AUTH_TOKEN_PATH") or str(Path.home() / ".ray" / "auth_token")
    wanted = os.environ.get("RAY_AUTH_MODE", "token") == "token"
    return wanted and bool(os.environ.get("RAY_AUTH_TOKEN") or Path(kept).is_file())
