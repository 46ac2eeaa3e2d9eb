"""Stands for a training: counts, saves when it is told to end, and resumes from what it saved."""

import pathlib
import signal
import sys
import time

checkpoint = pathlib.Path("count.txt")
count = int(checkpoint.read_text()) if checkpoint.exists() else 0
print(f"starts at {count}", flush=True)
if count:
    sys.exit(0)


def save(*_: object) -> None:
    checkpoint.write_text(str(count))
    print(f"saved {count}", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, save)
while True:
    time.sleep(0.05)
    count += 1
    pathlib.Path("running").touch()  # after the first count: a start from 0 would be a new start
