"""Named arguments of jobs.* with dashes: ``--failed`` is ``failed=True``, ``--limit 5`` and ``--limit=5`` are ``limit=5``. Pure.

Only after the function's name, and only names that are in the table: a mistyped option of ``salt-run`` stays a mistyped option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.model.named_tuple import NamedTuple


class Names(NamedTuple):
    """What may be written with dashes."""

    #: No value follows: True.
    flags: tuple[str, ...] = ()
    #: A value follows.
    words: tuple[str, ...] = ()


_FILTERS = ("after", "before", "limit", "cursor", "function", "minion", "user", "target", "success", "state")

DASHED: Mapping[str, Names] = {
    "jobs.export": Names(("returns",), ("file", *_FILTERS)),
    "jobs.list_jobs": Names((), _FILTERS),
    "jobs.list_jobs_filter": Names((), tuple(name for name in _FILTERS if name != "limit")),
    "jobs.rerun": Names(("failed", "lost", "all")),
    "jobs.stats": Names((), ("window", "rows", *_FILTERS)),
}


def undashed(argv: Sequence[str]) -> list[str]:
    """The command line with named arguments in the form that every runner takes."""
    at = next((at for at, word in enumerate(argv) if word in DASHED), None)
    if at is None:
        return list(argv)
    names = DASHED[argv[at]]
    words = list(argv[: at + 1])
    rest = iter(argv[at + 1 :])
    for word in rest:
        name, equals, value = word[2:].partition("=") if word.startswith("--") else ("", "", "")
        name = name.replace("-", "_")
        if name in names.flags:
            words.append(f"{name}={value}" if equals else f"{name}=True")
        elif name in names.words:
            following = value if equals else next(rest, None)
            # What has no value is for the parser to complain about.
            words.append(word if following is None else f"{name}={following}")
        else:
            words.append(word)
    return words
