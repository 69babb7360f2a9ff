"""Known vulnerabilities of the locked packages, where the index answers: `python -m tests.architecture.audit`.

Exit status 0 where every known one is accepted, and where no index answers, which is a warning; 1 otherwise. Accepted
ones are in accepted_vulnerabilities.json with the reason: {"GHSA-…": "why it does not concern us"}.
Options after the lock are pip-audit's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LOCK = HERE.parents[1] / "requirements.lock"
ACCEPTED = HERE / "accepted_vulnerabilities.json"
SECONDS = 8
"""What one question may take."""
UNREACHABLE = ("ConnectionError", "ConnectTimeout", "ReadTimeout", "Max retries exceeded", "ServiceError", "ProxyError")


class NoAnswer(Exception):
    """The index cannot be asked; the message says what came instead."""


def audited(lines: Sequence[str], options: Sequence[str]) -> list[dict[str, Any]]:
    """pip-audit's entry for each requirement. Raises NoAnswer where the index does not answer."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.txt"
        asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(asked), "--disable-pip", "--no-deps"]
        command += ["--format", "json", "--progress-spinner", "off", "--timeout", str(SECONDS), *options]
        done = subprocess.run(command, capture_output=True, text=True)
    try:
        # 1 is also the status of "some are vulnerable"
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no word")
        if any(word in done.stderr for word in UNREACHABLE):
            raise NoAnswer(last.strip()[:160]) from None
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr) from None
    return found


def main(lock: Path, options: Sequence[str], accepted: Mapping[str, str]) -> int:
    """Audit the lock; what it found is printed."""
    locked = [line for line in lock.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    try:
        # one request first: a mirror of files that knows no vulnerabilities would be asked in vain for all of them
        (first,) = audited(locked[:1], options)
        if "skip_reason" in first:
            raise NoAnswer(first["skip_reason"])
        found = audited(locked, options)
    except NoAnswer as silence:
        print(
            f"WARNING: known vulnerabilities of {len(locked)} locked packages were NOT CHECKED: the index does not "
            f"answer ({silence}). Run `make check` where it does before a release",
            file=sys.stderr,
        )
        return 0
    open_ones = 0
    for package in found:
        for flaw in package.get("vulns", []):
            if accepted.keys() & {flaw["id"], *flaw.get("aliases", [])}:
                continue
            open_ones += 1
            fixed = ", ".join(flaw.get("fix_versions", [])) or "no version yet"
            print(f"{package['name']} {package['version']}: {flaw['id']}, fixed in {fixed}")
    known = {name for package in found for flaw in package.get("vulns", []) for name in (flaw["id"], *flaw["aliases"])}
    for name in sorted(accepted.keys() - known):
        print(f"{ACCEPTED.name}: {name} is no longer known of any locked package; take it out")
    skipped = [package["name"] for package in found if "skip_reason" in package]
    unknown = f", {len(skipped)} unknown to the index ({', '.join(skipped[:5])})" if skipped else ""
    print(f"vulnerabilities: {open_ones} open, {len(accepted)} accepted, {len(found)} packages{unknown}")
    return 1 if open_ones else 0


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else LOCK
    sys.exit(main(chosen, sys.argv[2:], json.loads(ACCEPTED.read_text(encoding="utf-8"))))
