"""``python -m statecore``."""

import sys

from statecore.analysis.commands.main import main

sys.exit(main())
