"""The renderer ``toml``: the tables of a TOML text."""

from __future__ import annotations

import re
from typing import Any

from statecore.render.faults import DataFault
from statecore.render.stage import RenderContext

_LINE = re.compile(r"\(at line (\d+)")


def render(data: Any, stage: RenderContext) -> dict[str, Any]:
    """The document."""
    import tomllib  # few trees use it

    try:
        return tomllib.loads(str(data))
    except RecursionError as error:
        raise DataFault("not TOML: it nests too deep", 0) from error
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        # At the end of the document it names no line.
        raise DataFault(f"not TOML: {error}", int(found[1]) if found else str(data).count("\n")) from error
