"""The renderer ``py``: an SLS in Python, whose function ``run()`` returns high data. It can run any Python code in the
minion.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from statecore.model import salt_package
from statecore.model.errors import Mark
from statecore.model.time_limit import ComputedTooMuch, computing_limit
from statecore.render.context import RenderContext
from statecore.render.faults import TemplateFault
from statecore.render.limit import limit_message, time_limit_of

#: Name of a Salt dunder -> name of the template variable with the same value.
DUNDERS: Mapping[str, str] = {
    "__salt__": "salt",
    "__grains__": "grains",
    "__pillar__": "pillar",
    "__opts__": "opts",
    "__env__": "saltenv",
    "__sls__": "sls",
}


def render(data: object, context: RenderContext) -> object:
    """Renderer ``py``: return the result of the function ``run()`` of an SLS in Python. Raise TemplateFault with its
    line.
    """
    return run(str(data), context.source.file, context.names, time_limit_of(context.opts))


def run(text: str, file: str, names: Mapping[str, object], seconds: float) -> object:
    """Return the result of the function ``run()`` that a Python text defines. ``names`` are global variables for the
    text.

    The text may compute for ``seconds`` seconds. Raise TemplateFault with the line in the text.
    """
    scope: dict[str, Any] = {"__name__": "sls", "__file__": file, **names}
    scope |= {dunder: names[name] for dunder, name in DUNDERS.items() if name in names}
    salt_package.install()
    with faults(text, file), computing_limit(seconds):
        exec(compile(text, file, "exec"), scope)
        if "run" not in scope:
            raise TemplateFault("a #!py file must define run()", Mark(file, 1), text)
        return scope["run"]()


@contextmanager
def faults(text: str, file: str) -> Iterator[None]:
    """Context manager that raises TemplateFault, with the line in ``text``, for each exception of the Python file ``file``."""
    try:
        yield
    except TemplateFault:
        raise
    except SyntaxError as error:
        raise TemplateFault(f"{error.msg} (SyntaxError)", Mark(file, error.lineno or 0), text) from error
    except ComputedTooMuch as error:
        raise TemplateFault(limit_message(error), _mark(error, file), text) from error
    except (Exception, SystemExit) as error:
        raise TemplateFault(f"{error} ({type(error).__name__})", _mark(error, file), text) from error


def _mark(error: BaseException, file: str) -> Mark:
    """Return the innermost position in ``file`` that the exception's traceback contains; line 0 if it contains none."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return Mark(file, lines[-1] if lines else 0)
