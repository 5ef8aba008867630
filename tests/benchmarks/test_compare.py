"""The comparison with other libraries: swink's own row, and what is said of a library that is not there."""

import json
import subprocess
import sys
from pathlib import Path

from tests.counts import left_to_more

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compare.py"


@left_to_more
def test_swink_is_counted_where_it_shows_every_delta():
    done = subprocess.run([sys.executable, str(SCRIPT), "peer.py", "swink"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 0 < found["delta"] < found["turn"]
