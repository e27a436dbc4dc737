"""``salt.serializers.configparser``."""

from __future__ import annotations

import configparser as _configparser
import io
from typing import Any

from statecore.loader.compat.serializers import reading, writing


def deserialize(stream_or_string: Any, **options: Any) -> dict[str, dict[str, str]]:
    """Section -> option -> value."""
    with reading():
        parser = _configparser.ConfigParser(**options)
        parser.read_file(io.StringIO(stream_or_string) if isinstance(stream_or_string, str) else stream_or_string)
        return {section: dict(parser.items(section)) for section in parser.sections()}


def serialize(obj: Any, **options: Any) -> Any:
    """A map of maps as text, or into the file ``fp``."""
    with writing():
        if not isinstance(obj, dict):
            raise TypeError(f"configparser can only serialize dictionaries, not {type(obj)}")
        file = options.pop("fp", None)
        parser = _configparser.ConfigParser(**options)
        for section, values in obj.items():
            if str(section) != parser.default_section:
                parser.add_section(str(section))
            for name, value in values.items():
                parser.set(str(section), parser.optionxform(str(name)), None if value is None else str(value))
        out = file if file is not None else io.StringIO()
        parser.write(out)
        return None if file is not None else out.getvalue()
