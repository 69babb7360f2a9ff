"""The account that the servers of a checkout demand: from CURSUS_ACCOUNT, or from `.cursus/account`, which only its owner reads.

Both hold one line, `name:password`. Where there is an account, Prefect's server and MLflow's demand it and this checkout's own
flows, worker and commands give it; without one, no server listens beyond this machine. It is handed on in environments and
never on a command line, which every user of the machine can read.
"""

from __future__ import annotations

import os
import secrets
import warnings
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SecretStr

from pipelines.errors import CursusError
from pipelines.safety.loopback import is_loopback
from tasks.environment import state_folder

VARIABLE = "CURSUS_ACCOUNT"
SHORTEST = 12
"""Characters of a password: MLflow takes none that is shorter."""


class Account(BaseModel):
    """A name and a password. Printed, it shows no password."""

    model_config = ConfigDict(frozen=True)

    name: str
    password: SecretStr

    @classmethod
    def parse(cls, line: str, where: str) -> Self:
        """An account from `name:password`. Raises CursusError, which names `where` it stood and never says what."""
        name, _, password = line.strip().partition(":")
        if not name or len(password) < SHORTEST:
            raise CursusError(
                f"{where}: an account is one line, name:password, with a password of {SHORTEST} characters or more"
            )
        return cls(name=name, password=SecretStr(password))

    @property
    def prefect(self) -> dict[str, str]:
        """What Prefect's clients are given in their environment."""
        return {"PREFECT_API_AUTH_STRING": f"{self.name}:{self.password.get_secret_value()}"}

    @property
    def mlflow(self) -> dict[str, str]:
        """What MLflow's clients are given in their environment."""
        return {"MLFLOW_TRACKING_USERNAME": self.name, "MLFLOW_TRACKING_PASSWORD": self.password.get_secret_value()}

    def prefect_server(self) -> dict[str, str]:
        """What makes Prefect's server demand the account."""
        return {"PREFECT_SERVER_API_AUTH_STRING": f"{self.name}:{self.password.get_secret_value()}"}

    def mlflow_server(self, root: Path) -> dict[str, str]:
        """What makes MLflow's basic-auth app demand the account; its settings are written, and an old password is replaced."""
        state = state_folder(root)
        users = f"sqlite:///{state / 'mlflow-users.db'}"
        settings = state / "mlflow-auth.ini"
        settings.write_text(f"[mlflow]\ndefault_permission = READ\ndatabase_uri = {users}\n", encoding="utf-8")
        self._renew(state / "mlflow-users.db", users)
        return {
            "MLFLOW_AUTH_CONFIG_PATH": str(settings),
            "MLFLOW_AUTH_ADMIN_USERNAME": self.name,
            "MLFLOW_AUTH_ADMIN_PASSWORD": self.password.get_secret_value(),
            "MLFLOW_FLASK_SERVER_SECRET_KEY": os.environ.get("MLFLOW_FLASK_SERVER_SECRET_KEY") or secrets.token_hex(32),
        }

    def _renew(self, database: Path, uri: str) -> None:
        """MLflow takes the password of its administrator from the environment once, and then from its own users."""
        if not database.exists():
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the web frameworks that MLflow's server is made of
            from mlflow.server.auth.sqlalchemy_store import SqlAlchemyStore

            untyped: Any = SqlAlchemyStore
            store = untyped()
            store.init_db(uri)
            password = self.password.get_secret_value()
            if store.has_user(self.name) and not store.authenticate_user(self.name, password):
                store.update_user(self.name, password=password)


def account(root: Path) -> Account | None:
    """The account of the checkout at `root`, if it has one. Raises CursusError where it is no account, or others can read it."""
    if told := os.environ.get(VARIABLE):
        return Account.parse(told, VARIABLE)
    file = state_folder(root) / "account"
    if not file.exists():
        return None
    if file.stat().st_mode & 0o077:
        raise CursusError(f"{file}: others than its owner may read this password. Run: chmod 600 {file}")
    return Account.parse(file.read_text(encoding="utf-8"), str(file))


def demanded(root: Path, host: str) -> Account | None:
    """The account that servers listening on `host` demand. Raises CursusError beyond this machine where there is none."""
    found = account(root)
    if found is None and not is_loopback(host):
        raise CursusError(
            f"listening on {host} needs an account, or everybody on the network could start runs here: "
            f"put one line, name:password, into {state_folder(root) / 'account'} (chmod 600), or into {VARIABLE}"
        )
    return found
