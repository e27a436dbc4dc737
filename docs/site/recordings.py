"""Draws recorded terminals as SVG: ``.docs/bin/python docs/site/recordings.py TRANSCRIPT``; tests/tutorial/record.py plays them."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parents[1] / "recordings"

#: Columns of the terminal.
_WIDTH = 100


def picture(name: str, title: str, lines: list[str]) -> str:
    """Return the SVG of a terminal that shows ``lines``, which may have ANSI colours. It loads nothing from anywhere."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(line), overflow="fold")
    svg = console.export_svg(title=title, unique_id=name)
    # Rich's picture would fetch its letters from the network.
    return re.sub(r"\s*@font-face \{.*?\n\s*\}", "", svg, flags=re.DOTALL).replace("Fira Code", "ui-monospace")


def main() -> int:
    """Write a picture for each recording of the transcript."""
    HERE.mkdir(exist_ok=True)
    for name, recording in json.loads(Path(sys.argv[1]).read_text("utf-8")).items():
        (HERE / f"{name}.svg").write_text(picture(name, recording["title"], recording["lines"]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
