"""The sbatch script of a job: sbatch's options, the environment and paths of the ranks, then `slurm.sh` unchanged.

The shell part has no placeholders: everything that varies is assigned to variables above it, each value quoted, so that
nothing a user writes in params.yaml is ever interpreted as shell code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from pipelines.errors import StageError

SHELL_SCRIPT = Path(__file__).with_name("slurm.sh")


def render(options: Mapping[str, str], environment: Mapping[str, str], values: Mapping[str, Path | str]) -> str:
    """The script with the long sbatch `options`, which starts ranks with `environment`; the shell part reads `values`.

    Raises StageError for a value with a line break, which sbatch cannot quote.
    """
    for name, value in {**options, **environment, **values}.items():
        if re.search(r"[\r\n\0]", str(value)):
            raise StageError(f"launcher slurm: {name} has a line break, which an sbatch script cannot hold: {value!r}")
    return "\n".join(
        [
            "#!/bin/bash",
            *(
                f"#SBATCH --{name}={shlex.quote(value)}" if value else f"#SBATCH --{name}"
                for name, value in options.items()
            ),
            "",
            *(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
            *(f"{name}={shlex.quote(str(value))}" for name, value in values.items()),
            "",
            SHELL_SCRIPT.read_text(encoding="utf-8"),
        ]
    )


def file_pattern(path: Path) -> str:
    """`path` as an sbatch filename pattern, with `%` escaped. Raises StageError for a backslash, which disables
    escaping."""
    if "\\" in str(path):
        raise StageError(f"{path}: Slurm cannot write a log to a path with a backslash; move the project")
    return str(path).replace("%", "%%")
