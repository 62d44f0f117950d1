"""What instances have and cost, where the figures come from, and how they are brought up to date."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions
import pytest
from botocore.stub import Stubber
from moto.ec2.models.instance_types import INSTANCE_TYPES
from rich.console import Console

from cli_runner import Sagefit
from sagefit import console
from sagefit.catalog import instances, price, prices, quota_code, quota_name, refresh, store
from sagefit.catalog.refresh import ask, specs_of, training_prices
from sagefit.catalog.store import Snapshot, Specs
from sagefit.catalog.view import table
from sagefit.cli import catalog as commands
from sagefit.errors import FAILED, INVALID, REFUSED, SagefitError
from sagefit.memory import Measured, Workload
from sagefit.paths import INSTANCES_CSV
from sagefit.planning import choose

REGION = "eu-central-1"
CPU_RATIO, G_RATIO, G_XLARGE_RATIO, P_RATIO = 1.20, 1.25, 1.40, 1.15


def forget() -> None:
    for cached in (instances, price, store.snapshots, choose._offers, choose._automatic, choose._places):
        cached.cache_clear()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, and no memory of another."""
    folder = tmp_path / "catalog"
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(folder))
    forget()
    yield folder
    forget()


@pytest.fixture
def sagefit(tmp_path: Path) -> Sagefit:
    return Sagefit(tmp_path, AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE=os.devnull, AWS_REGION="us-east-1")


def learned(region: str = REGION, date: str = "2026-11-21", **more: Any) -> Snapshot:
    return Snapshot(region, date, "test", more.get("prices", {"ml.g5.xlarge": 1.9}), more.get("specs", {}))


# The tables


def test_every_type_that_sagemaker_trains_on_is_in_the_table() -> None:
    shape: Any = boto3.client("sagemaker", "us-east-1").meta.service_model.shape_for("TrainingInstanceType")
    assert set(shape.enum) <= set(instances())
    assert len(instances()) == 225


def test_the_table_says_what_ec2_says() -> None:
    compared = 0
    for instance in instances().values():
        row = INSTANCE_TYPES.get(instance.ml_type.removeprefix("ml."))
        if row is None:
            assert instance.family in ("p2", "p3", "p6e-gb200")
            continue
        assert specs_of(row) == Specs(instance.vcpus, instance.memory_gib, instance.nvme_gb, instance.efa)
        devices = row.get("GpuInfo", {}).get("Gpus", []) + row.get("NeuronInfo", {}).get("NeuronDevices", [])
        said = [(device["Name"], device["Count"]) for device in devices]
        assert said == ([(instance.accelerator, instance.accelerator_count)] if instance.accelerator else [])
        compared += 1
    assert compared > 200


def test_usable_memory_is_less_than_nominal_and_never_made_up() -> None:
    for instance in instances().values():
        assert instance.usable_host_gib == pytest.approx(instance.memory_gib * 0.925)
        if instance.usable_gpu_gib is not None:
            assert instance.gpu_count
            assert instance.accelerator_memory_gib is not None
            assert 0.9 < instance.usable_gpu_gib / instance.accelerator_memory_gib < 1
    unknown = {i.accelerator for i in instances().values() if i.gpu_count and i.usable_gpu_gib is None}
    assert unknown == {"RTX PRO 4500", "B300", "GB200"}
    assert instances()["ml.g5.xlarge"].usable_gpu_gib == 21.96
    assert instances()["ml.p4de.24xlarge"].usable_gpu_gib == 79.14


def test_what_is_not_for_everybody_is_flagged() -> None:
    flagged = {i.family for i in instances().values() if "sold mostly through Training Plans" in i.flags}
    assert flagged == {"p5e", "p5en", "p6-b200", "p6-b300", "p6e-gb200", "trn2"}
    assert {i.family for i in instances().values() if i.retired} == {"p2", "p3", "p3dn"}
    assert {i.family for i in instances().values() if i.trainium} == {"trn1", "trn1n", "trn2"}
    assert instances()["ml.g5.xlarge"].flags == ()


def test_terraform_has_the_columns_it_reads() -> None:
    with INSTANCES_CSV.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {"ml_type", "accelerator", "nvme_gb"} <= set(rows[0])
    assert all(None not in row and None not in row.values() for row in rows)


def test_quotas_go_by_name() -> None:
    assert quota_name("ml.g5.xlarge", "spot") == "ml.g5.xlarge for spot training job usage"
    assert quota_code("ml.p4d.24xlarge", "training") == "L-09B4A649"
    assert quota_code("ml.p5.48xlarge", "spot") is None
    assert quota_code("ml.c8i.large", "training") is None


