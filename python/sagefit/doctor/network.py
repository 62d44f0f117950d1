"""Whether jobs in a VPC get instances, addresses, each other, and the data: zones, free addresses, groups, ways out.

Containers in a VPC reach S3 by an endpoint, or through a NAT. They have private addresses only, so that an internet
gateway is no way out for them.
https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from sagefit.doctor.asking import client, code_of
from sagefit.doctor.finding import Finding
from sagefit.job import Job
from sagefit.planning import JobPlan
from sagefit.platform import Platform

_CHECK = "network"
_MISSING = (
    "InvalidSubnetID.NotFound",
    "InvalidGroup.NotFound",
    "InvalidSubnetID.Malformed",
    "InvalidGroupId.Malformed",
)
_EVERYWHERE = "0.0.0.0/0"
_ALL = "-1"  # every protocol


def check_network(plan: JobPlan | None, platform: Platform | None, region: str) -> Iterator[Finding]:
    """Findings about the subnets and groups of a job, or of its platform; nothing where there is no VPC."""
    subnets, groups = _chosen(plan.job if plan else None, platform)
    if not subnets:
        return
    ec2 = client("ec2", region)
    try:
        described = ec2.describe_subnets(SubnetIds=subnets)["Subnets"]
        grouped = ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"] if groups else []
    except ClientError as error:
        if code_of(error) not in _MISSING:
            raise
        fix = "correct resources.subnet_ids and security_group_ids, or the platform's network"
        said = str(error.response["Error"].get("Message", error))
        yield Finding(_CHECK, "fault", f"{said[:1].lower()}{said[1:]}, in {region}", fix)
        return
    found = [
        *_one_network(ec2, described, grouped),
        *(_zones(ec2, plan, described) if plan else ()),
        *(_addresses(plan, described) if plan else ()),
        *(_each_other(plan, grouped) if plan else ()),
        *_ways_out(ec2, described, grouped, region),
    ]
    zones = ", ".join(sorted({subnet["AvailabilityZone"] for subnet in described}))
    yield from found or [Finding(_CHECK, "ok", f"{len(subnets)} subnets in {zones}; S3 can be reached")]


def _chosen(job: Job | None, platform: Platform | None) -> tuple[list[str], list[str]]:
    """The subnets and security groups: the job's own, else the platform's."""
    own, shared = job.resources if job else None, platform.network if platform else None
    subnets, groups = (own.subnet_ids, own.security_group_ids) if own else (None, None)
    return (
        (shared.subnet_ids if shared else []) if subnets is None else subnets,
        (shared.security_group_ids if shared else []) if groups is None else groups,
    )


def _one_network(ec2: Any, subnets: list[Any], groups: list[Any]) -> Iterator[Finding]:
    """All must be of one VPC, and its tenancy the usual one."""
    networks = sorted({each["VpcId"] for each in (*subnets, *groups)})
    for network in ec2.describe_vpcs(VpcIds=networks)["Vpcs"]:
        if network.get("InstanceTenancy", "default") != "default":
            told = f"{network['VpcId']} has {network['InstanceTenancy']} tenancy, and training needs the default one"
            yield Finding(_CHECK, "fault", told, "take subnets of another VPC")
    if len(networks) > 1:
        told = f"subnets and security groups are of several VPCs: {', '.join(networks)}"
        yield Finding(_CHECK, "fault", told, "name those of one VPC")


def _zones(ec2: Any, plan: JobPlan, subnets: list[Any]) -> Iterator[Finding]:
    """Instance types that no zone of the subnets has; EC2 is asked, for SageMaker says nothing of zones."""
    here = sorted({subnet["AvailabilityZone"] for subnet in subnets})
    types = {group.instance_type for attempt in plan.attempts for group in attempt.instances}
    for ml_type in sorted(types):
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": [ml_type.removeprefix("ml.")]}],
        )
        offered = sorted(each["Location"] for page in pages for each in page["InstanceTypeOfferings"])
        if not set(offered) & set(here):
            where = f"EC2 has it in {', '.join(offered)}" if offered else "EC2 has it in no zone of the region"
            told = f"{ml_type} is not to be had in {', '.join(here)}, the zones of the subnets; {where}"
            yield Finding("zones", "fault", told, "add a subnet in such a zone, or take another type")


def _addresses(plan: JobPlan, subnets: list[Any]) -> Iterator[Finding]:
    free = max(int(subnet["AvailableIpAddressCount"]) for subnet in subnets)
    needed = max((attempt.instance_count for attempt in plan.attempts), default=0)
    if free < needed:
        told = f"the largest subnet has {free} free addresses, and an attempt has {needed} instances"
        yield Finding(_CHECK, "fault", told, "name a larger subnet")


def _each_other(plan: JobPlan, groups: list[Any]) -> Iterator[Finding]:
    """Several hosts talk to each other on any port: some group must let in its own members."""
    if max((attempt.instance_count for attempt in plan.attempts), default=0) < 2:
        return
    ids = {group["GroupId"] for group in groups}
    if not any(
        pair["GroupId"] in ids
        for group in groups
        for rule in group["IpPermissions"]
        if rule["IpProtocol"] == _ALL
        for pair in rule["UserIdGroupPairs"]
    ):
        first = next(iter(sorted(ids)), "the group")
        yield Finding(
            _CHECK,
            "fault",
            f"hosts of one job cannot reach each other: none of {', '.join(sorted(ids))} lets in its own members",
            f"aws ec2 authorize-security-group-ingress --group-id {first} --source-group {first} --protocol all",
        )


def _ways_out(ec2: Any, subnets: list[Any], groups: list[Any], region: str) -> Iterator[Finding]:
    """Subnets from which S3 cannot be reached, and groups that let nothing out."""
    closed = [group["GroupId"] for group in groups if not group["IpPermissionsEgress"]]
    if closed and len(closed) == len(groups):
        told = f"{', '.join(closed)} let nothing out, and so containers reach no data"
        fix = (
            f"aws ec2 authorize-security-group-egress --group-id {closed[0]} --protocol tcp --port 443 "
            f"--cidr {_EVERYWHERE}"
        )
        yield Finding(_CHECK, "fault", told, fix)
    of_network = [{"Name": "vpc-id", "Values": sorted({subnet["VpcId"] for subnet in subnets})}]
    tables = _all(ec2, "describe_route_tables", "RouteTables", of_network)
    endpoints = [
        each
        for each in _all(ec2, "describe_vpc_endpoints", "VpcEndpoints", of_network)
        if each["ServiceName"].endswith(f".{region}.s3") and each.get("State", "available").lower() == "available"
    ]
    for subnet in subnets:
        table = _table_of(subnet, tables)
        if not _leads_out(table) and not any(_serves(endpoint, subnet, table) for endpoint in endpoints):
            network, which = subnet["VpcId"], table["RouteTableId"] if table else "ID"
            yield Finding(
                "endpoints",
                "fault",
                f"from {subnet['SubnetId']} S3 cannot be reached: it has no endpoint for S3, and no NAT",
                f"aws ec2 create-vpc-endpoint --vpc-id {network} --service-name com.amazonaws.{region}.s3 "
                f"--route-table-ids {which} --region {region}",
            )


def _all(ec2: Any, operation: str, what: str, filters: list[Any]) -> list[Any]:
    return [each for page in ec2.get_paginator(operation).paginate(Filters=filters) for each in page[what]]


def _table_of(subnet: Any, tables: list[Any]) -> Any:
    """The route table of a subnet: its own, else the main one of its VPC."""
    of_network = [table for table in tables if table["VpcId"] == subnet["VpcId"]]
    own = [
        table
        for table in of_network
        if any(each.get("SubnetId") == subnet["SubnetId"] for each in table["Associations"])
    ]
    main = [table for table in of_network if any(each.get("Main") for each in table["Associations"])]
    return next(iter(own + main), None)


def _leads_out(table: Any) -> bool:
    """Whether a table leads everything to something that is no internet gateway: a NAT, a transit gateway."""
    return table is not None and any(
        route.get("DestinationCidrBlock") == _EVERYWHERE
        and route.get("State", "active") == "active"
        and not str(route.get("GatewayId", "")).startswith("igw-")
        for route in table["Routes"]
    )


def _serves(endpoint: Any, subnet: Any, table: Any) -> bool:
    """Whether an endpoint for S3 is to be had in a subnet: a gateway by its route table, an interface in its VPC."""
    if endpoint["VpcId"] != subnet["VpcId"]:
        return False
    if endpoint.get("VpcEndpointType", "Gateway") == "Interface":
        return True
    return table is not None and table["RouteTableId"] in endpoint.get("RouteTableIds", [])
