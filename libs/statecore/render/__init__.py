"""Stage one: SLS files become unrefined high data (seed 000). ``tree`` finds and renders, ``jinja`` and ``yaml`` are the pipe."""

from __future__ import annotations

from statecore.render.tree import RENDERERS, RenderedSls, SlsTree, Source, TreeTemplates

__all__ = ["RENDERERS", "RenderedSls", "SlsTree", "Source", "TreeTemplates"]
