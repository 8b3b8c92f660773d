"""`python -m tasks.servers prefect|mlflow`: one server behind the gate, in this process.

The first act is to watch the process that started it.  The imports of a server take seconds, in which nobody else could
see to it that the server ends with all it has started.
"""

from __future__ import annotations

import os
import sys
import threading

from tasks.servers.parent import PARENT, end_with

if __name__ == "__main__":
    if os.environ.get(PARENT):
        threading.Thread(target=end_with, args=(int(os.environ.pop(PARENT)),), name="parent", daemon=True).start()
    from tasks.servers.serve import main

    sys.exit(main(sys.argv[1:]))
