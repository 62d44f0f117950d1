"""The exact mode with torch: it counts what real training takes, and says what it cannot follow."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_runner import Sagefit
from job_files import write_job
from sagefit.errors import FAILED, INVALID
from sagefit.job import load_job
from sagefit.memory import Placement, predict
from sagefit.memory.read import read
from sagefit.memory.workload import GIB, Traced
from sagefit.paths import ROOT
from torch_environment import torch_python

pytestmark = [
    pytest.mark.xdist_group("torch"),
    # What each of them shows; what is around it is shown where nothing needs torch.
    pytest.mark.of_files(
        *(
            "docs/trace.md",
            "python/sagefit/cli/trace.py",
            "python/sagefit/cloud/images",
            "python/sagefit/environments.py",
        ),
        *("python/sagefit/job", "python/sagefit/memory", "tests/job_files.py", "tests/memory/test_trace_torch.py"),
    ),
]

Trace = Callable[..., Any]


@pytest.fixture(scope="session")
def python() -> str:
    return torch_python()


@pytest.fixture
def trace(tmp_path: Path, python: str) -> Trace:
    """Trace ``function`` of a ``train.py``; the result with --json, or what was said when it is refused."""
    sagefit = Sagefit(tmp_path / "home")

    def call(code: str, function: str = "build", code_expected: int = 0, **memory: Any) -> Any:
        fields = {
            "hyperparameters": {"batch_size": 8, "image_size": 64},
            "memory": {"trace": {"function": f"train.py:{function}", "python": python}} | memory,
        }
        path = write_job(tmp_path, fields)
        (tmp_path / "src" / "train.py").write_text(code, encoding="utf-8")
        done = sagefit("trace", path, "--json", check=code_expected)
        return done.err if code_expected else json.loads(done.out)

    return call


def example(number: int) -> str:
    """A Python example of the documentation."""
    page = (ROOT / "docs" / "trace.md").read_text(encoding="utf-8")
    found: list[str] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return found[number]


def total(parts: dict[str, float]) -> int:
    return round(sum(parts.values()) * GIB)


def test_the_example_of_a_plain_model(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trace(example(0), precision="fp32", optimizer="sgd-momentum")
    side = (64 - 7) // 2 + 1
    weights = 4 * (3 * 64 * 49 + 64 + 128 + 10 * 64 + 10)
    images, outputs = 4 * 8 * 3 * 64**2, 4 * 8 * 64 * side**2
    assert found["traced"]["weights"] == weights
    assert found["traced"]["family"] == "vision"
    # Convolution, normalisation and ReLU leave one output each; what else there is has no height and width.
    assert 0 < total(found["phases"]["forward"]) - (2 * weights + images + 3 * outputs) < 16384
    assert total(found["phases"]["step"]) == pytest.approx(3 * weights + images, abs=1024)
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    prediction = predict(read(load_job(str(tmp_path / "digits.yaml"))), Placement(1, 1))
    assert prediction
    assert prediction.gpu
    assert prediction.source == "trace"
    assert prediction.gpu.point == pytest.approx(found["device"]["gib"])
    (tmp_path / "src" / "train.py").write_text(example(0) + "\n# changed\n", encoding="utf-8")
    stale = read(load_job(str(tmp_path / "digits.yaml")))
    assert not isinstance(stale.model, Traced)
    assert "out of date (code changed since)" in stale.notes[-1]


@pytest.mark.full(witness="tests/memory/test_trace_torch.py::test_the_example_of_a_plain_model")
def test_the_example_of_a_transformers_model(trace: Trace) -> None:
    found = trace(example(1), precision="bf16-mixed", sequence_length=128)
    traced = found["traced"]
    assert traced["family"] == "transformer"
    assert 35e6 < traced["parameters"] < 60e6
    assert sum(point["checkpointing"] for point in traced["points"]) == 2, "transformers can checkpoint"
    plain, checkpointed = (
        next(point for point in traced["points"] if point["batch"] == 8 and point["checkpointing"] is on)
        for on in (False, True)
    )
    kept = [point["peaks"]["single"]["forward"]["activations"] for point in (plain, checkpointed)]
    assert kept[1] < 0.7 * kept[0]


MODELS = """
import torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.n1, self.n2, self.qkv, self.o = nn.LayerNorm(h), nn.LayerNorm(h), nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.f = nn.Sequential(nn.Linear(h, 4 * h), nn.GELU(), nn.Linear(4 * h, h))

    def forward(self, x):
        b, t, h = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 8, h // 8).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, h))
        return x + self.f(self.n2(x))

class Model(nn.Module):
    def __init__(self, h=128, vocabulary=500):
        super().__init__()
        widths = torch.linspace(h, h, 3).int().tolist()  # reads values, as stochastic depth does
        self.e, self.b = nn.Embedding(vocabulary, h), nn.Sequential(*map(Block, widths))
        self.head = nn.Linear(h, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.b(self.e(tokens)))

def build(batch_size):
    return Model(), (torch.zeros(batch_size, 64, dtype=torch.long),), loss

