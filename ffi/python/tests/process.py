"""Processes to look at the end of."""

import os
import subprocess
import sys
from pathlib import Path


def ended(lines, *arguments):
    """The exit status of a process of lines of Python, and what it writes to its two outputs."""
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    command = [sys.executable, "-c", "\n".join(lines), *arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    return process.returncode, process.stdout.split(), process.stderr
