"""A file on its way through the renderers: what it is, and what a renderer works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from statecore.model.named_tuple import NamedTuple
from statecore.model.ports import Files
from statecore.render.jinja import Jinja
from statecore.render.kept_yaml import KeptYaml
from statecore.render.memory import RenderMemory


class SlsSource(NamedTuple):
    """An SLS file as it was found."""

    sls: str
    saltenv: str
    #: Path in the tree, ``web/init.sls``.
    path: str
    #: Path on disk.
    file: str
    #: Bytes that are no text (msgpack) are surrogates, as ``surrogateescape`` makes them.
    text: str
    #: How people are told of it: by its path on disk, or by its URL where that path is a minion's cache.
    shown: str


class RenderContext(NamedTuple):
    """What a renderer works with besides the data."""

    source: SlsSource
    files: Files
    #: Everything that a template sees by name.
    names: Mapping[str, Any]
    opts: Mapping[str, Any]
    jinja: Jinja
    #: Jinja's options for this file.
    jinja_options: Mapping[str, Any]
    kept: KeptYaml
    #: What stands behind the renderer's name in the shebang.
    arguments: str = ""
    #: What renderings have in common; None where nothing is shared.
    memory: RenderMemory | None = None


#: What came out of the renderer before, and where it is -> what comes out of this one. Raises TemplateFault or DataFault.
Renderer: TypeAlias = Callable[[Any, RenderContext], Any]
