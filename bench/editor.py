"""How fast the language server answers on a tree of 500 SLS: ``python -m bench.editor``. Prints a table in Markdown."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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


class Client:
    """The server, and its answers as they come over the pipe: no types are made of them, as that takes longer than the answer."""

    def __init__(self, folder: Path) -> None:
        code = "from statecore.analysis.commands.main import main; raise SystemExit(main())"
        self._server = subprocess.Popen(
            [sys.executable, "-c", code, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0
        self._version = 0
        options = {"grains": "grains.yaml"}
        self.ask(
            "initialize",
            {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}, "initializationOptions": options},
        )
        self.tell("initialized", {})

    def tell(self, method: str, params: object, **more: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()

    def ask(self, method: str, params: object) -> Any:
        self._number += 1
        self.tell(method, params, id=self._number)
        while True:
            message = self._read()
            if message.get("id") == self._number and "method" not in message:
                return message.get("result")

    def findings(self, version: int) -> None:
        """Waits for the findings of a version of the document."""
        while True:
            message = self._read()
            if (
                message.get("method") == "textDocument/publishDiagnostics"
                and message["params"].get("version") == version
            ):
                return

    def _read(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        length = 0
        while (line := self._server.stdout.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        found: dict[str, Any] = json.loads(self._server.stdout.read(length))
        return found

    def show(self, uri: str, text: str) -> int:
        """Opens or changes the document; returns its version."""
        self._version += 1
        if self._version == 1:
            self.tell(
                "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "sls", "version": 1, "text": text}}
            )
        else:
            document = {"uri": uri, "version": self._version}
            self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self._version

    def end(self) -> None:
        self.ask("shutdown", None)
        self.tell("exit", None)
        self._server.wait()


def measured(client: Client, uri: str, method: str, marked: str) -> list[float]:
    """Milliseconds of each answer at the cursor of a document that changed just before."""
    before, _, after = marked.partition("█")
    lines = before.split("\n")
    params = {
        "textDocument": {"uri": uri},
        "position": {"line": len(lines) - 1, "character": len(lines[-1])},
        "context": {"includeDeclaration": True, "triggerKind": 1},
        "options": {"tabSize": 2, "insertSpaces": True},
    }
    times = []
    for number in range(_ROUNDS + 3):
        text = f"{before}{after}\n# {number}\n"
        started = time.perf_counter()
        client.show(uri, text)
        client.ask(method, params)
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times[3:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--wait", type=float, default=15, help="seconds until modules are imported (default: 15)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        plant(folder, given.files)
        path = folder / "srv/salt/m0/s0.sls"
        uri, text = path.as_uri(), path.read_text()
        client = Client(folder)
        client.findings(client.show(uri, text))
        time.sleep(given.wait)
        rows = {
            "completion of arguments": ("completion", f"{text}x:\n  file.managed:\n    - █"),
            "completion of 5,000 IDs": (
                "completion",
                f"{text}x:\n  file.managed:\n    - require:\n      - file: id-4█",
            ),
            "completion of 500 SLS": ("completion", text.replace("include:\n", "include:\n  - █\n", 1)),
            "completion of pillar keys": ("completion", text.replace("['b3']", "['█']", 1)),
            "definition of an ID": ("definition", text.replace("file: id-0-3", "file: id-0█-3", 1)),
            "references of an ID": ("references", text.replace("id-0-3:", "id-0█-3:", 1)),
            "outline": ("documentSymbol", f"{text}█"),
            "formatting": ("formatting", f"{text}█"),
        }
        print("| Request, after a change of the document | Median | 9 of 10 |")
        print("|---|---|---|")
        for name, (method, marked) in rows.items():
            times = measured(client, uri, f"textDocument/{method}", marked)
            print(f"| {name} | {statistics.median(times):.1f} ms | {times[len(times) * 9 // 10]:.1f} ms |", flush=True)
        started = time.perf_counter()
        client.findings(client.show(uri, f"{text}\n# changed\n"))
        print(f"\nfindings {time.perf_counter() - started:.1f} s after the last key")
        client.end()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
