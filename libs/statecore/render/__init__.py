"""Rendering: makes the unrefined high data of SLS files. ``tree`` finds SLS files, ``pipe`` runs them through their
renderers.

Source: docs/state-system.md#rendering, docs/state-system.md#sls-rendering.
"""

from __future__ import annotations

from statecore.render.context import SlsSource
from statecore.render.renderers import RENDERERS
from statecore.render.templates import TreeTemplates
from statecore.render.tree import RenderedSls, SlsTree

__all__ = ["RENDERERS", "RenderedSls", "SlsSource", "SlsTree", "TreeTemplates"]
