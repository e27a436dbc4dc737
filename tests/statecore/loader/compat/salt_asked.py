"""Run by the oracle's Python: answers what real Salt's functions say, one question a line.

Standard input, a line each: JSON ``[module, expression, names]``. Standard output, a line each: the ``repr`` of the value, or
``! `` and the exception's type and words.
"""

import importlib
import json
import sys
import warnings


def answer(modules, expression, names):
    for module in modules.split():
        importlib.import_module(module)
    scope = {"salt": sys.modules["salt"], **names}
    try:
        return normal(eval(expression, scope))
    except Exception as error:  # noqa: BLE001 - what is raised is an answer
        return f"! {type(error).__name__}"


def normal(value):
    """Without the types that make no difference to who reads them."""
    if isinstance(value, dict):
        inner = sorted((normal(key), normal(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in inner) + "}"
    if isinstance(value, set):
        return "set(" + ", ".join(sorted(map(normal, value))) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(normal, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(normal, value)) + ")"
    return repr(value)


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        sys.stdout.write(answer(*json.loads(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