def loss(model, batch):
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[0].flatten())
"""
# What PyTorch's own profiler sees the allocator do in the second step of real training.
REAL = """
import json, sys, warnings
from torch.profiler import ProfilerActivity, profile, record_function
warnings.simplefilter("ignore")
model, batch, loss_of = build(8)
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
def step():
    with record_function("phase forward"):
        loss = loss_of(model, batch)
    with record_function("phase backward"):
        loss.backward()
    with record_function("phase step"):
        optimizer.step()
    optimizer.zero_grad()
step()
held = [*model.parameters(), *batch, *(v for s in optimizer.state.values() for v in s.values())]
live = sum(t.numel() * t.element_size() for t in held)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
    step()
events = sorted(seen.profiler.kineto_results.events(), key=lambda e: e.start_ns())
phases = {e.name()[6:]: (e.start_ns(), e.end_ns()) for e in events if e.name().startswith("phase ")}
peaks = dict.fromkeys(phases, 0)
for event in events:
    if event.name() == "[memory]":
        live += event.nbytes()
        for phase, (start, end) in phases.items():
            if start <= event.start_ns() <= end:
                peaks[phase] = max(peaks[phase], live)
print(json.dumps(peaks))
"""


def test_it_counts_what_real_training_allocates(trace: Trace, python: str, tmp_path: Path) -> None:
    found = trace(MODELS, precision="fp32", optimizer="adamw")
    own = os.environ | {"TMPDIR": str(tmp_path)}  # of torch's compiler
    done = subprocess.run([python, "-c", MODELS + REAL], env=own, capture_output=True, text=True, check=True)
    real = json.loads(done.stdout.splitlines()[-1])
    assert set(real) == {"forward", "backward", "step"}
    for phase, measured in real.items():
        assert total(found["phases"][phase]) == pytest.approx(measured, rel=0.005), phase


GPU = """
import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.tied, self.frozen = nn.Linear(64, 64), nn.Linear(64, 64)
        self.head = nn.Linear(64, 64)
        self.head.weight = self.tied.weight
        self.frozen.requires_grad_(False)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        x = self.head(self.frozen(self.drop(self.tied(x))))
        one = x[:1, :1]
        assert x.dtype == torch.float16 and self.norm(one).dtype == torch.float32, "as CUDA's autocast"
        assert F.softmax(one, -1).dtype == torch.float32 and F.gelu(one).dtype == torch.float16
        q = x.unflatten(-1, (4, 16)).transpose(1, 2)
        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)

def build(batch_size, gradient_checkpointing):
    assert gradient_checkpointing in (True, False)
    model = Model().to(torch.bfloat16).float()
    assert model.head.weight is model.tied.weight
    return model, torch.empty(batch_size, 4096, 64), lambda m, x: m(x).sum() + m(x).sum()
"""


def test_it_keeps_what_a_gpu_would_keep(trace: Trace, tmp_path: Path) -> None:
    found = trace(GPU, precision="fp16-mixed", optimizer="adamw")["traced"]
    log = (tmp_path / "home" / "trace" / "digits" / "log").read_text(encoding="utf-8")
    assert "Traceback" not in log, "built without values, its change of type too"
    assert found["parameters"] == 2 * 64 * 64 + 3 * 64 + 2 * 64, "tied weights count once"
    assert found["trained"] == found["parameters"] - 64 * 64 - 64
    assert found["gradients"] < found["weights"]
    forward = found["points"][0]["peaks"]["single"]["forward"]
    scores = 8 * 4 * 4096 * 4096 * 2
    assert forward["activations"] < scores / 4, "attention scores are not kept, with dropout neither"
    # Twice, bytes of each element: the cast input, the mask of dropout, the input of the head (a frozen layer keeps
    # none), queries and output of attention; and of attention one fp32 number for each of four heads and 64 elements.
    elements = 2 * 8 * 4096 * 64
    assert forward["activations"] == pytest.approx((2 + 1 + 2 + 2 + 2 + 4 * 4 / 64) * elements, rel=0.005)
    assert {point["checkpointing"] for point in found["points"]} == {False, True}


REFUSED = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = y * 2
        return y.mean()

def build(batch_size):
    print("{" * 100000)
    return Model(), torch.empty(batch_size, 8)

def constant(batch_size):
    return nn.Linear(8, 8), torch.empty(3, 8), lambda model, batch: model(batch).mean()
"""


def test_control_flow_on_values_is_refused_by_its_line(trace: Trace, tmp_path: Path) -> None:
    said = trace(REFUSED, code_expected=FAILED)
    line = 1 + REFUSED.splitlines().index("        if y.sum() > 0:")
    assert f"train.py:{line}: aten._local_scalar_dense" in said
    assert "size goes on with the closed form" in said
    kept = next(tmp_path.rglob("*.trace/*.json"))
    assert json.loads(kept.read_text(encoding="utf-8"))["result"] is None


def test_a_batch_that_does_not_grow_is_an_error(trace: Trace) -> None:
    assert "does not grow with batch_size" in trace(REFUSED, "constant", INVALID)


def test_lora_without_adapters_is_an_error(trace: Trace) -> None:
    assert "let the function add the adapters" in trace(MODELS, "build", INVALID, method="lora")
