"""A PostgreSQL of its own for a test: a fresh cluster on loopback, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.servers.processes import free_port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")) or [
    Path(found) for found in [shutil.which("pg_ctl")] if found
]
PASSWORD = "correct-horse-battery"


@contextmanager
def postgres(*databases: str) -> Iterator[str]:
    """The address of a running server, `user:password@host:port`, that holds these empty databases.

    PostgreSQL refuses to run as root: a test that does starts it as the user that Debian made for it.
    """
    programs = PROGRAMS[-1].parent
    as_other = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    # outside pytest's folders, which only their owner enters
    with tempfile.TemporaryDirectory(prefix="cursus-pg-") as name:
        folder, port = Path(name), free_port()
        secret = folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        if as_other:
            owner = pwd.getpwnam("postgres")
            for path in (folder, secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)

        def call(*command: str) -> None:
            done = subprocess.run([*as_other, *command], cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

        data, log = str(folder / "data"), str(folder / "log")
        call(
            str(programs / "initdb"), "-D", data, "-U", "cursus", "--auth=scram-sha-256", f"--pwfile={secret}",
            "--no-sync", "-E", "UTF8", "--locale=C",
        )  # fmt: skip
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        call(str(programs / "pg_ctl"), "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            import psycopg2

            address = f"cursus:{PASSWORD}@127.0.0.1:{port}"
            connection = psycopg2.connect(f"postgresql://{address}/postgres")
            connection.autocommit = True
            for database in databases:
                connection.cursor().execute(f'CREATE DATABASE "{database}"')
            connection.close()
            yield address
        finally:
            call(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
