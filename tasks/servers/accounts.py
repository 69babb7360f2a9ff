"""Credentials of a checkout's servers: from CURSUS_ACCOUNT, or from `.cursus/account`, which only its owner may read.

Both hold one line, `name:password`. Prefect's and MLflow's servers require the account, on loopback too, which every
user and every web page of this machine reaches; this checkout's own flows, worker and commands send it. It is passed in
environment variables and never on a command line, which every user of the machine can read.
"""

from __future__ import annotations

import os
import secrets
import warnings
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SecretStr

from pipelines.errors import CursusError
from tasks.environment import ACCOUNT, append_privately, state_folder

VARIABLE = "CURSUS_ACCOUNT"
NAME = "cursus"
"""User name of a generated account."""
PASSWORD_BYTES = 24
"""Random bytes of a generated password."""
MIN_PASSWORD_LENGTH = 12
"""Fewest characters of a password: MLflow accepts no shorter one."""


class Account(BaseModel):
    """A name and a password; the password is not shown when it is printed."""

    model_config = ConfigDict(frozen=True)

    name: str
    password: SecretStr

    @classmethod
    def parse(cls, line: str, where: str) -> Self:
        """Parse `name:password`. Raises a CursusError that names the source `where` and never shows the line."""
        name, _, password = line.strip().partition(":")
        if not name or len(password) < MIN_PASSWORD_LENGTH:
            raise CursusError(
                f"{where}: an account is one line, name:password, with a password of {MIN_PASSWORD_LENGTH} characters "
                "or more"
            )
        return cls(name=name, password=SecretStr(password))

    @property
    def line(self) -> str:
        """`name:password`, which is what Prefect requires."""
        return f"{self.name}:{self.password.get_secret_value()}"

    @property
    def prefect(self) -> dict[str, str]:
        """Environment variables for Prefect's clients."""
        return {"PREFECT_API_AUTH_STRING": self.line}

    @property
    def mlflow(self) -> dict[str, str]:
        """Environment variables for MLflow's clients."""
        return {"MLFLOW_TRACKING_USERNAME": self.name, "MLFLOW_TRACKING_PASSWORD": self.password.get_secret_value()}

    def mlflow_server(self, root: Path) -> dict[str, str]:
        """Environment variables with which MLflow's basic-auth app requires the account.

        Writes the app's settings file and replaces an outdated password in its user database.
        """
        state = state_folder(root)
        users = f"sqlite:///{state / 'mlflow-users.db'}"
        settings = state / "mlflow-auth.ini"
        with append_privately(settings) as output:
            output.truncate(0)
            output.write(f"[mlflow]\ndefault_permission = READ\ndatabase_uri = {users}\n".encode())
        self._renew(state / "mlflow-users.db", users)
        return {
            "MLFLOW_AUTH_CONFIG_PATH": str(settings),
            "MLFLOW_AUTH_ADMIN_USERNAME": self.name,
            "MLFLOW_AUTH_ADMIN_PASSWORD": self.password.get_secret_value(),
            "MLFLOW_FLASK_SERVER_SECRET_KEY": os.environ.get("MLFLOW_FLASK_SERVER_SECRET_KEY") or secrets.token_hex(32),
        }

    def _renew(self, database: Path, uri: str) -> None:
        """Update the administrator's password: MLflow reads it from the environment only when it creates its user
        database."""
        if not database.exists():
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations in the web frameworks below MLflow's server
            from mlflow.server.auth.sqlalchemy_store import SqlAlchemyStore

            untyped: Any = SqlAlchemyStore
            store = untyped()
            store.init_db(uri)
            password = self.password.get_secret_value()
            if store.has_user(self.name) and not store.authenticate_user(self.name, password):
                store.update_user(self.name, password=password)


def account(root: Path) -> Account | None:
    """The account of the checkout at `root`, or None. Raises CursusError where it is malformed, or others can read its
    file."""
    if line := os.environ.get(VARIABLE):
        return Account.parse(line, VARIABLE)
    file = state_folder(root) / ACCOUNT
    if not file.exists():
        return None
    if file.stat().st_mode & 0o077:
        raise CursusError(f"{file}: users other than its owner can read this password. Run: chmod 600 {file}")
    return Account.parse(file.read_text(encoding="utf-8"), str(file))


def required_account(root: Path) -> tuple[Account, bool]:
    """The account that the servers of the checkout at `root` require, and whether it was made now.

    Where there is none, a generated password is written to `.cursus/account`, which only its owner may read. Hold the
    lock of the services.
    """
    if (known := account(root)) is not None:
        return known, False
    file = state_folder(root) / ACCOUNT
    made = f"{NAME}:{secrets.token_urlsafe(PASSWORD_BYTES)}"
    temporary = file.with_suffix(".part")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(f"{made}\n")
    os.replace(temporary, file)
    return Account.parse(made, str(file)), True
