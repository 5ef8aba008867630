"""`python -m swink.app.cli`: the command without its script."""

import os
import sys

if sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]  # where `python -m` puts the working directory: before the library and every package

from swink.app.cli import main

sys.exit(main())
