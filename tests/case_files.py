"""Reading the tables of cases that tests have in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def read(path: Path) -> Any:
    """What a file of cases holds.

    By libyaml: each process that runs tests reads all of these files, for which PyYAML's own scanner takes ten times as long.
    """
    return yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
