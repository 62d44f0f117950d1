"""Loader workers that hold more and more batches, until the kernel kills one of them."""

import argparse
import multiprocessing
import time

from common import MIB, steps  # type: ignore[import-not-found]

parser = argparse.ArgumentParser()
parser.add_argument("--dataloader_num_workers", type=int)
parser.add_argument("--per_device_train_batch_size", type=int)
workers = parser.parse_known_args()[0].dataloader_num_workers


def worker(share: int) -> None:
    held = []
    for _ in range(share):
        held.append(bytearray(MIB))
        time.sleep(0.01)
    time.sleep(600)


if __name__ == "__main__":
    started = [multiprocessing.Process(target=worker, args=(400,), daemon=True) for _ in range(workers)]
    for each in started:
        each.start()
    for _ in steps(100):
        gone = next((each for each in started if not each.is_alive()), None)
        if gone:
            raise RuntimeError(f"DataLoader worker (pid {gone.pid}) is killed by signal: Killed.")
