"""``salt.utils.locales`` for users' modules: names of locales."""

from __future__ import annotations


def get_encodings() -> list[str]:
    """Return the list of encodings to try for a text, the most probable first: utf-8, latin-1."""
    return ["utf-8", "latin-1"]


def split_locale(loc: str) -> dict[str, str]:
    """Return the parts of a locale's name such as ``de_DE.UTF-8@euro UTF-8`` as a map: language, territory, codeset,
    modifier and charmap.
    """
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
    """Return the name of a locale from its parts (language, territory, codeset, modifier, charmap). Empty parts are
    left out.
    """
    marks = (("_", "territory"), (".", "codeset"), ("@", "modifier"), (" ", "charmap"))
    return comps["language"] + "".join(f"{mark}{comps[part]}" for mark, part in marks if comps.get(part))


def normalize_locale(loc: str) -> str:
    """Return a locale's name in a normal form (``de_DE.utf8``), so that two names can be compared."""
    comps = split_locale(loc)
    comps["territory"] = comps["territory"].upper()
    comps["codeset"] = comps["codeset"].lower().replace("-", "")
    comps["charmap"] = ""
    return join_locale(comps)
