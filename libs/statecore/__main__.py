"""``python -m statecore``."""

import sys

from statecore.commands.main import main

sys.exit(main())
