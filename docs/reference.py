"""Writes the pages that tables of the code say better than anybody: ``python docs/reference.py`` (or `make reference`).

tests/test_reference.py holds the pages against the tables. Those of modules and states are one each, below docs/reference/, of the
docstrings that ``sys.doc`` shows; they are not kept in git, nor are the JSON Schemas of configuration files for editors.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from masterstore import keys
from saltern.api.settings import ApiSettings
from saltern.cli import cp, eventlisten, key_options, request, run
from saltern.cli.complete import NAMES
from saltern.entry import COMMANDS
from saltern.kit.command.command_line import LOG_LEVELS, CommandParser
from saltern.kit.command.output import OUTPUTTERS
from saltern.kit.config import value_types
from saltern.kit.config.master import MasterOptions, StateOptions
from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.option_fields import Values
from saltern.kit.config.schemas import schemas
from saltern.kit.process.exposition import collector_rows, process_rows
from saltern.kit.process.metrics import SERVED_BY, new_metrics
from saltern.minion.call import call
from saltern.mworker.commands.keys import WHEELS
from saltern.mworker.commands.wheel import FUNCTIONS
from saltern.mworker.runners.table import RUNNERS
from saltern.mworker.worker_processes import worker_rows
from statecore.analysis.rules import RULES
from statecore.loader import LoadedModule, Loader

HERE = Path(__file__).resolve().parent

#: Commands whose options shells complete.
PARSERS: Mapping[str, Callable[[], CommandParser]] = {
    "eventlisten": eventlisten.parser,
    "salt": request.parser,
    "salt-call": call.parser,
    "salt-cp": cp.parser,
    "salt-key": key_options.parser,
    "salt-run": run.parser,
}


def config_page() -> str:
    """docs/config.md: every option with its type, default and sentence."""
    shared = {item.name for item in dataclasses.fields(StateOptions)}
    parts = [
        "# Options",
        "",
        "Generated from the options in `services/saltern/kit` by `make reference`. Names are Salt's where Salt has the option.",
        "",
        "A value comes from, later wins: the default; `<config dir>/master` (or `minion`); `<file>.d/*.conf` in the order of",
        "names; the environment (`SALTERN_<OPTION>` in capitals, the value as YAML; `SALTERN_<OPTION>_FILE`, the path",
        "of a file that holds it, as a mounted secret does). The configuration directory is",
        "`--config-dir`, else `SALT_CONFIG_DIR`, else `/etc/salt`. An option that does not exist is an error that names",
        "the nearest one.",
        "",
        "## Master: every role, and the operators' commands",
        "",
        *_rows(MasterOptions, lambda name: name not in shared),
        "",
        "## Minion and salt-call",
        "",
        *_rows(MinionOptions, lambda name: name not in shared),
        "",
        "## Both",
        "",
        *_rows(StateOptions, lambda name: True),
        "",
        "## The API: the map `rest_cherrypy`",
        "",
        *_rows(ApiSettings, lambda name: True),
    ]
    return "\n".join(parts) + "\n"


def _rows(kind: type[Values], wanted: Callable[[str], bool]) -> list[str]:
    hints = typing.get_type_hints(kind)
    defaults = kind()
    rows = ["| Option | Default | Type | |", "|---|---|---|---|"]
    for item in sorted(dataclasses.fields(kind), key=lambda each: each.name):
        if wanted(item.name):
            value = _cell(repr(getattr(defaults, item.name)))
            rows.append(
                f"| `{item.name}` | `{value}` | {_cell(_type(hints[item.name]))} | {_cell(item.metadata['doc'])} |"
            )
    return rows


def _type(hint: object) -> str:
    return value_types.named(hint)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def metrics_page() -> str:
    """docs/metrics.md: every metric with its kind, labels and sentence, and the roles that serve it."""
    metrics = new_metrics("")
    rows = [
        (metric.name, metric.kind, ", ".join(metric.label_names), ", ".join(sorted(roles)), metric.doc)
        for field, roles in SERVED_BY.items()
        for metric in [getattr(metrics, field)]
    ]
    of_the_process = [
        (name, kind, ", ".join(samples[0][1]), "all", doc)
        for kind, name, doc, samples in (*process_rows(), *collector_rows())
    ]
    of_the_parent = [
        (name, kind, ", ".join(samples[0][1]), "the parent of workers", doc)
        for kind, name, doc, samples in worker_rows(())
    ]
    table = [
        f"| `{name}` | {kind} | {labels} | {roles} | {_cell(doc)} |"
        for name, kind, labels, roles, doc in (*sorted(rows), *of_the_parent, *of_the_process)
    ]
    return "\n".join([*_METRICS_INTRODUCTION, *table]) + "\n"


_METRICS_INTRODUCTION = (
    "# Metrics",
    "",
    "Generated from `services/saltern/kit/process/metrics.py` by `make reference`.",
    "",
    "Every role serves `/metrics` for Prometheus on `health_port`, beside `/livez` (it works) and `/readyz` (what it needs is",
    "there, too). Images and Kubernetes have the port 8080; elsewhere it is off until `health_port` names one, and `health_host`",
    "says who may ask. `saltern health` asks the role of this machine. A label never holds a minion's id or a JID.",
    "`k8s/components/monitoring` has PodMonitors, alerts, a dashboard and a network policy; each alert has a",
    "[runbook](operations/runbooks/README.md).",
    "",
    "With `worker_processes` above 1 the parent of the workers serves the metrics of all of them, with the label `process`",
    "(`mworker-1`; `mworker` is the parent).",
    "",
    "| Metric | Kind | Labels | Served by | |",
    "|---|---|---|---|---|",
)


#: Kind of modules -> what its pages are called.
KINDS: Mapping[str, str] = {"modules": "Execution modules", "states": "States"}


def reference_pages() -> dict[str, str]:
    """File below docs/reference/ -> page, one for each built-in module and state, and others; README.md lists them."""
    loader = Loader()
    examples = state_examples()
    pages = {
        "runners.md": _functions_page("Runners", _RUNNERS_INTRODUCTION, RUNNERS),
        "wheel.md": _functions_page("Wheel functions", _WHEEL_INTRODUCTION, WHEELS | FUNCTIONS),
        "check-rules.md": _rules_page(),
    }
    index = [
        "# Functions and states",
        "",
        "Generated from their docstrings by `make reference`.",
        "",
        "- [Runners](runners.md), [wheel functions](wheel.md): on the master",
        "- [Rules of `statecore check`](check-rules.md)",
    ]
    for kind, title in KINDS.items():
        index += ["", f"## {title}", "", "| | |", "|---|---|"]
        for name, serving in loader.built_in(kind).items():
            pages[f"{kind}/{name}.md"] = _module_page(kind, name, serving, examples if kind == "states" else {})
            index.append(f"| [{name}]({kind}/{name}.md) | {_cell(_sentence(serving[0].module_doc))} |")
    pages["README.md"] = "\n".join(index) + "\n"
    return pages


#: Examples that were written for the reference, and the cases of tests that show a state without one.
_EXAMPLES = HERE / "state-examples"
_CASES = HERE.parent / "tests/statecore/builtin"


def state_examples() -> dict[str, list[str]]:
    """Return {state function: lines of the section "Example"}. Each of them is applied by a test."""
    found: dict[str, list[str]] = {}
    for place in ("states/played/cases", "states/cases", "recorded/cases"):
        for path in sorted((_CASES / place).glob("*.yaml")):
            for case in yaml.safe_load(path.read_text("utf-8")).values():
                if isinstance(case, dict) and _shows(case):
                    found.setdefault(case["state"], _shown_case(case))
    for path in sorted(_EXAMPLES.glob("*.yaml")):
        for function, example in yaml.safe_load(path.read_text("utf-8")).items():
            found[function] = _example(example["sls"], example["says"])
    return found


def _shows(case: Mapping[str, Any]) -> bool:
    """Return whether a case of a test is a whole example: it succeeds, changes something and stands alone."""
    does = case.get("does") or {}
    return does.get("result") is True and bool(does.get("changes")) and not case.get("also")


def _shown_case(case: Mapping[str, Any]) -> list[str]:
    arguments = dict(case["args"])
    identifier = arguments.pop("name", "example")
    sls = yaml.safe_dump(
        {identifier: {case["state"]: [{key: value} for key, value in arguments.items()]}}, sort_keys=False
    )
    # Cases of files are written for any directory.
    return _example(sls.replace("ROOT", "/srv"), case["does"]["comment"].replace("ROOT", "/srv"))


def _example(sls: str, says: str) -> list[str]:
    lines = ["Example:", "", "```yaml", sls.rstrip("\n"), "```", ""]
    said = says.strip().splitlines()
    return lines + ([f"It says: `{said[0]}`", ""] if said and "`" not in said[0] else [])


def _module_page(kind: str, name: str, serving: Sequence[LoadedModule], examples: Mapping[str, Sequence[str]]) -> str:
    """A module; where several files serve the name on different hosts, their functions together."""
    parts = [f"# {name}", ""]
    if len(serving) > 1:
        parts += [f"Served by {', '.join(each.source.stem for each in serving)}: the managed host decides which.", ""]
    parts += [*(f"{as_markdown(each.module_doc or '')}\n" for each in serving)]
    functions = {function: each for each in reversed(serving) for function in each.listed}
    for function, served in sorted(functions.items()):
        own = served.functions[function]
        parts += [f"## {name}.{function}", "", f"`{name}.{function}{_call(served, function)}`", ""]
        parts += [as_markdown(inspect.getdoc(own) or ""), ""]
        parts += examples.get(f"{name}.{function}", ())
    return "\n".join(parts).rstrip() + "\n"


_RUNNERS_INTRODUCTION = (
    "Run by `salt-run`, by reactions, by schedules of the master, and through the API. The master's trees may have more:"
    " [modules](../modules.md)."
)
_WHEEL_INTRODUCTION = (
    "Change the master itself. `salt-key` calls them; reactions, runners (`salt.wheel`) and the API may do so, too."
)


def _functions_page(title: str, introduction: str, functions: Mapping[str, Callable[..., object]]) -> str:
    """Functions of the master with their documentation. Their first parameter is the master's own, and is left out."""
    parts = [f"# {title}", "", introduction, ""]
    for name, function in sorted(functions.items()):
        own = [*inspect.signature(function).parameters.values()][1:]
        plain = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in own])
        parts += [f"## {name}", "", f"`{name}{plain}`", "", as_markdown(inspect.getdoc(function) or ""), ""]
    return "\n".join(parts).rstrip() + "\n"


