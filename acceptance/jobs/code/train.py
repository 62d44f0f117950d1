"""What the cases do, one word for each. The standard library is all they need, so any image runs them."""

import argparse
import json
import os
import socket
import sys
import time
from pathlib import Path

ML = Path(os.environ.get("SAGEFIT_ML_ROOT", "/opt/ml"))
CHUNK = 32 * 2**20
SECONDS = 120  # in which hosts have to find each other


def say(text):
    """Prints a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def take_all():
    """Takes memory until the kernel ends it."""
    held = []
    while True:
        held.append(b"x" * CHUNK)
        say(f"holds {len(held) * CHUNK // 2**20} MiB")
        time.sleep(0.02)


def wait(seconds):
    """Does nothing for a time, and says so."""
    for second in range(int(seconds)):
        say(f"second {second + 1} of {seconds:g}")
        time.sleep(1)


def meet():
    """The first host listens, every other one has to reach it by the name that the launcher tells."""
    name, port = os.environ["SM_MASTER_ADDR"], int(os.environ["SM_MASTER_PORT"])
    config = json.loads((ML / "input" / "config" / "resourceconfig.json").read_text())
    hosts, own = sorted(config["hosts"]), config["current_host"]
    say(f"hosts={len(hosts)}")
    if own == hosts[0]:
        with socket.create_server(("", port)) as server:
            server.settimeout(SECONDS)
            for met in range(1, len(hosts)):
                server.accept()[0].close()
                say(f"met={met}")
        return
    until = time.time() + SECONDS
    while True:
        try:
            socket.create_connection((name, port), timeout=5).close()
            return
        except OSError as error:
            if time.time() > until:
                raise
            say(f"{name} does not answer yet: {error}")
            time.sleep(1)


def look_out():
    """Tries to reach something outside; in a container without a network nothing is there."""
    try:
        socket.create_connection(("aws.amazon.com", 443), timeout=5).close()
        say("network=1")
    except OSError as error:
        say(f"nothing outside: {error}")
        say("network=0")


def main():
    """Does one thing and leaves a model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--does", default="nothing", choices=["nothing", "take_all", "wait", "meet", "look_out"])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--x", type=float, default=1.0, help="what a search varies")
    told, _ = parser.parse_known_args()
    {"nothing": str, "take_all": take_all, "wait": lambda: wait(told.seconds), "meet": meet, "look_out": look_out}[
        told.does
    ]()
    rows = sum(len(path.read_text().splitlines()) for path in sorted((ML / "input" / "data").rglob("*.csv")))
    say(f"rows={rows}")
    say(f"value={1 - (told.x - 0.5) ** 2:.6f}")
    (ML / "model" / "said.txt").write_text("done\n")


if __name__ == "__main__":
    main()
