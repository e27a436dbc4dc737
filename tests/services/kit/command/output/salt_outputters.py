"""Run by the oracle's Python: shows each case with real Salt's outputters.

Standard input: one line a case, the pickle of (data, outputter, options) in base64. Standard output: one JSON object a line, with
``text`` or, where Salt would have died of it, ``raised``. Options are Salt's; ``retcode`` is the job's.
"""

import base64
import json
import os
import pickle
import sys
import tempfile
import time

import salt.config
import salt.output


def main() -> None:
    defaults = salt.config.DEFAULT_MASTER_OPTS.copy()
    defaults["cachedir"] = tempfile.gettempdir()
    defaults["extension_modules"] = os.path.join(tempfile.gettempdir(), "none")
    for line in sys.stdin:
        data, outputter, options = pickle.loads(base64.b64decode(line))
        opts = {"color": False, **defaults, **options}
        if outputter not in ("highstate", ""):
            opts["output"] = outputter
        retcode = opts.pop("retcode", 0)
        started = time.perf_counter()
        try:
            answer = {"text": salt.output.out_format(data, outputter, opts, _retcode=retcode) or ""}
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer
            answer = {"raised": f"{type(error).__name__}: {error}"}
        answer["seconds"] = time.perf_counter() - started
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
