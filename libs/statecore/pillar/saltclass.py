"""The inventory of saltclass: YAML files of nodes and of classes, which hold pillar and SLS names.

``nodes/**/ID.yml`` names the classes of a minion. ``classes/a/b.yml`` or ``classes/a/b/init.yml`` is the class ``a.b``. Each
file is a Jinja template and may have ``classes``, ``pillars``, ``states`` and ``environment``.

Salt: salt/utils/saltclass.py.
"""

from __future__ import annotations

import copy
import glob
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from statecore.model import yaml
from statecore.model.errors import CommandError
from statecore.render.jinja import SaltFunctions
from statecore.render.jinja.closed import ClosedEnvironment
from statecore.render.jinja.variables import Copied

log = logging.getLogger(__name__)

#: Directory without the setting ``path``.
DEFAULT_PATH = "/srv/saltclass"

#: A reference in a text, with the character before it: ``${a:b}``, or ``\${a:b}`` for the text itself.
_REFERENCE = re.compile(r"(\\?)\$\{(.*?)\}")


class Node(NamedTuple):
    """The data of the inventory for one minion: pillar, class names, SLS names and saltenv."""

    pillar: dict[str, object]
    #: Class names, included classes before those that include them.
    classes: list[str]
    #: SLS names, each once.
    states: list[str]
    #: The saltenv, "" if no file names one.
    environment: str

    def as_pillar(self, minion_id: str) -> dict[str, object]:
        """Return the pillar data of the minion; class names, SLS names, saltenv and id are below ``__saltclass__``."""
        about = {"states": self.states, "classes": self.classes, "environment": self.environment, "nodename": minion_id}
        return {"__saltclass__": about, **self.pillar}


def node_of(
    path: str,
    minion_id: str,
    pillar: Mapping[str, object],
    *,
    opts: Mapping[str, object],
    grains: Mapping[str, object],
    functions: Mapping[str, Callable[..., object]],
) -> Node:
    """Return the Node of a minion in the inventory at ``path``; a minion without a file has no classes.

    ``pillar`` is what templates see as ``__pillar__``, to which each file that was read adds. Raise CommandError for a
    file that cannot be read.
    """
    seen = copy.deepcopy(dict(pillar))
    variables = {
        "__opts__": Copied(opts),
        "__salt__": SaltFunctions(functions),
        "__grains__": Copied(grains),
        "__pillar__": seen,
        "minion_id": minion_id,
    }
    return _Inventory(Path(path), seen, variables).node(minion_id)


class _Inventory:
    """Reads those files of a saltclass inventory that concern one minion."""

    def __init__(self, root: Path, seen: dict[str, object], variables: Mapping[str, object]) -> None:
        self._root = root
        self._seen = seen
        self._variables = variables
        #: Class name -> its data, included classes first.
        self._data: dict[str, dict[str, Any]] = {}
        self._begun: set[str] = set()

    def node(self, minion_id: str) -> Node:
        """Read the minion's file and its classes, and return the Node."""
        files = [path for path in sorted((self._root / "nodes").rglob("*.yml")) if path.name == f"{minion_id}.yml"]
        if not files:
            log.warning("saltclass: %s has no node definition below %s/nodes", minion_id, self._root)
        own = self._read(files[-1]) if files else {}
        self._include(own)
        pillar: dict[str, object] = {}
        whole = [*self._data.values(), own]
        for data in whole:
            _merge(pillar, copy.deepcopy(data.get("pillars") or {}))
        states = [str(state) for data in whole for state in data.get("states") or ()]
        environment = next((str(data["environment"]) for data in reversed(whole) if "environment" in data), "")
        return Node(_Expansion(pillar).whole(), list(self._data), list(dict.fromkeys(states)), environment)

    def _include(self, data: Mapping[str, Any]) -> None:
        """Read the files of the classes that ``data``, the content of a file, names. The classes that such a file
        names are read before it is added.
        """
        patterns = data.get("classes") or ()
        for name, path in dict(found for pattern in patterns for found in self._files(str(pattern))).items():
            if name not in self._begun:
                self._begun.add(name)
                inner = self._read(path)
                self._include(inner)
                self._data[name] = inner

    def _files(self, pattern: str) -> Iterator[tuple[str, Path]]:
        """Yield (class name, path of its file) for a class name, or for all classes that a glob matches."""
        classes = self._root / "classes"
        if pattern.startswith("/") or ".." in pattern.split("/") or not pattern.isprintable():
            # Templates of node files may write a grain here.
            raise CommandError(f"saltclass: {ascii(pattern)[:80]} is no name of a class")
        nested = pattern.replace(".", "/")
        found: dict[str, Path] = {}
        for relative in (f"{pattern}.yml", f"{nested}.yml", f"{nested}/init.yml"):
            for path in sorted(glob.glob(str(classes / relative))):  # noqa: PTH207 - a class name may hold special characters
                name = Path(path).relative_to(classes).with_suffix("").as_posix().replace("/", ".")
                found.setdefault(name.removesuffix(".init"), Path(path))
        if not found:
            log.warning("saltclass: there is no class %s below %s", pattern, classes)
        yield from found.items()

    def _read(self, path: Path) -> dict[str, Any]:
        env = ClosedEnvironment(loader=jinja2.FileSystemLoader(path.parent))
        try:
            data = yaml.load(env.get_template(path.name).render(self._variables), yaml.SLS)
        except (OSError, UnicodeDecodeError, jinja2.TemplateError) as error:
            line = f":{error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise CommandError(f"{path}{line} cannot be rendered: {error}") from error
        except yaml.YamlFault as fault:
            raise CommandError(f"{path} is no YAML, line {fault.line} as rendered: {fault}") from fault
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise CommandError(f"{path} must be a map of classes, pillars, states and environment")
        _merge(self._seen, copy.deepcopy(data.get("pillars") or {}))
        return data


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Merge a map over another in place. Lists are joined; a list whose first item is ``^`` replaces the other."""
    for key, value in over.items():
        known = under.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            under[key] = value[1:] if value[:1] == ["^"] else [*known, *value]
        else:
            under[key] = value


class _Expansion:
    """Replaces references such as ``${web:port}`` in the texts of pillar data."""

    def __init__(self, data: dict[str, object]) -> None:
        self._data = data
        self._open: list[str] = []

    def whole(self) -> dict[str, object]:
        """Return the pillar data with all references replaced. A reference to a missing key is left as it is."""
        return {key: self._value(value) for key, value in self._data.items()}

    def _value(self, value: object) -> object:
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return self._text(value) if isinstance(value, str) and "${" in value else value

    def _text(self, text: str) -> object:
        only = _REFERENCE.fullmatch(text)
        if only is not None and not only[1]:
            return self._target(only)
        return _REFERENCE.sub(lambda found: found[0][1:] if found[1] else str(self._target(found)), text)

    def _target(self, found: re.Match[str]) -> object:
        path = found[2]
        value: object = self._data
        for part in path.split(":"):
            if not isinstance(value, Mapping) or part not in value:
                return found[0]
            value = value[part]
        if path in self._open:
            raise CommandError(f"saltclass: references lead in a circle: {' -> '.join([*self._open, path])}")
        self._open.append(path)
        expanded = self._value(value)
        self._open.pop()
        return expanded
