"""One script for two groups of instances: "prepare" makes batches of moved pictures, "train" learns from them.

All instances start the same script; SM_CURRENT_INSTANCE_GROUP says which part is played. Whoever prepares connects to
the instance that trains and sends one batch after the other. Order and content of the batches follow from seeds.
"""

import argparse
import io
import json
import os
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path

import numpy as np
import torch

PATIENCE = 300  # seconds until the instance that trains must listen


def read(folder):
    """Pictures (values from 0 to 1) and their digits."""
    table = np.concatenate([np.loadtxt(path, delimiter=",") for path in sorted(Path(folder).glob("*.csv.gz"))])
    return (table[:, 1:] / 16).astype("float32"), table[:, 0].astype("int64")


def moved(pictures, generator):
    """Each picture moved by up to a pixel in each direction."""
    framed = np.pad(pictures.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = generator.integers(3, size=2)
    return framed[:, down : down + 8, right : right + 8].reshape(-1, 64)


def connect(address, key):
    """A connection to the instance that trains, which may still be starting."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return Client(address, authkey=key)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def prepare(options, address, key, number):
    """Send the batches of all epochs, then nothing more."""
    pictures, digits = read(options.train)
    generator = np.random.default_rng(number)
    with connect(address, key) as trainer:
        trainer.send(number)
        for _ in range(options.epochs):
            order = generator.permutation(len(digits))
            for part in np.array_split(order, max(1, len(order) // options.batch_size)):
                content = io.BytesIO()
                np.savez(content, pictures=moved(pictures[part], generator), digits=digits[part])
                trainer.send_bytes(content.getvalue())
        trainer.send_bytes(b"")
        trainer.recv_bytes()  # an instance that ends early would end the job for all


def batches(connections):
    """One batch from each instance in turn, until all have sent their last."""
    while connections:
        for connection in list(connections):
            content = connection.recv_bytes()
            if content:
                with np.load(io.BytesIO(content)) as batch:
                    yield torch.from_numpy(batch["pictures"]), torch.from_numpy(batch["digits"])
            else:
                connections.remove(connection)


def train(options, address, key, hosts):
    """Learn from what the others send."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    count = 0
    with Listener(("", address[1]), backlog=hosts, authkey=key) as listener:
        arrived = [listener.accept() for _ in range(hosts)]
        by_number = {connection.recv(): connection for connection in arrived}  # whoever came first
        connections = [by_number[number] for number in sorted(by_number)]
        for pictures, digits in batches(list(connections)):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pictures.to(device)), digits.to(device))
            loss.backward()
            optimizer.step()
            count += 1
        for connection in connections:
            connection.send_bytes(b"done")
    print(f"trained on {device}: batches={count} from hosts={hosts}")
    pictures, digits = (torch.from_numpy(part).to(device) for part in read(options.test))
    with torch.no_grad():
        print(f"accuracy={(model(pictures).argmax(1) == digits).float().mean().item():.4f}")
    options.model_dir.mkdir(parents=True, exist_ok=True)
    torch.save(model.cpu().state_dict(), options.model_dir / "model.pt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--test", default=os.environ.get("SM_CHANNEL_TEST"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR", "model"))
    options = parser.parse_args()
    groups = json.loads(os.environ["SM_INSTANCE_GROUPS_DICT"])
    preparing = groups["prepare"]["hosts"]
    address = os.environ["SM_MASTER_ADDR"], int(os.environ["SM_MASTER_PORT"])
    key = os.environ["TRAINING_JOB_NAME"].encode()
    if os.environ["SM_CURRENT_INSTANCE_GROUP"] == "train":
        train(options, address, key, len(preparing))
    else:
        prepare(options, address, key, preparing.index(os.environ["SM_CURRENT_HOST"]))


if __name__ == "__main__":
    main()
