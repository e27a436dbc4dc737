"""``salt.serializers.configparser`` for users' modules: INI files."""

from __future__ import annotations

import configparser as _configparser
import io
from collections.abc import Callable, Iterable, Mapping
from typing import IO

from statecore.loader.compat.serializers import reading, writing


def _parser(options: Mapping[str, object]) -> _configparser.ConfigParser:
    """Return an empty parser of INI files. ``options`` are arguments of Python's ConfigParser."""
    make: Callable[..., _configparser.ConfigParser] = _configparser.ConfigParser
    return make(**options)


def deserialize(stream_or_string: str | Iterable[str], **options: object) -> dict[str, dict[str, str]]:
    """Return the content of an INI text or open file as {section: {option: value}}. Raise DeserializationError if it is
    not in the INI format.

    ``options`` are arguments of Python's ConfigParser.
    """
    with reading():
        parser = _parser(options)
        parser.read_file(io.StringIO(stream_or_string) if isinstance(stream_or_string, str) else stream_or_string)
        return {section: dict(parser.items(section)) for section in parser.sections()}


def serialize(obj: object, *, fp: IO[str] | None = None, **options: object) -> str | None:
    """Return {section: {option: value}} as INI text, or write it to the open file ``fp`` and return None. Raise
    SerializationError if the data has another form.

    ``options`` are arguments of Python's ConfigParser.
    """
    with writing():
        if not isinstance(obj, dict):
            raise TypeError(f"configparser can only serialize dictionaries, not {type(obj)}")
        parser = _parser(options)
        for section, values in obj.items():
            if str(section) != parser.default_section:
                parser.add_section(str(section))
            for name, value in values.items():
                parser.set(str(section), parser.optionxform(str(name)), None if value is None else str(value))
        if fp is not None:
            parser.write(fp)
            return None
        text = io.StringIO()
        parser.write(text)
        return text.getvalue()
