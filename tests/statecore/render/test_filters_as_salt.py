"""Jinja filters, tests and globals compared with real Salt: the same expressions give the same values and the same
output.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import StatecoreError

pytestmark = pytest.mark.oracle

#: One expression a line. What ours does otherwise on purpose stands in DIFFERS.
EXPRESSIONS = (Path(__file__).parent / "expressions.txt").read_text("utf-8").splitlines()

#: Expression -> why ours answers otherwise.
_UNFOLDED = "no line is folded: what is put into an indented block would be no YAML any more"
_IFELSE = "the global ifelse works; Salt's stumbles over a name that it lacks in templates"

DIFFERS: dict[str, str] = {
    "{'ü': 'é', 'long': 'word ' * 40} | yaml": _UNFOLDED,
    "{'ü': 'é', 'long': 'word ' * 40} | yaml(False)": _UNFOLDED,
    "[] | avg": "the average of nothing is 0.0",
    "['10.1.1.1'] | filter_by_networks(['10.1.1.1/8'])": "a network may be named by an address in it",
    "ifelse('web*', 'yes', 'no')": _IFELSE,
    "ifelse('db*', 'yes', 'web1', 'second', 'no')": _IFELSE,
    "ifelse('db*', 'yes', 'no')": _IFELSE,
    "ifelse(true, 'yes', 'no')": _IFELSE,
}


def _template(expression: str) -> str:
    return (
        "#!jinja|json\n{% set value = " + expression + " %}"
        '{"value": {{ (value | string) | tojson }}, "printed": {% set p %}{{ value }}{% endset %}{{ p | string | tojson }}}\n'
    )


FILES = {f"e{number}.sls": _template(expression) for number, expression in enumerate(EXPRESSIONS)}


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> dict[str, Any]:
    """Map of expression to Salt's result."""
    told = ask_salt(FILES, [["sls", name, name.removesuffix(".sls"), {}] for name in FILES])
    return dict(zip(EXPRESSIONS, told, strict=True))


@pytest.fixture(scope="module")
def ours(own_runtime: Any) -> Callable[[str], tuple[str, Any]]:
    """Return Saltern's result for an expression."""
    call = own_runtime(FILES).context.call

    def answer(name: str) -> tuple[str, Any]:
        try:
            found = call("slsutil.renderer", f"salt://{name}.sls")
        except StatecoreError as error:
            return "error", str(error).splitlines()[0]
        return "value", json.loads(json.dumps(found))

    return answer


@pytest.mark.parametrize(("number", "expression"), list(enumerate(EXPRESSIONS)), ids=EXPRESSIONS)
def test_as_salt(number: int, expression: str, salts: dict[str, Any], ours: Any) -> None:
    kind, salts_value = salts[expression]
    own = ours(f"e{number}")
    if expression in DIFFERS:
        assert own != (kind, salts_value), "no difference any more"
        return
    if kind == "error":
        assert own[0] == "error", f"Salt refuses it: {salts_value}; ours: {own[1]}"
    else:
        assert own == (kind, salts_value)
