"""External pillar ``csv``: the row of a minion in a CSV file.

.. code-block:: yaml

    ext_pillar:
      - csv: /srv/inventory.csv
      - csv:
          path: /srv/inventory.csv
          namespace: host
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError

VIRTUAL = "csv"


def ext_pillar(
    ctx: Context,
    minion_id: str,
    pillar: dict[str, object],
    path: str,
    idkey: str = "id",
    namespace: str | None = None,
    fieldnames: Sequence[str] | None = None,
    restkey: str | None = None,
    restval: str | None = None,
    dialect: str = "excel",
) -> dict[str, object]:
    """Return the first row of the minion, as a map of column to text; {} if there is none.

    path
        absolute path of the file
    idkey
        column with the ids of minions
    namespace
        key of pillar for the row; without it its columns stand at the top
    fieldnames
        names of the columns, if the first row does not have them
    restkey
        key for the fields beyond the columns
    restval
        value for missing fields
    dialect
        dialect of Python's csv module

    Raises CommandError if the file cannot be read, or has no such column.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, fieldnames, restkey=restkey, restval=restval, dialect=dialect)
            if idkey not in (rows.fieldnames or ()):
                raise CommandError(f"{path} has no column '{idkey}'; it has {', '.join(rows.fieldnames or ())}")
            found = next((row for row in rows if row[idkey] == minion_id), None)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path}: {error}") from error
    if found is None:
        return {}
    row: dict[str, object] = {name: value for name, value in found.items() if name is not None}
    return {namespace: row} if namespace else row
