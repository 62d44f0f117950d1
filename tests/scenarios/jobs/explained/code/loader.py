"""Loader workers that hold more and more batches, until the kernel kills one of them."""

import argparse
import multiprocessing
import time

from common import MIB, steps  # type: ignore[import-not-found]

parser = argparse.ArgumentParser()
parser.add_argument("--dataloader_num_workers", type=int)
parser.add_argument("--per_device_train_batch_size", type=int)
workers = parser.parse_known_args()[0].dataloader_num_workers

asked = multiprocessing.Value("i", 0)
loaded = [multiprocessing.Value("i", 0) for _ in range(workers)]


def worker(number: int) -> None:
    held: list[bytearray] = []
    while True:
        if len(held) < asked.value:
            held.append(bytearray(48 * MIB))
            loaded[number].value = len(held)
        time.sleep(0.01)


if __name__ == "__main__":
    started = [multiprocessing.Process(target=worker, args=(number,), daemon=True) for number in range(workers)]
    for each in started:
        each.start()
    for step in steps(100):
        asked.value = step
        while any(batches.value < step for batches in loaded):  # however slow the machine is
            gone = next((each for each in started if not each.is_alive()), None)
            if gone:
                raise RuntimeError(f"DataLoader worker (pid {gone.pid}) is killed by signal: Killed.")
            time.sleep(0.02)
