"""Human approval of an INCONCLUSIVE verdict: the flow run pauses in Prefect's UI, with the evidence and a form."""

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

from pipelines.safety.markdown import inert
from tasks.decisions.record import ManualDecision, Promotion
from tasks.promotion.page import promotion_markdown

POLL_SECONDS = 5
"""Interval at which the state of the paused run is polled."""


class DecisionForm(RunInput):
    """The form. A switch rather than a drop-down list, which does not open on click in Prefect's dialog for paused
    runs."""

    promote: bool = Field(
        False, title="Promote", description="On: the alias moves to the candidate. Off: it stays where it is."
    )
    reason: str = Field(title="Reason", min_length=1, description="Recorded on the model version.")
    name: str = Field(title="Name", min_length=1, description="Your name: recorded on the model version.")


def await_decision(promotion: Promotion, page: Path, wait_hours: float) -> ManualDecision | None:
    """Wait for a person's decision in Prefect's UI; None when there is none within `wait_hours`.

    A form with an empty required field is shown again.
    """
    deadline = time.monotonic() + 3600 * wait_hours
    print(
        f"{promotion.sentence}\nwaiting for a person: {flow_run.ui_url or 'the run’s page in Prefect'}", file=sys.stderr
    )
    text, turn = promotion_markdown(promotion, page), 0
    while (left := deadline - time.monotonic()) > 0:
        turn += 1
        form, key = DecisionForm.with_initial_data(description=text), f"decision-{turn}"
        try:
            try:
                timeout = max(1, round(left))
                answer = pause_flow_run(wait_for_input=form, timeout=timeout, poll_interval=POLL_SECONDS, key=key)
            except httpx.HTTPError:
                # a run that waits for days must survive a restart of the server
                answer = _resumed(form, key, deadline)
            decision: Literal["promote", "reject"] = "promote" if answer.promote else "reject"
            return ManualDecision(decision=decision, reason=answer.reason, name=answer.name)
        except FlowPauseTimeout:
            return None
        except ValidationError as error:
            first = error.errors()[0]
            problem = inert(f"Rejected: {first['loc'][0]}: {first['msg']}")
            text = f"**{problem}**\n\n{promotion_markdown(promotion, page)}"
    return None


def _resumed(form: type[DecisionForm], key: str, deadline: float) -> DecisionForm:
    """The submitted form of a paused run, once it is resumed; the server may be temporarily unreachable."""
    while time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        with suppress(httpx.HTTPError), get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(str(flow_run.id))).state
            if state is not None and state.is_running():
                return cast("DecisionForm", form.load(keyset_from_base_key(f"paused-{key}")))
    raise FlowPauseTimeout
