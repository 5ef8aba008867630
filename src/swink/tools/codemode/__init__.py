"""Code mode: one tool in which a model writes Python that calls the other tools.

```
codetool                 run_code: the tool
program  machine         a program from its first line to its result; the process that runs it
signatures  callsites    tools as Python functions; which calls are awaited
```
"""

from swink.tools.codemode.codelimits import CodeLimits
from swink.tools.codemode.codetool import RUN_CODE, code_mode

__all__ = ["RUN_CODE", "CodeLimits", "code_mode"]
