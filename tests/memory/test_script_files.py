"""A script is followed into the modules and configurations of its own folder, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.job import load_job
from sagefit.job.following.files import Files
from sagefit.memory import Workload
from sagefit.memory.read import described

CALL = "from transformers import TrainingArguments\n\n\ndef told(size, **more):\n    return TrainingArguments("
CALL += "per_device_train_batch_size=size, **more)\n"


def planned(folder: Path, files: dict[str, str], hyperparameters: dict[str, Any] | None = None) -> Workload:
    changes = {
        "code": {"source_dir": "src", "entry_point": "train.py"},
        "hyperparameters": hyperparameters,
        "memory": {"model": "meta-llama/Llama-3.2-1B"},
        "image": {"framework": "pytorch", "version": "2.6"},
    }
    path = write_job(folder, changes)
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(text, encoding="utf-8")
    return described(load_job(str(path)))


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": "from config import SIZE\nfrom told import told\ntold(SIZE)", "config.py": "SIZE = 4"},
        {"train.py": "import config as c, told\ntold.told(c.SIZE)", "config.py": "SIZE = 4"},
        {"train.py": "from config import *\nfrom told import told\ntold(SIZE)", "config.py": "SIZE = 2 * 2"},
        {"train.py": "from lib.run import main\nmain()", "lib/__init__.py": "",
         "lib/run.py": "from told import told\nfrom .sizes import SIZE\n\ndef main():\n    told(SIZE)",
         "lib/sizes.py": "from . import base\nSIZE = base.HALF * 2", "lib/base.py": "HALF = 2"},
        {"train.py": "import yaml\nfrom told import told\nwith open('c.yaml') as f:\n    c = yaml.safe_load(f)\n"
                     "told(c['size'])", "c.yaml": "size: 4"},
        {"train.py": "import json\nfrom told import told\nc = json.load(open('conf/c.json'))\ntold(c['size'])",
         "conf/c.json": '{"size": 4}'},
        {"train.py": "import yaml, os\nfrom told import told\nhere = os.path.dirname(__file__)\n"
                     "told(**yaml.safe_load(open(os.path.join(here, 'c.yaml'))))", "c.yaml": "size: 4"},
        {"train.py": "import json\nfrom pathlib import Path\nfrom told import told\n"
                     "told(json.loads((Path(__file__).parent / 'c.json').read_text())['size'])",
         "c.json": '{"size": 4}'},
        {"train.py": "from omegaconf import OmegaConf\nfrom told import told\nc = OmegaConf.load('c.yaml')\n"
                     "told(c.train.size)", "c.yaml": "train: { size: 4 }"},
        {"train.py": "import a\nfrom told import told\ntold(a.SIZE)", "a.py": "import b\nSIZE = 4", "b.py": "import a"},
    ],
    ids=["from", "import", "star", "package", "yaml", "json", "beside", "path", "omegaconf", "circle"],
)  # fmt: skip
def test_a_value_comes_from_another_file_of_the_code(tmp_path: Path, files: dict[str, str]) -> None:
    workload = planned(tmp_path, {"told.py": CALL, **files})
    assert workload.micro_batch == 4
    assert any(note.startswith("train.py: micro_batch 4") for note in workload.notes)


def test_hyperparameters_are_read_where_sagemaker_puts_them(tmp_path: Path) -> None:
    script = (
        "import json\nfrom told import told\n"
        "with open('/opt/ml/input/config/hyperparameters.json') as f:\n    h = json.load(f)\ntold(int(h['bs']))"
    )
    assert planned(tmp_path, {"told.py": CALL, "train.py": script}, {"bs": 4}).micro_batch == 4


def test_a_changed_module_is_read_again(tmp_path: Path) -> None:
    files = {"told.py": CALL, "train.py": "from config import SIZE\nfrom told import told\ntold(SIZE)"}
    assert planned(tmp_path, {**files, "config.py": "SIZE = 4"}).micro_batch == 4
    (tmp_path / "src" / "config.py").write_text("SIZE = 16", encoding="utf-8")
    assert described(load_job(str(next(tmp_path.glob("*.yaml"))))).micro_batch == 16


def test_nothing_outside_of_the_code_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "src"
    inside.mkdir()
    (tmp_path / "secret.yaml").write_text("size: 4", encoding="utf-8")
    (inside / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (inside / "own.yaml").write_text("size: 4", encoding="utf-8")
    (inside / "latin").write_bytes(b"\xff\xfe")
    files = Files(str(inside))
    for name in ("../secret.yaml", str(tmp_path / "secret.yaml"), "link.yaml", "", "a\0b", ".", "latin", "none.yaml"):
        assert files.read(name, 100) is None, name
    assert files.read("own.yaml", 3) is None, "it is too long"
    assert files.read("/opt/ml/code/own.yaml", 100) == files.read("own.yaml", 100) == "size: 4"
    assert Files().read("own.yaml", 100) is None


@pytest.mark.parametrize("module", ["SIZE = (", "raise ValueError\nSIZE = 4", "SIZE = open('x', 'w')", "import train"])
def test_a_module_that_says_nothing_leaves_the_rest(tmp_path: Path, module: str) -> None:
    script = "from config import SIZE\nfrom transformers import TrainingArguments\n"
    script += "TrainingArguments(per_device_train_batch_size=SIZE, gradient_accumulation_steps=2)"
    workload = planned(tmp_path, {"train.py": script, "config.py": module})
    assert (workload.micro_batch, workload.accumulation) == (1, 2)
