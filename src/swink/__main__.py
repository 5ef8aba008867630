"""`python -m swink`: the command without its script."""

import sys

from swink.app.cli import main

sys.exit(main())
