"""A verdict that was left open waits in Prefect's UI for a person: the flow run is paused, with the evidence and a form."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import httpx
from prefect.exceptions import FlowPauseTimeout
from prefect.flow_runs import pause_flow_run
from prefect.input import RunInput
from prefect.runtime import flow_run
from pydantic import Field, ValidationError

from pipelines.errors import StageError
from tasks.promotion_page import described
from tasks.promotion_record import Judge, Promotion

LOOK_SECONDS = 5
"""Between two looks at whether the run was resumed."""


class Decide(RunInput):
    """The form. A switch and no list of two words: in the window of a paused run, Prefect's lists do not open for a mouse."""

    promote: bool = Field(
        False, title="Promote", description="On: the alias moves to the candidate. Off: it stays where it is."
    )
    reason: str = Field(title="Reason", min_length=1, description="Recorded on the model version.")
    name: str = Field(title="Name", min_length=1, description="Yours: recorded on the model version.")


def asked(promotion: Promotion, page: Path, wait_hours: float, leave_open: Callable[[], object]) -> Judge:
    """What a person decided in Prefect's UI.

    Where nobody has within `wait_hours`, `leave_open` is called, which records that nothing was promoted, and StageError is
    raised. A form that says nothing where words are asked for is shown again.
    """
    deadline = time.monotonic() + 3600 * wait_hours
    print(
        f"{promotion.sentence}\nwaiting for a person: {flow_run.ui_url or 'the run’s page in Prefect'}", file=sys.stderr
    )
    text, turn = described(promotion, page), 0
    while (left := deadline - time.monotonic()) > 0:
        turn += 1
        form = Decide.with_initial_data(description=text)
        try:
            found = pause_flow_run(
                wait_for_input=form, timeout=max(1, round(left)), poll_interval=LOOK_SECONDS, key=f"decision-{turn}"
            )
            decision: Literal["promote", "reject"] = "promote" if found.promote else "reject"
            return Judge(decision=decision, reason=found.reason, name=found.name)
        except FlowPauseTimeout:
            break
        except ValidationError as error:
            text = f"**Not taken: {error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}**\n\n{described(promotion, page)}"
        except httpx.TransportError:
            # whoever pauses waits for days, and a server may be restarted meanwhile: the pause is asked for anew
            time.sleep(LOOK_SECONDS)
    leave_open()
    raise StageError(
        f"nobody decided within {wait_hours:g} hours, so nothing was promoted; what was measured is in the store, and "
        f"`cursus promote {promotion.candidate.fingerprint[:12]}` asks again ({promotion.sentence})"
    )
