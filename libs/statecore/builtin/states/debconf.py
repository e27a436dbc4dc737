"""Salt's ``debconf`` states: answers to the questions of Debian packages.

    nullmailer-answers:
      debconf.set:
        - name: nullmailer
        - data:
            shared/mailname: {type: string, value: server.example.com}
            nullmailer/relayhost: {type: string, value: mail.example.com}

An installed package takes new answers only when it is reconfigured: ``cmd.run`` of ``dpkg-reconfigure -f noninteractive
PACKAGE`` with ``onchanges``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

ALIASES = {"set": "set_"}


def available(ctx: Context) -> str | None:
    """Return None if the host is a Debian with debconf-utils; else return the reason as text."""
    return None if "debconf.show" in ctx.functions else "debconf needs a Debian with the package debconf-utils"


def set_(ctx: Context, name: str, data: Mapping[str, Mapping[str, object]], **kwargs: object) -> Plan:
    """Set answers to the questions of the Debian package ``name``. Answers that are set already stay; the state fails
    if debconf refuses one. Other arguments are ignored, as in Salt.

    data
        map of question to ``{type: ..., value: ...}``. The value of a boolean is true or false, without quotes.
    """
    known: Sequence[Sequence[str]] = ctx.call("debconf.show", name) or ()
    wanted = {question: (str(row["type"]), _answer(row)) for question, row in data.items()}
    same = [question for question, (type_, value) in wanted.items() if [question, type_, value] in known]
    todo = {question: answer for question, answer in wanted.items() if question not in same}
    if not todo:
        return Plan.unchanged("All specified answers are already set")
    note = "Unchanged answers: " + "".join(f"{question} " for question in same) if same else ""

    def work() -> Outcome:
        changes, done = {}, True
        for question, (type_, value) in todo.items():
            good = ctx.call("debconf.set", name, question, type_, value)
            changes[question] = _shown(type_, value) if good else "Failed to set!"
            done = done and good
        return Outcome(note if done else "Some settings failed to be applied.", changes, ok=done)

    would = {question: f"New value: {_shown(*answer)}" for question, answer in todo.items()}
    return Plan.change(note, [Step(f"set answers of {name}", work)], would)


def set_file(
    ctx: Context,
    name: str,
    source: str,
    template: str | None = None,
    context: object = None,
    defaults: object = None,
    **kwargs: object,
) -> Plan:
    """Set the answers that a file of the state tree lists, in each run. The state fails if debconf refuses the file.

    source
        file of the state tree: lines of package, question, type, value
    template
        the engine that renders the file first: jinja ...
    context, defaults
        variables of the template; ``context`` replaces ``defaults``. Other arguments are variables too.
    """
    for word, value in (("Context", context), ("Defaults", defaults)):
        if value is not None and not isinstance(value, dict):
            return Plan.failed(f"{word} must be formed as a dict")

    def work() -> Outcome:
        given = {"saltenv": ctx.saltenv, **kwargs}
        if template:
            done = ctx.call("debconf.set_template", source, template, context or {}, defaults or {}, **given)
        else:
            done = ctx.call("debconf.set_file", source, **given)
        return Outcome(
            "Debconf selections were set." if done else "Unable to set debconf selections from file.", ok=bool(done)
        )

    return Plan.change("Debconf selections would have been set.", [Step(f"set the answers in {source}", work)])


def _answer(row: Mapping[str, object]) -> str:
    """Return the wanted answer to a question (a map with ``type`` and ``value``) as debconf writes it. Of a boolean,
    any true value is "true".
    """
    value = row["value"]
    if row["type"] == "boolean":
        return "true" if value else "false"
    return str(value)


def _shown(type_: str, value: str) -> str:
    return "(password hidden)" if type_ == "password" else value
