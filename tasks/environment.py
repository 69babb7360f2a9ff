"""The process environment every entry point starts from: `tasks.servers.environment` sets it before Prefect, MLflow, DVC or Great
Expectations is imported.

Each of those tools reads its settings at import and has its own switch for phoning home, so they are set in one place,
and early. A value the user has already exported wins, always.
"""

from __future__ import annotations

import os
from pathlib import Path

QUIET = {
    # telemetry: every tool has its own switch, and none of them obeys all the others
    "DO_NOT_TRACK": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Prefect's newer UI calls an analytics host from the browser whatever the server's settings say
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # the console shows warnings; the run's page in the UI keeps every line
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_CLI_COLORS": "false",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "TOKENIZERS_PARALLELISM": "false",
}

PATIENT = {
    # a busy two-core machine needs 12 s for a temporary server where the default allows 20
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # a server that is away is asked for 14 s at a time, not for two minutes: one that is restarted is back by then
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    # lets the automation in automations/ mark a killed run as crashed within two minutes
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}


def project_root() -> Path:
    """The checkout: CURSUS_ROOT, or the one that this file lies in."""
    return Path(os.environ.get("CURSUS_ROOT") or Path(__file__).parents[1]).resolve()


def state_folder(root: Path) -> Path:
    """Where this checkout keeps its state: databases, logs, process ids. Git-ignored, safe to delete when nothing runs."""
    return root.resolve() / ".cursus"


def tracking_uri(root: Path) -> str:
    """MLflow's store of this checkout, as an absolute URI: MLflow's own default depends on the current directory."""
    return f"sqlite:///{state_folder(root) / 'mlflow.db'}"


def defaults(root: Path) -> dict[str, str]:
    """Every variable that `prepare_environment` would set for the checkout at `root`, except the servers' addresses."""
    here = {
        "CURSUS_ROOT": str(root.resolve()),
        "PREFECT_HOME": str(state_folder(root) / "prefect"),
        "MLFLOW_TRACKING_URI": tracking_uri(root),
    }
    return {**QUIET, **PATIENT, **here}