# Prices


def test_published_prices_have_a_source_and_a_date() -> None:
    assert len(prices._published()) == 197
    for known in prices._published().values():
        assert not known.estimated
        assert known.usd_per_hour > 0
        assert known.source
        assert known.date[:2] == "20"


def test_the_ratios_are_those_of_published_prices() -> None:
    seen: dict[float, int] = {}
    for (ml_type, region), known in prices._published().items():
        ratio = prices.family_ratio(instances()[ml_type])
        if region == "us-east-1" and ratio is not None:
            ec2 = prices._ec2_prices()[ml_type]
            assert known.usd_per_hour == pytest.approx(ec2 * ratio, abs=0.011), ml_type
            seen[ratio] = seen.get(ratio, 0) + 1
    assert set(seen) == {CPU_RATIO, G_RATIO, G_XLARGE_RATIO, P_RATIO}
    assert sum(seen.values()) >= 110


def test_an_estimate_is_marked_and_made_in_one_region_only() -> None:
    estimate = price("ml.p5en.48xlarge", "us-east-1")
    assert estimate is not None
    assert estimate.estimated
    assert estimate.usd_per_hour == pytest.approx(63.296 * P_RATIO, abs=0.001)
    assert "1.15" in estimate.source
    assert "2026-07-20" in estimate.source
    assert price("ml.p5en.48xlarge", "us-west-2") is None
    published = price("ml.g5.xlarge", "us-east-1")
    assert published is not None
    assert (published.usd_per_hour, published.estimated) == (1.408, False)


@pytest.mark.parametrize("ml_type", ["ml.p2.xlarge", "ml.p5e.48xlarge", "ml.p6e-gb200.36xlarge", "ml.no.such"])
def test_what_no_ratio_or_ec2_price_is_known_of_has_no_price(ml_type: str) -> None:
    assert price(ml_type, "us-east-1") is None


# The cache


def test_a_newer_snapshot_wins(cache: Path) -> None:
    specs = {"ml.g5.xlarge": Specs(4, 17.0, 251, True), "ml.not.ours": Specs(1, 1, 1, False)}
    store.write(learned(specs=specs))
    forget()
    found = price("ml.g5.xlarge", REGION)
    assert found == prices.Price(1.9, "test", "2026-11-21")
    instance = instances()["ml.g5.xlarge"]
    assert (instance.memory_gib, instance.nvme_gb, instance.efa) == (17.0, 251, True)
    assert (instance.accelerator, instance.usable_gpu_gib) == ("A10G", 21.96)
    assert "ml.not.ours" not in instances()
    assert [path.name for path in cache.iterdir()] == [f"{REGION}.json"]


def test_an_older_snapshot_does_not(cache: Path) -> None:
    specs = {"ml.g5.xlarge": Specs(1, 1.0, 1, True)}
    store.write(learned("us-east-1", "2020-01-01", prices={"ml.g5.xlarge": 9.9}, specs=specs))
    forget()
    found = price("ml.g5.xlarge", "us-east-1")
    assert found is not None
    assert found.usd_per_hour == 1.408
    assert instances()["ml.g5.xlarge"].memory_gib == 16
    assert cache.is_dir()


