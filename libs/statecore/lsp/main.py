"""Starts the language server for the command ``statecore lsp``, which imports this module by its name."""

from __future__ import annotations

from statecore.lsp.server import serve
from statecore.lsp.settings import Settings


def run(file_roots: dict[str, list[str]], pillar: str, grains: str, id: str, trust: bool) -> None:
    """Serve one editor on stdin and stdout until it ends. Paths are absolute; "" and {} leave a setting to the editor."""
    serve(Settings(file_roots, pillar, grains, id, trust=trust))
