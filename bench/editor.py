"""How fast the language server answers on a tree of 500 SLS: ``python -m bench.editor``. Prints a table in Markdown."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.statecore.lsp.conftest import Editor

_ROUNDS = 50

_STATE = """
id-{i}-{j}:
  file.managed:
    - name: /etc/x{i}-{j}
    - source: salt://m{m}/files/x
    - mode: '0644'
    - contents: {{{{ pillar['a']['b{j}'] }}}}
    - require:
      - file: id-{i}-{before}
"""


def plant(folder: Path, files: int) -> None:
    """Writes a tree of so many SLS with ten states each, and a pillar tree."""
    for i in range(files):
        path = folder / f"srv/salt/m{i % 25}/s{i}.sls"
        path.parent.mkdir(parents=True, exist_ok=True)
        states = "".join(_STATE.format(i=i, j=j, m=i % 25, before=max(j - 1, 0)) for j in range(10))
        path.write_text(f"include:\n  - m{(i + 1) % 25}.s{(i + 1) % files}\n{states}")
    pillar = folder / "srv/pillar"
    pillar.mkdir(parents=True)
    (pillar / "top.sls").write_text("base:\n  '*': [a]\n")
    (pillar / "a.sls").write_text("a:\n" + "".join(f"  b{j}: {j}\n" for j in range(10)))
    (folder / "grains.yaml").write_text("id: web1\nos: Debian\n")


def measured(ask: Callable[[], object]) -> tuple[float, float]:
    """Median and worst of the answers, in milliseconds; the first five are left out."""
    times = []
    for _ in range(_ROUNDS + 5):
        started = time.perf_counter()
        ask()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[5:]), max(times[5:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        plant(folder, given.files)
        started = time.perf_counter()
        editor = Editor(folder, settings={"grains": "grains.yaml"})
        last = f"m{(given.files - 1) % 25}.s{given.files - 1}"
        editor.wait_until_known("srv/salt/new.sls", f"include:\n  - {last}█", last)
        ready = time.perf_counter() - started
        # The import of modules goes on for some seconds.
        time.sleep(10)
        path = "srv/salt/m0/s0.sls"
        text = (folder / path).read_text()
        rows = {
            "completion of arguments": lambda: editor.labels(path, f"{text}x:\n  file.managed:\n    - █"),
            "completion of 5,000 IDs": lambda: editor.labels(
                path, f"{text}x:\n  file.managed:\n    - require:\n      - file: id-4█"
            ),
            "completion of SLS names": lambda: editor.labels(path, text.replace("include:\n", "include:\n  - █\n", 1)),
            "completion of pillar keys": lambda: editor.labels(path, text.replace("['b3']", "['█']", 1)),
            "hover on a state": lambda: editor.hover(path, text.replace("file.managed", "file.man█aged", 1)),
            "definition of an ID": lambda: editor.definition(path, text.replace("file: id-0-3", "file: id-0█-3", 1)),
            "references of an ID": lambda: editor.references(path, text.replace("id-0-3:", "id-0█-3:", 1)),
            "outline": lambda: editor.symbols(path, text),
            "format": lambda: editor.format(path, text),
        }
        print(f"trees read {ready:.1f} s after the start\n")
        print("| Request, with a changed document before it | Median | Worst |")
        print("|---|---|---|")
        for name, ask in rows.items():
            median, worst = measured(ask)
            print(f"| {name} | {median:.1f} ms | {worst:.1f} ms |", flush=True)
        started = time.perf_counter()
        editor.problems(path, f"{text}\n# changed\n")
        print(f"\nfindings {time.perf_counter() - started:.1f} s after the last key")
        editor.end()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