@pytest.mark.usefixtures("cache")
def test_what_a_refreshed_price_list_does_not_name_has_no_price() -> None:
    store.write(learned("us-east-1"))
    forget()
    assert price("ml.g7e.48xlarge", "us-east-1") is None  # an estimate without the refresh
    assert price("ml.m5.large", "us-east-1") is None  # an older published price
    assert price("ml.g5.xlarge", "us-west-2") is not None  # another region
    workload = Workload(model=Measured(host_gib=4))
    for packaged, expected in ((True, 0.115), (False, None)):
        (found,) = choose.candidates(["ml.m5.large"], 1, workload, "us-east-1", packaged=packaged)
        assert found.usd_per_hour == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"schema": 2}',
        '{"schema": 1, "region": "eu-west-1", "date": "2026-11-21", "source": "x", "prices": {}, "specs": {}}',
        '{"schema": 1, "region": "eu-central-1", "date": "2026-11-21", "source": "x", "prices": [], "specs": {}}',
        '{"schema": 1, "region": "eu-central-1", "date": "2026-11-21", "source": "x", "specs": {},'
        ' "prices": {"ml.g5.xlarge": NaN}}',
        '{"schema": 1, "region": "eu-central-1", "date": "2026-11-21", "source": "x", "prices": {},'
        ' "specs": {"ml.g5.xlarge": {"vcpus": 4}}}',
    ],
)
def test_a_broken_cache_is_ignored_with_one_warning(
    cache: Path, capsys: pytest.CaptureFixture[str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "err", Console(stderr=True, width=500))
    cache.mkdir()
    (cache / f"{REGION}.json").write_text(text, encoding="utf-8")
    assert price("ml.g5.xlarge", REGION) is None
    assert instances()["ml.g5.xlarge"].memory_gib == 16
    warning = capsys.readouterr().err
    assert warning.count("warning:") == 1
    assert f"{REGION}.json" in warning
    assert f"catalog refresh --region {REGION}" in warning


def test_a_write_that_fails_leaves_the_old_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(learned())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        store.write(learned(prices={"ml.g5.xlarge": 7.0}))
    assert [path.name for path in cache.iterdir()] == [f"{REGION}.json"]
    assert store.snapshots()[0].prices == {"ml.g5.xlarge": 1.9}


# Asking AWS


def product(ml_type: str, usd: str, **changes: Any) -> str:
    """A row of the price list, with the attributes that parsers of it rely on."""
    attributes = {
        "regionCode": REGION,
        "instanceName": ml_type,
        "instanceType": f"{ml_type}-Training",
        "component": "Training",
        "usagetype": f"EUC1-Train:{ml_type}",
        "operation": "RunInstance",
    }
    dimension = {"unit": changes.pop("unit", "Hrs"), "pricePerUnit": {"USD": usd}, "beginRange": "0"}
    terms = {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}}
    return json.dumps({"product": {"sku": "SKU", "attributes": attributes | changes}, "terms": terms})


def ec2_row(name: str, memory_mib: int = 16384) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": memory_mib},
        "InstanceStorageInfo": {"TotalSizeInGB": 250},
        "NetworkInfo": {"EfaSupported": False},
    }


@functools.cache
def aws() -> tuple[boto3.Session, dict[str, Any]]:
    """Made once: reading the model of EC2 takes longer than all these tests."""
    session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x")
    ec2 = session.client("ec2", region_name=REGION)
    return session, {"ec2": ec2, "pricing": session.client("pricing", region_name="us-east-1")}