def _rules_page() -> str:
    """What `statecore check` finds: name, severity, what is wrong, what to do."""
    rows = [f"| `{name}` | {rule.level} | {_cell(rule.title)} | {_cell(rule.advice)} |" for name, rule in RULES.items()]
    return "\n".join(
        [
            "# Rules of statecore check",
            "",
            "Each finding names its rule, a file and a line. [statecore](../statecore.md) says how to run it, and how to silence"
            " a rule.",
            "",
            "| Rule | Severity | What is wrong | What to do |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


_TERM = re.compile(r"^\S.*$")


def as_markdown(doc: str) -> str:
    """Return a docstring as Markdown: an argument with its indented text becomes a term with its definition."""
    lines = doc.splitlines()
    parts: list[str] = []
    in_definition = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        before = lines[number - 1] if number else ""
        if _TERM.match(line) and following.startswith("    ") and (not before.strip() or before.startswith("    ")):
            terms = ", ".join(f"`{term}`" for term in line.rstrip(":").split(", "))
            parts += ["", terms]
            in_definition = True
        elif in_definition and line.startswith("    "):
            first = before[:1].strip() != ""
            parts.append((":   " if first else "    ") + _plain(line[4:]))
        else:
            in_definition = in_definition and not line.strip()
            # An indented block after a blank line is code.
            parts.append(line if line.startswith("    ") else _plain(line))
    return "\n".join(parts).strip("\n")


def _plain(line: str) -> str:
    """Return a line of prose in which Markdown finds no emphasis and no tags: only its code is code."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", line)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*<])", r"\\\1", piece) for piece in pieces)


def _call(served: LoadedModule, function: str) -> str:
    """What a caller may pass, without types: they are in the text where they matter."""
    parameters = served.signature(function).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(plain))


def _sentence(text: str | None) -> str:
    """The first paragraph, in one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


#: File -> what it must hold.
PAGES: Mapping[str, Callable[[], str]] = {
    "config.md": config_page,
    "metrics.md": metrics_page,
    "redis.md": keys.markdown,
}


def names_page() -> str:
    """services/saltern/cli/names.json: what shells complete without importing a module."""
    loader = Loader()
    modules = loader.built_in("modules").items()
    functions = {f"{name}.{each}" for name, serving in modules for one in serving for each in one.functions}
    options = {
        program: {
            name: action.nargs != 0
            for name, action in sorted(parser()._option_string_actions.items())
            if action.help != argparse.SUPPRESS and "_" not in name
        }
        for program, parser in PARSERS.items()
    }
    names = {
        "commands": sorted(COMMANDS),
        "functions": sorted(functions),
        "log_levels": sorted(LOG_LEVELS),
        "options": options,
        "outputters": sorted(OUTPUTTERS),
        "runners": sorted({*RUNNERS, *run.HERE}),
    }
    return json.dumps(names, indent=1) + "\n"


def main() -> int:
    """Writes every page."""
    NAMES.write_text(names_page(), "utf-8")
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
        sys.stdout.write(f"docs/{name}\n")
    pages = reference_pages()
    for name, text in pages.items():
        path = HERE / "reference" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    sys.stdout.write(f"docs/reference/: {len(pages)} pages\n")
    for name, schema in schemas().items():
        path = HERE / "reference" / "schemas" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(schema, indent=1) + "\n", "utf-8")
        sys.stdout.write(f"docs/reference/schemas/{name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
