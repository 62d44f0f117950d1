"""The whole table in memory, before it is split."""

import time

rows = []
for part in range(1, 100):
    print(f"reading part {part} of 99", flush=True)
    rows.append(bytearray(32 * 1024**2))
    time.sleep(0.05)
