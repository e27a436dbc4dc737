"""Run by the oracle's Python: what functions of real Salt's state module return, with their exit codes.

Standard input: a JSON list of scenes: ``directory``, ``grains``, ``opts``, ``running`` (jobs of other processes), ``calls``
(``fun``, ``args``, ``kwargs``). Standard output: a JSON list, for each scene a list of ``{"value", "retcode"}``. A raised error is
told as a minion tells it.
"""

import json
import logging
import sys
from pathlib import Path

import salt.config
import salt.exceptions
import salt.loader
import salt.payload
import salt.pillar
import salt.utils.entrypoints
import salt.utils.secret

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parents[2]))
from salt_minion import placed, spare_repetition


def main():
    spare_repetition()
    salt.utils.entrypoints.iter_entry_points = lambda group, name=None: []
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    defaults = salt.config.DEFAULT_MINION_OPTS.copy()
    told = [scene_of(defaults, scene) for scene in asked]
    sys.stdout.write(json.dumps(told, default=str))


def scene_of(defaults, scene):
    root = scene["directory"]
    opts = {
        **defaults,
        **placed(root),
        # A call uses the pillar that there is, where it brings none of its own.
        "__cli": "salt-call",
        "local": True,
        "state_events": False,
        "autoload_dynamic_modules": False,
        "grains": scene["grains"],
        **scene["opts"],
    }
    Path(opts["cachedir"], "proc").mkdir(parents=True, exist_ok=True)
    Path(opts["conf_file"]).touch()
    for job in scene["running"]:
        Path(opts["cachedir"], "proc", job["jid"]).write_bytes(salt.payload.dumps(job))
    pillar = salt.pillar.get_pillar(opts, opts["grains"], "web1", opts.get("saltenv"), pillarenv=opts.get("pillarenv"))
    # An empty one would be compiled again.
    opts["pillar"] = salt.utils.secret.expose(pillar.compile_pillar()) or {"unused": None}
    context = {}
    functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts), context=context)
    return [called(functions, context, **call) for call in scene["calls"]]


def texts(value):
    """With text for bytes, which Salt gives as names of what it read from its own files."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {texts(key): texts(item) for key, item in value.items()}
    return [texts(item) for item in value] if isinstance(value, list) else value


def called(functions, context, fun, args=(), kwargs=None):
    context["retcode"] = 0
    try:
        value = functions[f"state.{fun}"](*args, **(kwargs or {}))
        value = json.loads(json.dumps(texts(value), default=str))
    except salt.exceptions.CommandExecutionError as error:
        return {"value": f"ERROR: {error}", "retcode": 1}
    except salt.exceptions.SaltInvocationError as error:
        return {"value": f"ERROR executing 'state.{fun}': {error}", "retcode": 1}
    except TypeError as error:
        return {"value": f"Passed invalid arguments to state.{fun}: {error}", "retcode": 1}
    except Exception as error:  # noqa: BLE001 - what Salt stumbles over is told, and must be named as a difference
        return {"value": f"The minion function caused an exception: {type(error).__name__}: {error}", "retcode": 1}
    retcode = context.get("retcode", 0)
    if not retcode and isinstance(value, dict) and not all(value.get(key, True) for key in ("result", "success")):
        retcode = 1
    return {"value": value, "retcode": retcode}


main()
