"""Run by the oracle's Python in a copy of the machine: Salt's answers to calls of execution functions.

Arguments: what to do, then a file. ``functions FILE`` writes {function: {"required": [...], "examples": [[args, kwargs], ...],
"keywords": bool}}. ``calls FILE`` reads {"skip": ..., "calls": {function: [[kind, args, kwargs], ...]}} and writes
FILE.salt, {function: [answer, ...]}.
"""

import inspect
import json
import re
import shlex
import sys
from pathlib import Path

import salt.config
import salt.loader
import salt.utils.args
from sweep_answers import answers

_EXAMPLE = re.compile(r"^\s*(?:sudo )?salt(?:-call)?\b(?P<rest>.*)$")


def functions():
    opts = salt.config.DEFAULT_MINION_OPTS.copy()
    root = "/tmp/sweep/salt"
    Path(root).mkdir(parents=True, exist_ok=True)
    opts.update(
        id="web1",
        file_client="local",
        local=True,
        root_dir=root,
        conf_file=f"{root}/minion",
        cachedir=f"{root}/cache",
        pki_dir=f"{root}/pki",
        sock_dir=f"{root}/sock",
        extension_modules=f"{root}/extmods",
        file_roots={"base": ["/tmp/sweep/tree"]},
        pillar_roots={"base": []},
        pillar={},
        enable_fqdns_grains=False,
    )
    opts["grains"] = salt.loader.grains(opts)
    utils = salt.loader.utils(opts)
    return salt.loader.minion_mods(opts, utils=utils)


def examples(name, text):
    """Arguments of the examples of a docstring, as salt-call reads them."""
    lines = re.sub(r"\\\n\s*", " ", text or "").splitlines()
    for line in lines:
        match = _EXAMPLE.match(line)
        if match is None:
            continue
        try:
            words = shlex.split(match["rest"])
        except ValueError:
            continue
        if name not in words or any(word.startswith("<") for word in words):
            continue
        args, kwargs = salt.utils.args.parse_input(words[words.index(name) + 1 :], condition=False)
        yield [args, kwargs]


def describe(found):
    told = {}
    for name in sorted(found):
        function = found[name]
        try:
            spec = salt.utils.args.get_function_argspec(function)
        except TypeError:
            continue
        named = spec.args or []
        told[name] = {
            "required": named[: len(named) - len(spec.defaults or ())],
            "keywords": bool(spec.keywords),
            "examples": list(examples(name, inspect.getdoc(function)))[:4],
        }
    return told


def main():
    what, file = sys.argv[1:]
    found = functions()
    if what == "functions":
        Path(file).write_text(json.dumps(describe(found), default=str))
        return

    context = found.pack["__context__"]

    def call(name, args, kwargs):
        context.pop("retcode", None)
        value = found[name](*args, **kwargs)
        code = context.get("retcode", 0)
        if not code and isinstance(value, dict) and not all(value.get(key, True) for key in ("result", "success")):
            code = 1
        return value, code

    answers(file, "salt", call, lambda name: found[name])


main()
