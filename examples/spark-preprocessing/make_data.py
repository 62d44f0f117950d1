"""Makes ``data/``: what 1,200 visitors of a made-up shop looked at, and who bought. The same seed makes the same files.

A visitor who looks at more products, for longer, and puts something into the cart, buys more often; the rest is chance.
"""

import csv
import gzip
import json
import math
import random
from pathlib import Path

DATA = Path(__file__).parent / "data"
VISITS, DAYS = 1200, 3
PAGES = ("home", "search", "product", "product", "product", "help")


def visit(chance, number):
    """The events of one visit, and whether it ended with a purchase."""
    interest = chance.random()
    device = chance.choice(("phone", "desktop"))
    pages = ["home", *(chance.choice(PAGES) for _ in range(1 + int(interest * 9)))]
    if chance.random() < interest * 0.6:
        pages.append("cart")
    rate = 1 / (4 + 30 * interest)
    spent = [round(chance.expovariate(rate), 1) for _ in pages]
    events = [
        {"visit": number, "page": page, "seconds": seconds, "device": device}
        for page, seconds in zip(pages, spent, strict=True)
    ]
    score = 4 * (interest - 0.55) + 2 * ("cart" in pages) - 0.6 * (device == "phone")
    return events, chance.random() < 1 / (1 + math.exp(-2 * score))


def main():
    """Write one file of events a day, and the visits that ended with a purchase."""
    chance = random.Random(7)
    days = [[] for _ in range(DAYS)]
    outcomes = []
    for number in range(VISITS):
        events, bought = visit(chance, number)
        days[number % DAYS] += events
        outcomes.append((number, int(bought)))
    (DATA / "events").mkdir(parents=True, exist_ok=True)
    for day, events in enumerate(days):
        chance.shuffle(events)
        text = "".join(json.dumps(event) + "\n" for event in events)
        path = DATA / "events" / f"day-{day}.json.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    with (DATA / "visits.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("visit", "bought"), *outcomes])


if __name__ == "__main__":
    main()
