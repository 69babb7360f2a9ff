"""Notifications about flow runs: mail and webhooks, at addresses that only the owner of the checkout chooses.

An automation of Prefect sends a notification through a block. Prefect's own blocks hold the address, so an account
that may use it could have the server call any address, services of its network included, and read the answer.
Automations of these servers therefore use no block but the one below, which has no fields: it reads the addresses from
CURSUS_NOTIFY, or from `.cursus/notify`. Each is an address of Apprise, a line each:
`mailtos://user:password@example.org`, `slack://…`, or `jsons://example.org/hook` for a webhook.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.blocks.abstract import NotificationBlock, NotificationError

from pipelines.errors import CursusError
from tasks.environment import project_root, state_folder

if TYPE_CHECKING:
    from prefect.server.schemas.core import BlockDocument

VARIABLE = "CURSUS_NOTIFY"
FILE = "notify"
"""File of the state folder with an address on each line."""
DOCUMENT = "addresses-of-this-checkout"
"""Name of the block in Prefect's UI."""
REFUSED = (
    "these servers notify through the block {!r} alone, whose addresses are in CURSUS_NOTIFY or .cursus/notify "
    "(docs/servers.md)"
)


def addresses(root: Path) -> list[str]:
    """The addresses to notify. Raises CursusError where users other than its owner can read the file."""
    lines = os.environ.get(VARIABLE, "").split()
    file = state_folder(root) / FILE
    if not lines and file.exists():
        if file.stat().st_mode & 0o077:
            raise CursusError(f"{file}: users other than its owner can read these addresses. Run: chmod 600 {file}")
        lines = file.read_text(encoding="utf-8").split("\n")
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


class CheckoutNotification(NotificationBlock):
    """Notifies the addresses of the checkout whose server sends it."""

    _block_type_name = "Addresses of this checkout"
    _block_type_slug = "cursus-addresses"
    _description = "Mail and webhooks that the owner of this checkout has configured (docs/servers.md)."

    async def notify(self, **message: str) -> None:  # type: ignore[override]  # Prefect names both when it calls
        """Send a message with the texts `body` and `subject` to every address.

        Raises NotificationError where one was not reached, or there is none.
        """
        from apprise import Apprise, NotifyFormat

        try:
            known = addresses(project_root())
        except CursusError as error:
            raise NotificationError(str(error)) from None
        if not known:
            raise NotificationError(f"there is no address: set {VARIABLE}, or write .cursus/{FILE} (docs/servers.md)")
        sender = Apprise()
        for number, address in enumerate(known, start=1):
            if not sender.add(address):
                raise NotificationError(f"address {number} of {len(known)} is none that Apprise knows")
        if not await sender.async_notify(
            body=message["body"], title=message.get("subject", ""), body_format=NotifyFormat.TEXT
        ):
            raise NotificationError("an address was not reached; Prefect's log says why")


async def save_block(api: str, auth: str | None) -> UUID:
    """Register the block on the server at `api`; returns the id by which automations refer to it."""
    from prefect.client.orchestration import PrefectClient

    async with PrefectClient(api, auth_string=auth) as client:
        document: UUID = await CheckoutNotification().asave(DOCUMENT, overwrite=True, client=client)
    return document


def restrict_actions() -> None:
    """Have the automations of the server in this process use no other block, whatever was saved there."""
    from prefect.server.events import actions

    async def only_own(document: BlockDocument) -> Any:
        if document.block_type is None or document.block_type.slug != CheckoutNotification.get_block_type_slug():
            raise ValueError(REFUSED.format(DOCUMENT))
        return CheckoutNotification()

    actions._load_block_from_block_document = only_own  # type: ignore[assignment]  # of any class that is imported
