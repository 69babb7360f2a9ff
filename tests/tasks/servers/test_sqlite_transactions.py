"""Requests of Prefect's server that read before they write, while others write to the same SQLite database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from prefect.server.database.configurations import AioSqliteConfiguration
from sqlalchemy.exc import OperationalError

from tasks.servers.sqlite_transactions import ImmediateSqlite


async def read_while_another_writes(kind: type[AioSqliteConfiguration], database: Path) -> list[str]:
    """What a table holds after one transaction has read it, waited for a second to write, and written itself."""
    config = kind(connection_url=f"sqlite+aiosqlite:///{database}")
    engine = await config.engine()

    async def write(name: str, first: asyncio.Future[None] | None = None) -> None:
        session = await config.session(engine)
        async with session, config.begin_transaction(session):
            await session.execute(sa.text("SELECT count(*) FROM runs"))
            if first is not None:
                first.set_result(None)
                await asyncio.wait({second}, timeout=0.5)
            await session.execute(sa.text("INSERT INTO runs VALUES (:name)"), {"name": name})

    try:
        async with engine.begin() as connection:
            await connection.execute(sa.text("CREATE TABLE runs (name TEXT)"))
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def after_it_began() -> None:
            await begun
            await write("second")

        second = asyncio.create_task(after_it_began())
        try:
            await write("first", begun)
        finally:
            await second
        async with engine.connect() as connection:
            return list((await connection.execute(sa.text("SELECT name FROM runs"))).scalars())
    finally:
        await engine.dispose()


def test_a_request_that_read_first_is_not_refused_its_write(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="database is locked"):  # as Prefect ships
        asyncio.run(read_while_another_writes(AioSqliteConfiguration, tmp_path / "theirs.db"))
    assert asyncio.run(read_while_another_writes(ImmediateSqlite, tmp_path / "ours.db")) == ["first", "second"]
