"""Which instances a workload fits on, which one is chosen, and where an attempt goes from there."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagefit.catalog import instances
from sagefit.catalog.prices import Price
from sagefit.memory import Estimate, Measured, Placement, Prediction, Tabular, Transformer, Workload
from sagefit.planning import choose as choosing
from sagefit.planning.candidate import NOT_ALLOWED
from sagefit.planning.choose import Candidate, candidates, cheapest, choose, next_larger, sideways, verdict

EAST = "us-east-1"
NO_PRICES = "ap-southeast-3"
LLAMA = Transformer(
    params=8_030_261_248,
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=14336,
    vocab=128256,
)
NEEDS = st.floats(0.5, 400)


def measured(gpu: float | None = None, host: float = 4.0) -> Workload:
    return Workload(model=Measured(host_gib=host, gpu_gib=gpu))


def auto(workload: Workload, region: str = EAST, count: int = 1) -> list[Candidate]:
    return candidates("auto", count, workload, region)


def one(ml_type: str, workload: Workload, region: str = EAST) -> Candidate:
    (found,) = candidates([ml_type], 1, workload, region)
    return found


def estimate(point: float, upper: float) -> Estimate:
    return Estimate(point, upper, {"all": point}, "run")


# The verdict


@pytest.mark.parametrize(
    ("point", "upper", "expected"),
    [(5, 9, "FITS"), (9, 9, "FITS"), (9, 9.01, "RISKY"), (9.01, 12, "OOM"), (8, 11, "RISKY"), (20, 30, "OOM")],
)
def test_the_verdict_keeps_head_room(point: float, upper: float, expected: str) -> None:
    assert verdict(estimate(point, upper), 10.0, 0.10) == expected


@pytest.mark.parametrize(
    ("point", "upper", "spare", "expected"),
    [(8, 9, 4, "FITS"), (8, 10, 4, "RISKY"), (12, 14, 4, "RISKY"), (13, 15, 4, "RISKY"), (13.1, 15, 4, "OOM")],
)
def test_what_the_allocator_gives_back_makes_no_run_oom(
    point: float, upper: float, spare: float, expected: str
) -> None:
    assert verdict(Estimate(point, upper, {"all": point}, "run", spare=spare), 10.0, 0.10) == expected


def test_a_run_that_lives_with_less_is_told_so() -> None:
    """An 8B model under FSDP on eight A10G: what its allocator would hold is too much, what its tensors need is not."""
    work = Workload(
        model=LLAMA, precision="bf16", stack="torchtune", sharding="zero3", sequence_length=1024, micro_batch=8
    )
    found = one("ml.g5.48xlarge", replace(work, gradient_checkpointing=True))
    assert found.prediction
    assert found.prediction.gpu
    gpu = found.prediction.gpu
    assert gpu.least < 0.9 * 22.0 < gpu.point
    assert found.verdict == "RISKY"
    assert found.reason == (
        f"GPU memory: {gpu.point:.1f} of 19.8 GiB (22.0 usable, 10% kept free); "
        f"it may live with {gpu.least:.1f}, and be slower"
    )
    too_large = one("ml.g5.12xlarge", replace(work, gradient_checkpointing=True))
    assert too_large.prediction
    assert too_large.prediction.gpu
    assert too_large.verdict == "OOM"
    assert too_large.reason.startswith(f"GPU memory: {too_large.prediction.gpu.least:.1f} is more than 19.8 GiB")


@settings(deadline=None)
@given(NEEDS, NEEDS, NEEDS, st.floats(0, 0.9))
def test_less_need_or_more_memory_never_makes_it_worse(need: float, less: float, usable: float, room: float) -> None:
    order = ["FITS", "RISKY", "OOM"]
    now = order.index(verdict(estimate(need, need * 1.2), usable, room))
    smaller = min(need, less)
    assert order.index(verdict(estimate(smaller, smaller * 1.2), usable, room)) <= now
    assert order.index(verdict(estimate(need, need * 1.2), usable * 1.5, room)) <= now


def test_the_worse_of_gpu_and_host_counts() -> None:
    fits = one("ml.g5.xlarge", measured(10, 4))
    assert (fits.verdict, fits.binds) == ("FITS", "gpu")
    gpu = one("ml.g5.xlarge", measured(40, 4))
    assert (gpu.verdict, gpu.binds) == ("OOM", "gpu")
    assert "GPU memory: 40.0 is more than 19.8 GiB (22.0 usable, 10% kept free)" in gpu.reason
    host = one("ml.g5.xlarge", measured(10, 40))
    assert (host.verdict, host.binds) == ("OOM", "host")
    assert host.reason.startswith("host memory: 40.0 is more than 13.3 GiB (14.8 usable")
    assert host.host_share is not None
    assert host.host_share >= 40 / 14.8


def test_a_share_is_the_upper_bound_over_usable_memory() -> None:
    found = one("ml.g5.xlarge", measured(10, 4))
    assert found.prediction is not None
    assert found.prediction.gpu is not None
    assert found.gpu_share == pytest.approx(found.prediction.gpu.upper / 21.96)
    assert found.host_share == pytest.approx(found.prediction.host.upper / 14.8)


# What is looked at


def test_auto_looks_at_gpus_for_models_of_gpus_and_at_the_rest_for_the_rest() -> None:
    for workload, gpu in ((measured(10), True), (measured(), False), (Workload(model=Tabular("xgboost")), False)):
        found = auto(workload)
        assert {bool(c.instance.gpu_count) for c in found} == {gpu}
        assert not any(
            c.instance.retired or c.instance.burstable or c.instance.training_plans or c.instance.trainium
            for c in found
        )
        expected = {
            name
            for name, i in instances().items()
            if bool(i.gpu_count) == gpu and not (i.retired or i.burstable or i.training_plans or i.trainium)
        }
        assert {c.instance_type for c in found} == expected


def test_usable_memory_that_nobody_knows_fits_nothing() -> None:
    found = one("ml.g7.2xlarge", measured(1, 1))
    assert found.verdict == "UNKNOWN"
    assert "RTX PRO 4500" in found.reason
    assert one("ml.g7.2xlarge", measured(1, 4000)).verdict == "OOM"


def test_an_unknown_model_fits_nothing() -> None:
    found = auto(Workload(model=None))
    assert {c.verdict for c in found} == {"UNKNOWN"}
    assert {c.host_share for c in found} == {None}
    assert "memory.model" in found[0].reason
    assert choose(found) is None


def test_written_types_are_judged_whatever_they_are() -> None:
    trainium = one("ml.trn1.2xlarge", measured(1, 1))
    assert (trainium.verdict, trainium.prediction) == ("UNKNOWN", None)
    assert "Trainium" in trainium.reason
    retired = one("ml.p3.2xlarge", measured(10))
    assert retired.verdict == "FITS"
    assert "retired" in retired.flags
    without_gpu = one("ml.m5.4xlarge", measured(10))
    assert without_gpu.verdict == "UNKNOWN"
    assert "no GPU" in without_gpu.reason
    plan = one("ml.p5en.48xlarge", measured(10))
    assert {"sold mostly through Training Plans", "price estimated"} <= set(plan.flags)


def test_a_model_of_gpus_may_be_trained_on_a_cpu_type_that_is_written() -> None:
    found = one("ml.m5.4xlarge", Workload(model=LLAMA))
    assert found.placement.gpus == 0
    assert (found.verdict, found.binds) == ("OOM", "host")  # 8 billion parameters with Adam, in 64 GiB


def test_the_platform_decides_what_is_allowed() -> None:
    names = ["ml.g5.xlarge", "ml.g6.12xlarge"]
    found = candidates("auto", 1, measured(10), EAST, allowed=names)
    assert {c.instance_type for c in found} == set(names)
    assert len(candidates("auto", 1, measured(10), EAST, allowed=[])) == len(auto(measured(10)))
    written = candidates(["ml.g5.xlarge", "ml.g6e.xlarge"], 1, measured(10), EAST, allowed=["ml.g6e.xlarge"])
    assert [c.instance_type for c in written if NOT_ALLOWED in c.flags] == ["ml.g5.xlarge"]
    chosen = choose(written)
    assert chosen is not None
    assert chosen.instance_type == "ml.g6e.xlarge"


def test_a_sharded_job_may_grow_where_it_is_automatic() -> None:
    sharded = Workload(model=LLAMA, precision="bf16-mixed", sharding="zero3", sequence_length=512)
    assert {c.instance_count for c in auto(sharded)} == {1, 2, 4, 8}
    assert {c.instance_count for c in auto(sharded, count=3)} == {3, 4, 8}
    assert {c.instance_count for c in auto(sharded, count=16)} == {16}
    assert {c.instance_count for c in auto(replace(sharded, sharding="none"))} == {1}
    assert {c.instance_count for c in candidates(["ml.g5.48xlarge"], 2, sharded, EAST)} == {2}
    same = {c.instance_count: c.gpu_share for c in auto(sharded) if c.instance_type == "ml.g6e.48xlarge"}
    shares = [share for _, share in sorted(same.items()) if share is not None]
    assert len(shares) == 4
    assert shares == sorted(shares, reverse=True)


def test_world_size_calls_for_as_many_gpus() -> None:
    sharded = Workload(model=LLAMA, precision="bf16-mixed", sharding="zero3", sequence_length=512, world_size=12)
    counts = {c.instance_type: c.instance_count for c in auto(sharded)}
    assert (counts["ml.g6.xlarge"], counts["ml.g6.12xlarge"], counts["ml.g6.48xlarge"]) == (12, 3, 2)
    assert {c.instance_count for c in auto(sharded, count=16)} == {16}
    many = auto(replace(sharded, world_size=512))
    assert many
    assert {c.placement.gpus_per_host for c in many} == {8}
    assert not auto(replace(sharded, world_size=513))
    assert {c.instance_count for c in auto(replace(measured(), world_size=4))} == {1}  # no GPUs, nothing to count
    chosen = choose(auto(sharded))
    assert chosen
    assert chosen.placement.gpus >= 12


def test_too_few_gpus_for_world_size_never_fit() -> None:
    workload = Workload(model=LLAMA, precision="bf16-mixed", sharding="zero3", sequence_length=512, world_size=64)
    (found,) = candidates(["ml.g6.4xlarge"], 1, replace(workload, model=Measured(10, 10)), EAST)
    assert (found.verdict, found.too_few_gpus) == ("UNKNOWN", True)
    assert found.prediction
    assert found.reason == "world_size 64 needs 64 GPUs, 1 x ml.g6.4xlarge has 1"
    assert choose([found]) is None
    (enough,) = candidates(["ml.g6.4xlarge"], 1, replace(workload, world_size=1), EAST)
    assert not enough.too_few_gpus
    (idle,) = candidates(["ml.g6.12xlarge"], 1, replace(workload, world_size=2), EAST)
    assert not idle.too_few_gpus


def test_every_distinct_placement_is_predicted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Placement] = []

    def predict(_: Workload, placement: Placement) -> Prediction:
        asked.append(placement)
        return Prediction(estimate(1, 1), estimate(1, 1))

    monkeypatch.setattr(choosing, "predict", predict)
    found = auto(measured(10))
    assert len(asked) == len(set(asked)) == 4 < len(found)  # 1, 2, 4 and 8 GPUs
    asked.clear()
    auto(measured())
    assert asked == [Placement(1, 0, "")]


# The price and the choice


def test_money_is_for_all_instances() -> None:
    (found,) = candidates(["ml.g5.xlarge"], 4, measured(10), EAST, spot=True)
    assert found.usd_per_hour == pytest.approx(4 * 1.408)
    assert found.spot_usd_per_hour == pytest.approx((4 * 1.408 * 0.2, 4 * 1.408 * 0.35, 4 * 1.408 * 0.5))
    assert one("ml.g5.xlarge", measured(10)).spot_usd_per_hour is None


@settings(deadline=None)
@given(NEEDS, NEEDS)
def test_the_choice_fits_and_nothing_that_fits_is_cheaper(gpu: float, host: float) -> None:
    found = auto(measured(gpu, host))
    fitting = [c.usd_per_hour for c in found if c.verdict == "FITS" and c.usd_per_hour is not None]
    chosen = choose(found)
    if chosen is None:
        assert not [c for c in found if c.verdict == "FITS"]
    else:
        assert chosen.verdict == "FITS"
        assert chosen.gpu_share is not None
        assert chosen.host_share is not None
        assert max(chosen.gpu_share, chosen.host_share) <= 0.9 + 1e-9
        assert chosen.usd_per_hour == min(fitting)


@settings(deadline=None, max_examples=60)
@given(
    st.one_of(st.none(), NEEDS),
    NEEDS,
    st.sampled_from(
        ["auto", ("ml.g5.xlarge", "ml.g4dn.xlarge"), ("ml.m5.large",), ("ml.p4d.24xlarge", "ml.g6.48xlarge")]
    ),
    st.sampled_from([1, 2]),
    st.sampled_from([None, 8, 200]),
    st.sampled_from(["none", "zero3"]),
    st.sampled_from([EAST, NO_PRICES]),
)
def test_the_cheapest_is_what_is_chosen_of_all(
    gpu: float | None,
    host: float,
    types: Any,
    count: int,
    world_size: int | None,
    sharding: Any,
    region: str,
) -> None:
    work = replace(measured(gpu, host), world_size=world_size, sharding=sharding)
    found = candidates(types, count, work, region)
    assert found == sorted(found, key=lambda candidate: candidate.order)
    assert cheapest(types, count, work, region) == choose(found)


@settings(deadline=None)
@given(st.one_of(st.none(), NEEDS), NEEDS, st.floats(1, 4), st.floats(1, 4))
def test_more_need_never_makes_the_choice_cheaper(
    gpu: float | None, host: float, more_gpu: float, more_host: float
) -> None:
    small = choose(auto(measured(gpu, host)))
    large = choose(auto(measured(gpu and gpu * more_gpu, host * more_host)))
    if large is not None:
        assert small is not None
        assert small.usd_per_hour is not None
        assert large.usd_per_hour is not None
        assert small.usd_per_hour <= large.usd_per_hour


@settings(deadline=None)
@given(st.randoms(), NEEDS)
def test_the_order_of_the_input_does_not_matter(shuffle: random.Random, gpu: float) -> None:
    names = list(instances())
    expected = candidates(names, 1, measured(gpu), EAST)
    shuffle.shuffle(names)
    assert candidates(names, 1, measured(gpu), EAST) == expected
    mixed = list(expected)
    shuffle.shuffle(mixed)
    assert choose(mixed) == choose(expected)
    current = one("ml.g5.2xlarge", measured(gpu))
    assert next_larger(mixed, current, cure="gpu_memory") == next_larger(expected, current, cure="gpu_memory")
    assert sideways(mixed, current) == sideways(expected, current)


def test_without_prices_those_of_another_region_give_the_order_and_nothing_else() -> None:
    found = auto(measured(10), NO_PRICES)
    chosen, usual = choose(found), choose(auto(measured(10)))
    assert chosen is not None
    assert usual is not None
    assert (chosen.price, chosen.usd_per_hour) == (None, None)
    assert f"no price known in {NO_PRICES}" in chosen.flags
    assert chosen.instance_type == usual.instance_type


def test_a_type_without_a_price_is_chosen_only_where_none_that_fits_has_one() -> None:
    found = auto(measured(30), "eu-west-1")  # has prices of some types
    chosen = choose(found)
    assert chosen is not None
    assert chosen.price is not None
    assert any(c.price is None and c.verdict == "FITS" and c.order_usd < chosen.order_usd for c in found)


def test_at_equal_prices_published_then_fewer_gpus_then_newer() -> None:
    base = one("ml.g5.xlarge", measured(10))
    assert base.price is not None
    estimated = base._replace(price=Price(1.408, "x", "2026-01-01", estimated=True))
    more_gpus = base._replace(placement=Placement(1, 4, "A10G"))
    newer = base._replace(instance=replace(base.instance, ml_type="ml.g6.xlarge"))
    cheaper = estimated._replace(order_usd=1.0, price=Price(1.0, "x", "2026-01-01", estimated=True))
    ordered = [cheaper, newer, base, more_gpus, estimated]
    assert sorted([estimated, newer, more_gpus, cheaper, base], key=lambda c: c.order) == ordered
    assert choose([estimated, more_gpus, base]) == base
    assert choose([base, newer]) == newer
    assert choose([base, cheaper]) == cheaper


# Where to go from there


@settings(deadline=None)
@given(st.floats(1, 60), st.floats(1, 200), st.sampled_from(["ml.g4dn.xlarge", "ml.g5.2xlarge", "ml.g6.12xlarge"]))
def test_the_next_larger_one_fits_and_relieves_what_ran_out(gpu: float, host: float, name: str) -> None:
    workload = measured(gpu, host)
    found, current = auto(workload), one(name, workload)
    for_gpu = next_larger(found, current, cure="gpu_memory")
    if for_gpu is not None:
        assert for_gpu.verdict == "FITS"
        assert for_gpu.placement.gpus >= current.placement.gpus
        assert (for_gpu.usable_gpu_gib or 0) >= (current.usable_gpu_gib or 0) * 1.1
    for_host = next_larger(found, current, cure="host_memory")
    if for_host is not None:
        assert for_host.verdict == "FITS"
        assert for_host.placement.gpus >= current.placement.gpus
        assert for_host.usable_host_gib >= current.usable_host_gib * 1.1


def test_a_gpu_remedy_has_more_memory_per_gpu_and_a_host_remedy_may_keep_the_gpu() -> None:
    workload = measured(15, 10)
    found, current = auto(workload), one("ml.g5.xlarge", workload)
    gpu = next_larger(found, current, cure="gpu_memory")
    assert gpu is not None
    assert gpu.instance_type == "ml.g6e.xlarge"
    host = next_larger(found, current, cure="host_memory")
    assert host is not None
    assert (host.usable_gpu_gib, host.instance.memory_gib) == (21.96, 32)
    after = next_larger(found, current, cure="host_memory", exclude=[host.instance_type])
    assert after is not None
    assert after.instance_type != host.instance_type


def test_a_cpu_job_keeps_its_vcpus() -> None:
    workload = measured(host=5)
    found, current = auto(workload), one("ml.c5.4xlarge", workload)
    larger = next_larger(found, current, cure="host_memory")
    assert larger is not None
    assert larger.instance.vcpus >= 16
    assert larger.instance.memory_gib >= 32 * 1.1
    assert next_larger(found, current, cure="gpu_memory") is None


def test_nothing_larger_is_none() -> None:
    workload = measured(70, 10)
    found = auto(workload)
    largest = max((c for c in found if c.price), key=lambda c: c.usable_gpu_gib or 0)
    assert next_larger(found, largest, cure="gpu_memory") is None


def test_without_a_model_larger_is_what_has_more_of_one_and_no_less_of_the_other() -> None:
    workload = Workload(model=None)
    found, current = auto(workload), one("ml.g5.2xlarge", workload)
    for cure in ("gpu_memory", "host_memory"):
        larger = next_larger(found, current, cure=cure)
        assert larger is not None
        gpu, host = larger.usable_gpu_gib or 0, larger.usable_host_gib
        assert gpu >= 21.96
        assert host >= current.usable_host_gib
        assert (gpu if cure == "gpu_memory" else host) > (21.96 if cure == "gpu_memory" else current.usable_host_gib)


def test_capacity_moves_sideways() -> None:
    workload = measured(15, 10)
    found, current = auto(workload), one("ml.g5.2xlarge", workload)
    other = sideways(found, current)
    assert other is not None
    assert other.instance_type == "ml.g6.4xlarge"
    assert other.usd_per_hour is not None
    again = sideways(found, current, exclude=[other.instance_type])
    assert again is not None
    assert again.instance_type not in (other.instance_type, current.instance_type)
    for candidate in (other, again):
        assert candidate.verdict == "FITS"
        assert (candidate.usable_gpu_gib or 0) >= 21.96
        assert candidate.usable_host_gib >= current.usable_host_gib


def test_nothing_takes_over_from_trainium() -> None:
    workload = measured(18, 10)
    current = one("ml.trn1.2xlarge", workload)
    assert sideways(auto(workload), current) is None
    assert next_larger(auto(workload), current, cure="host_memory") is None
