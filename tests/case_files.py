"""Reads tables of test cases from YAML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def read(path: Path) -> Any:
    """Return the parsed content of a case file.

    libyaml parses it, because each test process reads all of these files and PyYAML's own scanner is ten times slower.
    """
    return yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
