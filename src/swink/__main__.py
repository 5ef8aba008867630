"""`python -m swink`: the command without its script."""

import sys

from swink.cli import main

sys.exit(main())
