"""``salt.serializers.yamlex`` for users' modules: YAML with ``!aggregate`` and ``!reset``, whose values print as YAML."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from statecore.loader.compat.serializers import DeserializationError as DeserializationError
from statecore.loader.compat.serializers import SerializationError as SerializationError
from statecore.loader.compat.serializers import reading, writing
from statecore.model import yaml as _yaml
from statecore.model.aggregation import Map, Sequence
from statecore.model.aggregation import aggregate as _aggregate

available = True


class Dumper(_yaml.SafeDumper):
    """PyYAML dumper that writes maps in their own order, and objects of subclasses of dict, list and str as plain
    YAML.
    """


_PLAIN: dict[type, Callable[..., _yaml.Node]] = {
    bytes: _yaml.SafeDumper.represent_binary,
    dict: lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", list(data.items())),
    list: _yaml.SafeDumper.represent_list,
    set: _yaml.SafeDumper.represent_set,
    # The value itself, as its own text would be YAML with quotes.
    str: lambda dumper, data: _yaml.SafeDumper.represent_str(dumper, str.__str__(data)),
    tuple: _yaml.SafeDumper.represent_list,
}
for _kind, _represent in _PLAIN.items():
    Dumper.add_multi_representer(_kind, _represent)


def serialize(obj: object, **options: object) -> str:
    """Return data as YAML text without the newline at the end. Raise SerializationError for data that YAML cannot
    hold.
    """
    with writing():
        write: Callable[..., str] = _yaml.dump
        text = write(obj, **{"Dumper": Dumper, "default_flow_style": None, **options})
        return text.removesuffix("\n...\n").removesuffix("\n")


class SLSMap(OrderedDict[Any, Any]):
    """A map whose ``str()`` is YAML, for templates that print it."""

    def __str__(self) -> str:
        return serialize(self, default_flow_style=True)

    def __repr__(self) -> str:
        return serialize(self, default_flow_style=True)


class SLSString(str):
    """A text whose ``str()`` is quoted as in YAML, for templates that print it."""

    def __str__(self) -> str:
        return serialize(str.__str__(self), default_style='"')

    def __repr__(self) -> str:
        return str(self)


class AggregatedMap(SLSMap, Map):
    """A map with the tag ``!aggregate``: a later such map of the same key is joined with it instead of replacing it."""


class AggregatedSequence(Sequence):
    """A list with the tag ``!aggregate``: a later such list of the same key is joined with it instead of replacing it."""


class Loader(_yaml.YamlexLoader):
    """PyYAML loader of YAML with ``!aggregate`` and ``!reset``, which makes SLSMap, SLSString, AggregatedMap and
    AggregatedSequence objects.
    """

    map_class = SLSMap
    text_class = SLSString
    aggregated_map = AggregatedMap
    aggregated_sequence = AggregatedSequence


def deserialize(stream_or_string: Any, Loader: type[Any] = Loader) -> object:
    """Return the data of a YAML text or of an open file. Raise DeserializationError if it is not valid YAML or exceeds a
    bound.
    """
    with reading():
        return _yaml.load_by(stream_or_string, Loader)


def merge_recursive(obj_a: object, obj_b: object, level: Any = False) -> Any:
    """Return ``obj_b`` merged over ``obj_a``: maps and lists with the tag ``!aggregate`` are joined. ``level`` says
    for how many levels values are joined although they have no tag.
    """
    return _aggregate(obj_a, obj_b, level, AggregatedMap, AggregatedSequence)
