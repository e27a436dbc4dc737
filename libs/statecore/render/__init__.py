"""Stage one: SLS files become unrefined high data (seed 000). ``tree`` finds and renders, ``jinja`` and ``yaml`` are the pipe."""

from __future__ import annotations

from statecore.render.renderers import RENDERERS
from statecore.render.stage import SlsSource
from statecore.render.templates import TreeTemplates
from statecore.render.tree import RenderedSls, SlsTree

__all__ = ["RENDERERS", "RenderedSls", "SlsSource", "SlsTree", "TreeTemplates"]
