"""``salt.utils.locales``."""

from __future__ import annotations


def get_encodings() -> list[str]:
    """Encodings that a text may have, the likeliest first."""
    return ["utf-8", "latin-1"]


def split_locale(loc: str) -> dict[str, str]:
    """``de_DE.UTF-8@euro UTF-8`` in its parts."""
    rest, _, charmap = loc.partition(" ")
    rest, _, modifier = rest.partition("@")
    rest, _, codeset = rest.partition(".")
    language, _, territory = rest.partition("_")
    return {
        "charmap": charmap,
        "modifier": modifier,
        "codeset": codeset,
        "language": language,
        "territory": territory,
    }


def join_locale(comps: dict[str, str]) -> str:
    """The name of a locale, of its parts."""
    marks = (("_", "territory"), (".", "codeset"), ("@", "modifier"), (" ", "charmap"))
    return comps["language"] + "".join(f"{mark}{comps[part]}" for mark, part in marks if comps.get(part))


def normalize_locale(loc: str) -> str:
    """A locale's name in the form in which two can be compared."""
    comps = split_locale(loc)
    comps["territory"] = comps["territory"].upper()
    comps["codeset"] = comps["codeset"].lower().replace("-", "")
    comps["charmap"] = ""
    return join_locale(comps)
