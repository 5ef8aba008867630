"""Programs run by an ordinary user, where the tests are run by root."""

import functools
import os
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

NOBODY = 65534
HERE = Path(__file__).parent


@functools.cache
def ordinary_python() -> str | None:
    """An interpreter that an ordinary user may run, with what swink needs."""
    for candidate in dict.fromkeys(
        [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3"]
    ):
        try:
            if (
                as_ordinary(
                    [candidate, "-c", "import os, sys, swink.tools; os.execv(sys.executable, ['x', '-V'])"]
                ).returncode
                == 0
            ):
                return candidate
        except OSError:
            continue
    return None


def as_ordinary(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command as this user, to its end."""
    packages = os.pathsep.join([str(HERE.parents[2] / "src"), str(HERE), *site.getsitepackages()])
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "PYTHONPATH": packages,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        command,
        env=environment,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