class Stubs:
    """Both services, answering in turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session, clients = aws()
        self.ec2, self.pricing = Stubber(clients["ec2"]), Stubber(clients["pricing"])
        self.regions: dict[str, str] = {}

        def client(_: Any, service: str, region: str) -> Any:
            self.regions[service] = region
            return clients[service]

        monkeypatch.setattr(refresh, "_client", client)

    def instance_types(self, *pages: list[dict[str, Any]]) -> None:
        for index, page in enumerate(pages):
            more = {"NextToken": f"page{index + 1}"} if index + 1 < len(pages) else {}
            asked = {"MaxResults": 100} | ({"NextToken": f"page{index}"} if index else {})
            self.ec2.add_response("describe_instance_types", {"InstanceTypes": page, **more}, asked)

    def products(self, *pages: list[str], then: str = "") -> None:
        """``then`` is the error that ends the pages."""
        for index, page in enumerate(pages):
            more = {"NextToken": f"page{index + 1}"} if then or index + 1 < len(pages) else {}
            filters = [
                {"Type": "TERM_MATCH", "Field": "regionCode", "Value": REGION},
                {"Type": "TERM_MATCH", "Field": "component", "Value": "Training"},
            ]
            asked = {"ServiceCode": "AmazonSageMaker", "Filters": filters} | (
                {"NextToken": f"page{index}"} if index else {}
            )
            self.pricing.add_response("get_products", {"PriceList": page, **more}, asked)
        if then:
            self.pricing.add_client_error("get_products", then, "no")


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubs]:
    found = Stubs(monkeypatch)
    with found.ec2, found.pricing:
        yield found


def test_refresh_reads_all_pages_of_both(stubs: Stubs) -> None:
    stubs.instance_types([ec2_row("g5.xlarge")], [ec2_row("m5.large", 8192), ec2_row("m7g.large")])
    stubs.products(
        [product("ml.g5.xlarge", "1.7600000000"), product("ml.g5.2xlarge", "0.0000000000")],
        [product("ml.m5.large", "0.1390000000"), product("ml.m5.large", "0.1380000000")],
    )
    asked: list[str] = []
    found = ask(stubs.session, REGION, asked.append)
    stubs.ec2.assert_no_pending_responses()
    stubs.pricing.assert_no_pending_responses()
    assert found.prices == {"ml.g5.xlarge": 1.76, "ml.m5.large": 0.139}  # of two prices the dearer
    assert found.specs == {"ml.g5.xlarge": Specs(4, 16, 250, False), "ml.m5.large": Specs(4, 8, 250, False)}
    assert (found.region, found.source) == (REGION, refresh.SOURCE)
    assert stubs.regions == {"ec2": REGION, "pricing": "us-east-1"}
    assert len(asked) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"component": "Hosting"},
        {"component": "SpotTraining"},
        {"regionCode": "us-east-1"},
        {"instanceName": "NA"},
        {"instanceName": "ml.m7g.large"},
        {"unit": "GB-Mo"},
    ],
)
def test_other_rows_of_the_price_list_are_no_training_price(changes: dict[str, str]) -> None:
    assert list(training_prices(json.loads(product("ml.m5.large", "0.138")), REGION)) == [("ml.m5.large", 0.138)]
    assert list(training_prices(json.loads(product("ml.m5.large", "0.138", **changes)), REGION)) == []


@pytest.mark.parametrize(
    ("code", "said", "knob"),
    [
        ("UnauthorizedOperation", "ec2:DescribeInstanceTypes", "allow the IAM action ec2:DescribeInstanceTypes"),
        ("RequestLimitExceeded", "throttles", "run it again in a minute"),
        ("ExpiredToken", "does not accept the credentials", "log in again"),
        ("InternalError", "InternalError", "try again"),
    ],
)
def test_what_ec2_refuses_is_explained(stubs: Stubs, code: str, said: str, knob: str) -> None:
    stubs.ec2.add_client_error("describe_instance_types", code, "no")
    with pytest.raises(SagefitError) as refused:
        ask(stubs.session, REGION)
    assert refused.value.exit_code == FAILED
    assert said in refused.value.message
    assert "\n" not in refused.value.message
    assert knob in str(refused.value.hint)
    assert "packaged figures" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("code", "knob"),
    [("AccessDeniedException", "allow the IAM action pricing:GetProducts"), ("ThrottlingException", "in a minute")],
)
def test_what_the_price_list_refuses_is_explained(stubs: Stubs, code: str, knob: str) -> None:
    stubs.instance_types([ec2_row("g5.xlarge")])
    stubs.products([product("ml.g5.xlarge", "1.76")], then=code)
    with pytest.raises(SagefitError, match="pricing:GetProducts") as refused:
        ask(stubs.session, REGION)
    assert knob in str(refused.value.hint)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (botocore.exceptions.NoCredentialsError(), "no AWS credentials"),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="https://ec2"), "does not answer"),
        (botocore.exceptions.ReadTimeoutError(endpoint_url="https://ec2"), "does not answer"),
        (botocore.exceptions.ProxyConnectionError(proxy_url="http://proxy"), "does not answer"),
        (botocore.exceptions.TokenRetrievalError(provider="sso", error_msg="expired"), "expired"),
    ],
)
def test_without_credentials_or_network_it_says_so(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def client(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(refresh, "_client", client)
    with pytest.raises(SagefitError, match=said) as refused:
        ask(boto3.Session(), REGION)
    assert refused.value.exit_code == FAILED
    assert refused.value.message.startswith("ec2:DescribeInstanceTypes: ")


def test_an_answer_of_another_shape_is_no_price_list(stubs: Stubs) -> None:
    stubs.instance_types([])
    stubs.products(['{"product": {}}'])
    with pytest.raises(SagefitError, match="another shape"):
        ask(stubs.session, REGION)


def test_a_region_without_training_prices_is_not_saved(stubs: Stubs) -> None:
    stubs.instance_types([ec2_row("g5.xlarge")])
    stubs.products([])
    with pytest.raises(SagefitError, match=f"no training price in {REGION}"):
        ask(stubs.session, REGION)


@pytest.mark.parametrize("region", ["mars", "../eu-west-1", "cn-north-1", "us-gov-west-1"])
def test_other_regions_are_refused_before_anything_is_asked(stubs: Stubs, region: str) -> None:
    with pytest.raises(SagefitError, match="--region") as refused:
        ask(stubs.session, region)
    assert refused.value.exit_code == INVALID
    assert stubs.regions == {}


# The command line


def test_refresh_writes_what_it_learned(
    cache: Path, stubs: Stubs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stubs.instance_types([ec2_row("g5.xlarge")])
    stubs.products([product("ml.g5.xlarge", "1.76")])
    monkeypatch.setattr(commands, "_session", lambda: stubs.session)
    commands.refresh(REGION)
    assert [path.name for path in cache.iterdir()] == [f"{REGION}.json"]
    assert capsys.readouterr().out == ""
    forget()
    found = price("ml.g5.xlarge", REGION)
    assert found is not None
    assert (found.usd_per_hour, found.source) == (1.76, refresh.SOURCE)


def test_refresh_without_credentials_writes_nothing(sagefit: Sagefit) -> None:
    done = sagefit("catalog", "refresh", "--region", REGION, check=FAILED)
    assert "no AWS credentials" in done.err
    assert "hint:" in done.err
    assert done.out == ""
    assert not (sagefit.home / "catalog").exists()


def test_the_embedded_cloud_has_no_prices(sagefit: Sagefit) -> None:
    done = sagefit("--cloud", "local", "catalog", "refresh", check=REFUSED)
    assert "sells nothing" in done.err


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_show_filters_and_sorts_by_price(sagefit: Sagefit) -> None:
    done = sagefit("catalog", "show", "--gpu", "a10g", "--min-memory", "50", "--max-price", "3", "--json")
    found = rows(done.out)
    assert [row["instance_type"] for row in found] == ["ml.g5.4xlarge"]
    assert found[0]["usable_host_gib"] == pytest.approx(64 * 0.925)
    assert found[0]["estimated"] is False
    assert found[0]["price_date"]
    assert found[0]["quotas"]["training"]["name"] == "ml.g5.4xlarge for training job usage"
    large = rows(sagefit("catalog", "show", "--min-gpu-memory", "79", "--json").out)
    assert {row["accelerator"] for row in large} == {"A100", "H100", "H200", "B200", "RTX PRO Server 6000"}
    known = [row["usd_per_hour"] for row in large if row["usd_per_hour"] is not None]
    assert known == sorted(known)
    assert [row["usd_per_hour"] for row in large][: len(known)] == known


def test_show_marks_what_is_estimated_and_what_is_missing(sagefit: Sagefit) -> None:
    types = ("g7e.48xlarge", "ml.p6e-gb200.36xlarge", "g5.xlarge")
    done = sagefit("catalog", "show", *types)
    assert "\x1b" not in done.out
    lines = {line.split()[0]: line.rstrip() for line in done.out.splitlines()}
    assert lines["ml.g7e.48xlarge"].endswith("estimated 2")
    assert lines["ml.p6e-gb200.36xlarge"].endswith("missing")
    assert lines["ml.g5.xlarge"].endswith("1.408  1")
    assert "2: estimated: EC2 on-demand x 1.25 (EC2 prices of 2026-07-20" in done.out
    assert "sold mostly through Training Plans: p6e-gb200" in done.out
    by_type = {row["instance_type"]: row for row in rows(sagefit("catalog", "show", *types, "--json").out)}
    assert by_type["ml.g7e.48xlarge"]["estimated"] is True
    assert by_type["ml.p6e-gb200.36xlarge"]["usd_per_hour"] is None


def test_show_is_readable_at_100_columns() -> None:
    text = io.StringIO()
    rows = [(instance, price(instance.ml_type, "us-east-1")) for instance in instances().values()]
    Console(width=100, file=text).print(table(rows))
    assert "…" not in text.getvalue()
    assert all(f"\n{ml_type} " in text.getvalue() for ml_type in instances())


def test_show_says_which_type_was_meant(sagefit: Sagefit) -> None:
    done = sagefit("catalog", "show", "g5.xlargee", check=INVALID)
    assert "did you mean ml.g5.xlarge?" in done.err
    for options, said in (
        (("--family", "g55"), "did you mean g5"),
        (("--gpu", "a10"), "did you mean A10G"),
        (("--max-price", "-1"), "--max-price -1: no amount"),
        (("--min-memory", "nan"), "--min-memory nan: no amount"),
        (("--min-gpu-memory", "inf"), "--min-gpu-memory inf: no amount"),
        (("--region", "mars-1"), "region mars-1: no name of an AWS region"),
        (("--region", "us-east1"), "did you mean us-east-1?"),
    ):
        assert said in sagefit("catalog", "show", *options, check=INVALID).err
    nothing = sagefit("catalog", "show", "--family", "g5", "--max-price", "0.1")
    assert nothing.out == ""
    assert "no training instance is like that" in nothing.err
