"""Transactions of Prefect's server on SQLite that take the right to write when they begin.

Many of its requests read before they write (to resume a run, for instance), in a transaction that SQLite begins for
reading. Where another connection writes in between, what was read is out of date, and SQLite refuses the write at once,
whatever the time to wait for a lock (SQLITE_BUSY_SNAPSHOT, https://sqlite.org/isolation.html): "database is locked". A
person's click on *Submit* is then lost. A transaction that takes the lock for writing first waits for its turn instead.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import MODELS_DEPENDENCIES
from prefect.server.utilities.database import get_dialect
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction


class ImmediateSqlite(AioSqliteConfiguration):
    """SQLite whose explicit transactions, all of which may write, begin with BEGIN IMMEDIATE. Reads without a
    transaction stay as they are, and wait for nobody."""

    @asynccontextmanager
    async def begin_transaction(
        self, session: AsyncSession, with_for_update: bool = False
    ) -> AsyncGenerator[AsyncSessionTransaction, None]:
        async with super().begin_transaction(session, with_for_update=True) as transaction:
            yield transaction


def write_in_turns() -> None:
    """Have the server of this process use `ImmediateSqlite` where its database is one of SQLite."""
    url = PREFECT_API_DATABASE_CONNECTION_URL.value()
    if get_dialect(url).name == "sqlite":
        MODELS_DEPENDENCIES["database_config"] = ImmediateSqlite(connection_url=url)
