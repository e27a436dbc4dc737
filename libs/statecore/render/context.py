"""Types of rendering: the SLS file to render, the context that every renderer gets, and the renderer itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from statecore.model.ports import Files
from statecore.render.jinja import Jinja
from statecore.render.memory import RenderMemory
from statecore.render.yaml_cache import YamlCache


class SlsSource(NamedTuple):
    """An SLS file before rendering: its SLS reference, its paths and its text."""

    sls: str
    saltenv: str
    #: Path in the tree, such as ``web/init.sls``.
    path: str
    #: Path on disk.
    file: str
    #: The file's text. Bytes that are not UTF-8 (msgpack) are decoded with ``surrogateescape``.
    text: str
    #: The file's name in messages: its path on disk, or its salt:// URL if that path is in a minion's cache.
    shown: str


class StateNames(Protocol):
    """Interface of an object that lists the state modules of a minion and their functions, for SLS files in Python."""

    def files(self) -> Collection[str]:
        """Return the file names (without suffix) of all state modules, built-in and users'. No module is loaded."""
        ...

    def functions(self, module: str) -> Collection[str]:
        """Return the names of the functions of a state module; an empty list if this minion cannot use the module."""
        ...


class RenderContext(NamedTuple):
    """Data that each renderer gets for one SLS file: the file, the state tree, the template variables and the options."""

    source: SlsSource
    files: Files
    #: The template's variables.
    names: Mapping[str, object]
    opts: Mapping[str, object]
    jinja: Jinja
    #: Jinja's options for this file.
    jinja_options: Mapping[str, object]
    yaml_cache: YamlCache
    #: Returns the renderer of a name, a user's or built in; None if there is none.
    renderer: Callable[[str], Renderer | None]
    #: Data that renderers keep between the files of one state tree, by the renderer's name.
    kept: dict[str, object]
    #: The text after the renderer's name in the file's first line.
    arguments: str = ""
    #: Cache shared with other renderings, or None.
    memory: RenderMemory | None = None
    #: The minion's state modules; None if no states can be declared (pillar).
    states: StateNames | None = None


#: A renderer: takes the previous renderer's output and the context, returns its own output. Raises TemplateFault or
#: DataFault.
Renderer: TypeAlias = Callable[[object, RenderContext], object]
