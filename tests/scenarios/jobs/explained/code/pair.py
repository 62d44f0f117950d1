"""Two hosts, of which the second gets the long sequences: it dies, and the first loses its peer."""

import os
import time

from common import MIB, steps  # type: ignore[import-not-found]

second = os.environ["SM_CURRENT_HOST"] == "algo-2"
held = []
for step in steps(40):
    if second:
        held.append(bytearray(60 * MIB))
    elif step == 20:
        time.sleep(4)
        raise ConnectionError("[/pytorch/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.1.7]:41132")
