"""A verdict that was left open waits in Prefect's UI for a person: the flow run is paused, with the evidence and a form."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, cast
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import FlowPauseTimeout
from prefect.flow_runs import pause_flow_run
from prefect.input import RunInput
from prefect.input.run_input import keyset_from_base_key
from prefect.runtime import flow_run
from pydantic import Field, ValidationError

from tasks.decisions.record import Judge, Promotion
from tasks.promotion.page import described

LOOK_SECONDS = 5
"""Between two looks at whether the run was resumed."""


class Decide(RunInput):
    """The form. A switch and no list of two words: in the window of a paused run, Prefect's lists do not open for a mouse."""

    promote: bool = Field(
        False, title="Promote", description="On: the alias moves to the candidate. Off: it stays where it is."
    )
    reason: str = Field(title="Reason", min_length=1, description="Recorded on the model version.")
    name: str = Field(title="Name", min_length=1, description="Yours: recorded on the model version.")


def asked(promotion: Promotion, page: Path, wait_hours: float) -> Judge | None:
    """What a person decided in Prefect's UI; None where nobody has within `wait_hours`.

    A form that says nothing where words are asked for is shown again.
    """
    deadline = time.monotonic() + 3600 * wait_hours
    print(
        f"{promotion.sentence}\nwaiting for a person: {flow_run.ui_url or 'the run’s page in Prefect'}", file=sys.stderr
    )
    text, turn = described(promotion, page), 0
    while (left := deadline - time.monotonic()) > 0:
        turn += 1
        form, key = Decide.with_initial_data(description=text), f"decision-{turn}"
        try:
            try:
                timeout = max(1, round(left))
                found = pause_flow_run(wait_for_input=form, timeout=timeout, poll_interval=LOOK_SECONDS, key=key)
            except httpx.HTTPError:
                # whoever waits for days outlives a server that is restarted
                found = _resumed(form, key, deadline)
            decision: Literal["promote", "reject"] = "promote" if found.promote else "reject"
            return Judge(decision=decision, reason=found.reason, name=found.name)
        except FlowPauseTimeout:
            return None
        except ValidationError as error:
            text = f"**Not taken: {error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}**\n\n{described(promotion, page)}"
    return None


def _resumed(form: type[Decide], key: str, deadline: float) -> Decide:
    """What the form of a paused run holds once somebody has resumed it, on a server that may be away now and then."""
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        with suppress(httpx.HTTPError), get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(str(flow_run.id))).state
            if state is not None and state.is_running():
                return cast("Decide", form.load(keyset_from_base_key(f"paused-{key}")))
    raise FlowPauseTimeout
