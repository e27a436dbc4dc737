"""YAML: the parser, its bounds, and a table of dialects. Only this package imports PyYAML.

``load(text, DIALECT)`` reads, ``dump`` writes. Every document is bounded before a value is built (``bounds``), and is
read in linear time. No number is read in base 60.
"""

from __future__ import annotations

from yaml import YAMLError, parser, scanner
from yaml.events import ScalarEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from statecore.model.yaml.bounds import BoundExceeded, Bounds, YamlFault
from statecore.model.yaml.loaders import BoundedLoader, SaltLoader
from statecore.model.yaml.reading import (
    ARGUMENT,
    DIALECTS,
    PARSER,
    PLAIN,
    REQUEST,
    SALT,
    SLS,
    YAMLEX,
    Dialect,
    compose,
    events,
    key_lines,
    key_positions,
    load,
    load_by,
)
from statecore.model.yaml.writing import Dumper, FastDumper, SafeDumper, SafeRepresenter, dump
from statecore.model.yaml.yamlex import YamlexLoader

__all__ = [
    "ARGUMENT",
    "DIALECTS",
    "PARSER",
    "PLAIN",
    "REQUEST",
    "SALT",
    "SLS",
    "YAMLEX",
    "BoundExceeded",
    "BoundedLoader",
    "Bounds",
    "Dialect",
    "Dumper",
    "FastDumper",
    "MappingNode",
    "Node",
    "SafeDumper",
    "SafeRepresenter",
    "SaltLoader",
    "ScalarEvent",
    "ScalarNode",
    "SequenceNode",
    "YAMLError",
    "YamlFault",
    "YamlexLoader",
    "compose",
    "dump",
    "events",
    "key_lines",
    "key_positions",
    "load",
    "load_by",
    "parser",
    "scanner",
]
