"""Run by the oracle's Python: shows each case with real Salt's outputters.

Standard input: one line a case, the Python literal [data, outputter, options]. Standard output: one JSON text a line.
"""

import ast
import json
import os
import sys
import tempfile

import salt.config
import salt.output


def main() -> None:
    defaults = salt.config.DEFAULT_MASTER_OPTS.copy()
    defaults["cachedir"] = tempfile.gettempdir()
    defaults["extension_modules"] = os.path.join(tempfile.gettempdir(), "none")
    for line in sys.stdin:
        data, outputter, options = ast.literal_eval(line)
        opts = {**defaults, "color": False, "force_color": options.get("color", False), **options}
        if outputter != "highstate":
            opts["output"] = outputter
        retcode = opts.pop("retcode", 0)
        sys.stdout.write(json.dumps(salt.output.out_format(data, outputter, opts, _retcode=retcode)) + "\n")
        sys.stdout.flush()


main()
