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
    """One kind of finding: its severity, its title and its advice."""

    level: Level
    #: One line for a list of rules.
    title: str
    #: What to do about it.
    advice: str


_E, _W, _N = Level.ERROR, Level.WARNING, Level.NOTE

#: Rule name -> rule. CI configurations and SARIF viewers store these names, so they must not change.
RULES: Mapping[str, Rule] = {
    "render": Rule(_E, "An SLS does not render", "Repair the template or the YAML at the place named."),
    "top": Rule(_E, "The top file is wrong", "A top file maps environments to targets to lists of SLS references."),
    "missing-sls": Rule(_E, "An SLS is named that is not there", "Correct the reference, or add the file."),
    "include": Rule(_E, "An include cannot be followed", "Include a list of SLS references of this tree."),
    "duplicate-id": Rule(_E, "An ID is declared twice", "Rename one of the two; IDs are unique in a run."),
    "shape": Rule(_E, "High data does not have its shape", "An ID holds states; a state is a list with one function."),
    "extend": Rule(_E, "An ID is extended that is not in the run", "Include the SLS that declares it."),
    "requisite": Rule(_E, "A requisite is malformed", "Write a list of 'module: ID'."),
    "requisite-to-nothing": Rule(_E, "A requisite names nothing", "Name an ID of the run, or include its SLS."),
    "cycle": Rule(_E, "Requisites lead back to where they began", "Take one requisite out of the ring."),
    "contradiction": Rule(_E, "Requisites contradict each other", "The state can never run: drop one of the two."),
    "unknown-function": Rule(_E, "There is no such state function", "Correct its name, or add the state module."),
    "unknown-argument": Rule(_E, "The state function has no such argument", "Correct the argument's name."),
    "missing-argument": Rule(_E, "A required argument is missing", "Give it."),
    "pillar": Rule(_E, "The pillar does not compile", "Repair the pillar SLS; no state runs before."),
    "compile": Rule(_E, "The tree does not compile", "See the message."),
    "never-runs": Rule(_W, "A state can never run", "What it waits for never happens; drop it or the requisite."),
    "unmatched-glob": Rule(_W, "A requisite's pattern matches nothing", "It is silently met; correct the pattern."),
    "needs-other-sls": Rule(_W, "An SLS needs another that it does not include", "Include it, so that it runs alone."),
    "undefined-name": Rule(_W, "A template uses a name that nothing defines", "Rendering this part fails."),
    "unknown-salt-function": Rule(_W, "A template calls a function that does not exist", "Calling it fails."),
    "undefined-pillar-key": Rule(_W, "A pillar key is read that is not there", "Give it, or give a default."),
    "old-form": Rule(_W, "A deprecated form", "Use the form that the message names."),
    "empty-condition": Rule(_W, "A condition with nothing in it", "It decides nothing; drop it or fill it in."),
    "unquoted-mode": Rule(_W, "A file mode without quotes", "YAML reads 0644 as a number: write '0644'."),
    "unquoted-version": Rule(_W, "A version without quotes", "YAML reads 1.10 as 1.1: write '1.10'."),
    "watch-without-reaction": Rule(_N, "A watch of a state that cannot react", "It means require; say so."),
}
