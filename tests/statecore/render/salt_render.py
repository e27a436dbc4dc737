"""Run by the oracle's Python: what real Salt makes of files, functions and top files.

Standard input: JSON ``directory``, ``opts``, ``grains``, ``pillar`` and ``asks``, each a list: a verb and what it is about.

``["sls", path, sls, opts]``
    the data of a file of file_roots' base, or the first line of the error; ``opts`` over the others
``["call", function, args, kwargs]``
    what an execution function returns
``["top", folder, environments, opts]``
    saltenv -> references of the top files; each environment's tree is a directory of the folder, which lies in base
``["names"]``
    names of all filters, tests and globals of templates that Jinja itself has not
``["parameters"]``
    filter or global -> names of its parameters

Standard output: a JSON list with an answer for each: ``["value", it]`` or ``["error", its first line]``.
"""

import inspect
import json
import sys
from pathlib import Path

import jinja2.defaults
import salt.config
import salt.loader
import salt.state
import salt.template
import salt.utils.jinja
import salt.utils.secret
import salt.utils.stringio
from jinja2.sandbox import SandboxedEnvironment
from salt.utils.decorators.jinja import JinjaFilter, JinjaGlobal, JinjaTest

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parent.parent))
from salt_minion import placed, spare_repetition


class Asked:
    def __init__(self, asked):
        root = asked["directory"]
        self.opts = {
            **salt.config.DEFAULT_MINION_OPTS,
            **placed(root),
            "grains": asked["grains"],
            "pillar": asked["pillar"],
            "file_roots": {"base": [f"{root}/base"]},
            # As a list of Python's: Salt's own defaults are frozen, and not every part of it takes them so.
            "fileserver_backend": ["roots"],
            **asked["opts"],
        }
        self.functions = salt.loader.minion_mods(self.opts, utils=salt.loader.utils(self.opts))
        self.renderers = salt.loader.render(self.opts, self.functions)
        self.root = root

    def sls(self, path, sls, opts):
        renderers, own = self.renderers, self.opts
        if opts:
            own = {**self.opts, **opts}
            renderers = salt.loader.render(own, salt.loader.minion_mods(own))
        file = f"{self.root}/base/{path}"
        found = salt.template.compile_template(
            file, renderers, own["renderer"], own["renderer_blacklist"], own["renderer_whitelist"], "base", sls
        )
        return found.read() if salt.utils.stringio.is_readable(found) else found

    def call(self, function, args, kwargs):
        return self.functions[function](*args, **kwargs)

    def top(self, folder, environments, opts):
        roots = {env: [f"{self.root}/base/{folder}/{env}"] for env in environments}
        with salt.state.HighState({**self.opts, "file_roots": roots, **opts}) as states:
            # What get_top swallows is an answer too.
            top = states.merge_tops(states.get_tops())
            errors = states.verify_tops(top)
            return {"errors": errors} if errors else states.top_matches(top)

    def names(self):
        env = SandboxedEnvironment(extensions=[salt.utils.jinja.SerializerExtension])
        own = set(env.filters) - set(jinja2.defaults.DEFAULT_FILTERS)
        return {
            "filters": sorted(own | set(JinjaFilter.salt_jinja_filters)),
            "tests": sorted(JinjaTest.salt_jinja_tests),
            "globals": sorted(JinjaGlobal.salt_jinja_globals),
        }

    def parameters(self):
        env = SandboxedEnvironment(extensions=[salt.utils.jinja.SerializerExtension])
        known = {**env.filters, **JinjaFilter.salt_jinja_filters, **JinjaGlobal.salt_jinja_globals}
        found = {}
        for name, function in known.items():
            try:
                found[name] = [each.name for each in inspect.signature(function).parameters.values()]
            except ValueError:  # functions of C have no signature
                continue
        return found


def main():
    spare_repetition()
    # What a template asks for is not masked.
    salt.utils.secret.mask_pillar.set(False)
    asked = json.load(sys.stdin)
    salts = Asked(asked)
    told = []
    for verb, *about in asked["asks"]:
        try:
            told.append(["value", json.loads(json.dumps(getattr(salts, verb)(*about), default=repr))])
        except BaseException as error:  # noqa: BLE001 - whatever Salt stumbles over is its answer
            told.append(["error", (str(error) or type(error).__name__).splitlines()[0].rstrip()])
    sys.stdout.write(json.dumps(told))


main()
