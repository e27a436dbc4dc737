"""The rules of ``statecore check``: one row for each kind of finding, with its severity, title and advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """Severity of a finding. The values are SARIF's ``level`` values."""

    #: The run would not start, or the state would fail.
    ERROR = "error"
    #: The state runs, but probably not as intended, or only on some minions.
    WARNING = "warning"
    #: Information; no change is needed.
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of problem that ``statecore check`` reports: its severity, its title and its advice."""

    level: Level
    #: One line for a list of rules.
    title: str
    #: What to do about it.
    advice: str


_E, _W, _N = Level.ERROR, Level.WARNING, Level.NOTE

#: Rule name -> rule. CI configurations and SARIF viewers store these names, so they must not change.
RULES: Mapping[str, Rule] = {
    "render": Rule(
        _E, "An SLS file cannot be rendered", "Correct the template or the YAML at the line that the message names."
    ),
    "top": Rule(
        _E, "The top file is malformed", "Write a map of saltenv to targets, and for each target a list of SLS files."
    ),
    "missing-sls": Rule(_E, "A referenced SLS file does not exist", "Correct the reference, or create the file."),
    "include": Rule(
        _E, "An include is malformed, or its saltenv does not exist", "Write a list of SLS files of this state tree."
    ),
    "duplicate-id": Rule(
        _E, "An ID is declared more than once", "Rename one of the IDs: each ID must be unique in a state run."
    ),
    "shape": Rule(
        _E,
        "A state declaration is malformed",
        "Write a map of states for each ID, and for each state a list with exactly one function.",
    ),
    "extend": Rule(
        _E, "An extend names an ID that is not in the state run", "Include the SLS file that declares the ID."
    ),
    "requisite": Rule(_E, "A requisite is malformed", "Write a list of references of the form 'state module: ID'."),
    "requisite-to-nothing": Rule(
        _E,
        "A requisite names a state that does not exist",
        "Correct the ID, or include the SLS file that declares the state.",
    ),
    "cycle": Rule(_E, "Requisites form a cycle", "Remove one of the requisites that the message lists."),
    "contradiction": Rule(
        _E,
        "Two requisites of a state cannot both be met",
        "Remove one of the two requisites: with both, the state never runs.",
    ),
    "unknown-function": Rule(
        _E, "A state function does not exist", "Correct the function's name, or add the state module to the state tree."
    ),
    "unknown-argument": Rule(
        _E, "A state function does not accept an argument", "Correct the argument's name, or remove the argument."
    ),
    "missing-argument": Rule(_E, "A required argument of a state function is missing", "Add the argument."),
    "pillar": Rule(_E, "The pillar does not compile", "Correct the pillar: no state runs while the pillar has errors."),
    "compile": Rule(_E, "The state tree does not compile", "Correct the fault that the message describes."),
    "never-runs": Rule(
        _W,
        "A state never runs",
        "Remove the state or its requisite: the state waits for a change or a failure that cannot occur.",
    ),
    "unmatched-glob": Rule(
        _W,
        "The pattern of a requisite matches no state",
        "Correct the pattern: a requisite without a matching state is ignored.",
    ),
    "needs-other-sls": Rule(
        _W,
        "An SLS file uses an ID of another SLS file without including it",
        "Include the other SLS file, so that this file can also run alone.",
    ),
    "undefined-name": Rule(
        _W,
        "A template uses an undefined variable",
        "Define the variable, or correct its name: rendering this part of the template fails.",
    ),
    "unknown-salt-function": Rule(
        _W,
        "A template calls an execution function that does not exist",
        "Correct the function's name: the call fails when the template is rendered.",
    ),
    "undefined-pillar-key": Rule(
        _W,
        "A template reads a pillar key that does not exist",
        "Add the key to the pillar, or give a default value in the template.",
    ),
    "old-form": Rule(_W, "A deprecated function or form is used", "Use the replacement that the message names."),
    "empty-condition": Rule(
        _W, "A condition (onlyif, unless, creates, check_cmd) is empty", "Add a condition, or remove the argument."
    ),
    "unquoted-mode": Rule(
        _W, "A file mode is not quoted", "Quote the mode ('0644'): YAML reads 0644 without quotes as a number."
    ),
    "unquoted-version": Rule(
        _W, "A version is not quoted", "Quote the version ('1.10'): YAML reads 1.10 without quotes as the number 1.1."
    ),
    "not-rendered": Rule(
        _N,
        "A part of an untrusted tree was not rendered, because its code is not run",
        "Nothing, or check your own tree without --untrusted: it then runs the functions that templates call.",
    ),
    "watch-without-reaction": Rule(
        _N,
        "A watch is used on a state module without mod_watch",
        "Use require instead: without mod_watch, a watch has the same effect.",
    ),
}
