"""Attack every opener of model folders, in one process, so that its peak of memory is that of the checks.

python -m tests.safety.attack_every_opener FOLDER      # prints what came of it as JSON
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tests.safety.folder_changes import good_folder
from tests.safety.hostile_folders import HARMLESS, HOSTILE


def attempt(folder: Path) -> dict[str, Any]:
    """Open `folder` with every command and function that opens folders from outside; their messages and seconds."""
    from typer.testing import CliRunner

    from flows.cli.app import app
    from pipelines.errors import CursusError
    from pipelines.recipe.checkpoint import backbone_of
    from pipelines.serving.answering.inference import load_predictor
    from tasks.models.exporting import source_of

    begin = time.monotonic()
    answer = CliRunner().invoke(app, ["predict", "--model", str(folder), "a text"])
    messages = {"predict": answer.stderr if answer.exit_code == 2 else None}
    if answer.exit_code not in (0, 2):
        messages["predict"] = f"exit status {answer.exit_code}: {answer.exception!r}"
    for name, opens in {
        "load_predictor": lambda: load_predictor(folder),
        "recipe": lambda: backbone_of(str(folder)),
        "export": lambda: source_of(folder.parent, str(folder), None, folder.parent),
    }.items():
        try:
            opens()
            messages[name] = None
        except CursusError as error:
            messages[name] = str(error)
    return {"messages": messages, "seconds": time.monotonic() - begin}


def main(scratch: Path) -> None:
    """Attack copies of a good folder in `scratch`, the harmless ones first; print what came of it."""
    os.chdir(scratch)
    good = good_folder(scratch / "good")
    results: dict[str, Any] = {}
    for kinds in (HARMLESS, {name: attack for name, (attack, _) in HOSTILE.items()}):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name, attack in kinds.items():
            folder = scratch / "theirs"
            shutil.copytree(good, folder)
            attack(folder)
            results[name] = attempt(folder)
            shutil.rmtree(folder)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"results": results, "growth": 1024 * (after - before), "harmed": Path("harmed").exists()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
