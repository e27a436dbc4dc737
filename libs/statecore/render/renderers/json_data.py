"""The renderer ``json``: the data of a JSON text."""

from __future__ import annotations

import json
from typing import Any

from statecore.render.faults import DataFault
from statecore.render.stage import RenderContext


def render(data: Any, stage: RenderContext) -> Any:
    """The value; {} of nothing."""
    text = str(data)
    if text.startswith("#!"):
        # JSON has no comments. The empty line keeps the numbers of the others.
        text = "\n" + text.partition("\n")[2]
    try:
        return json.loads(text) if text.strip() else {}
    except RecursionError as error:
        raise DataFault("not JSON: it nests too deep", 0) from error
    except ValueError as error:
        raise DataFault(f"not JSON: {error}", getattr(error, "lineno", 0)) from error
