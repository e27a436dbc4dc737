"""Run by the oracle's Python: asks real Salt's matchers of a minion.

Standard input: one JSON object: ``subject`` (id, grains, pillar), ``nodegroups``, and ``cases``, a list of
[expression, target type, delimiter]. Standard output: a list of true, false, or null where Salt fails.
"""

import json
import sys

import salt.config
import salt.loader

#: Target type -> Salt's matcher module; these take a delimiter.
DELIMITED = {"grain", "grain_pcre", "pillar", "pillar_pcre", "pillar_exact"}


def main() -> None:
    asked = json.load(sys.stdin)
    opts = salt.config.DEFAULT_MINION_OPTS.copy()
    opts.update(asked["subject"], nodegroups=asked["nodegroups"], file_client="local")
    matchers = salt.loader.matchers(opts)
    answers = []
    for expression, kind, delimiter in asked["cases"]:
        given = {"delimiter": delimiter} if kind in DELIMITED else {}
        if kind == "nodegroup":
            given["nodegroups"] = asked["nodegroups"]
        try:
            answers.append(bool(matchers[f"{kind}_match.match"](expression, opts=opts, **given)))
        except Exception:  # noqa: BLE001 - whatever it is, that is its answer
            answers.append(None)
    json.dump(answers, sys.stdout)


main()
