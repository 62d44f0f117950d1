"""Who can connect: rules of security groups and network ACLs, compared by protocol, ports and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sagefit.documents import UNKNOWN, as_list
from sagefit.iam.compare import inside
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit, Severity
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import will_be

WORLD = ("0.0.0.0/0", "::/0")
WEB = ({80}, {443})
_GROUPS = ("aws_security_group", "aws_default_security_group")
_RULES = ("aws_security_group_rule", "aws_vpc_security_group_ingress_rule", "aws_vpc_security_group_egress_rule")
_PREFIX_LISTS = ("aws_ec2_managed_prefix_list", "aws_ec2_managed_prefix_list_entry")
_CIDRS = ("cidr_blocks", "ipv6_cidr_blocks", "cidr_ipv4", "cidr_ipv6", "cidr_block", "ipv6_cidr_block")
_OTHERS = (
    "security_groups",
    "source_security_group_id",
    "referenced_security_group_id",
    "prefix_list_ids",
    "prefix_list_id",
)
_EPHEMERAL = 1024
_ADDRESSES = re.compile(r"cidr|(^|_)ips?(_|$)|addresses|ranges")


@dataclass(frozen=True)
class _Opening:
    """Ports of a protocol (``-1``: all) that are open to one range of addresses, group or prefix list."""

    inward: bool
    protocol: str
    low: int
    high: int
    peer: str

    def holds(self, other: _Opening) -> bool:
        """Whether all that ``other`` opens is open by this."""
        return (
            self.inward == other.inward
            and self.protocol in ("-1", other.protocol)
            and self.low <= other.low
            and other.high <= self.high
            and inside(other.peer, self.peer)
        )

    @property
    def ports(self) -> str:
        """For people."""
        if self.protocol == "-1" or (self.low, self.high) == (0, 65535):
            return "all ports"
        return f"port {self.low}" if self.low == self.high else f"ports {self.low}-{self.high}"


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """Openings that were not there."""
    if change.kind not in ("create", "update", "replace", "delete") or change.deposed:
        return
    if change.type in _GROUPS + _RULES:
        before = list(_openings(change.type, change.before)) if change.kind != "create" else []
        after = list(_openings(change.type, change.after)) if change.kind != "delete" else []
        fresh = change.kind == "create" and change.type in _GROUPS
        for opening in dict.fromkeys(after):
            if not any(old.holds(opening) for old in before):
                yield from _judged(opening, fresh or _is_of_new_group(change, context))
        if change.kind == "update" and any(UNKNOWN in will_be(change, name) for name in _CIDRS):
            yield Hit("network-opened", say("whom it lets in is known only after apply"), "medium")
    elif change.type in _PREFIX_LISTS:
        yield from _prefixes(change)
    elif change.type in ("aws_network_acl_rule", "aws_network_acl", "aws_default_network_acl"):
        yield from _acl(change)
    elif change.type == "aws_route":
        if (
            str(change.after.get("gateway_id")).startswith("igw-")
            and change.after.get("destination_cidr_block") in WORLD
        ):
            yield Hit("network-opened", say("a route to the internet: {}", change.after["gateway_id"]), "medium")
    elif change.kind in ("update", "replace"):
        for name in sorted(_worlds(change.after) - _worlds(change.before)):
            yield Hit("network-opened", say("{} takes in every address", name))


def _worlds(values: Any, name: str = "") -> set[str]:
    """Names of the attributes, at any depth, that list every address there is."""
    if isinstance(values, dict):
        return {
            found for key, child in values.items() for found in _worlds(child, key) if isinstance(child, dict | list)
        }
    if isinstance(values, list):
        here = {name} if any(world in values for world in WORLD) and _ADDRESSES.search(name) else set()
        return here.union(*(_worlds(child, name) for child in values if isinstance(child, dict | list)))
    return set()


def _openings(of_type: str, values: dict[str, Any]) -> Iterator[_Opening]:
    if of_type in _GROUPS:
        for inward, name in ((True, "ingress"), (False, "egress")):
            for block in as_list(values.get(name)):
                if isinstance(block, dict):
                    yield from _of_block(block, inward)
    else:
        inward = values.get("type") != "egress" and not of_type.endswith("egress_rule")
        yield from _of_block(values, inward)


def _of_block(block: dict[str, Any], inward: bool) -> Iterator[_Opening]:
    protocol = str(block.get("protocol") or block.get("ip_protocol") or "-1").lower()
    protocol = {"6": "tcp", "17": "udp", "all": "-1", "1": "icmp"}.get(protocol, protocol)
    low, high = _port(block.get("from_port"), 0), _port(block.get("to_port"), 65535)
    if protocol == "-1" or low < 0 or high < 0:
        low, high = 0, 65535
    for peer in _peers(block, (*_CIDRS, *_OTHERS)):
        yield _Opening(inward, protocol, low, high, peer)


def _peers(block: dict[str, Any], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if value := block.get(name):
            yield from map(str, as_list(value))


def _port(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default


def _is_of_new_group(change: Change, context: Context) -> bool:
    if change.kind != "create" or change.type in _GROUPS:
        return False
    return any(
        other.type == "aws_security_group" and other.kind == "create"
        for other in context.referred(change.address, "security_group_id")
    )


def _judged(opening: _Opening, fresh: bool) -> Iterator[Hit]:
    severity = _severity(opening, fresh)
    if severity:
        words = "{} {} from {}" if opening.inward else "{} {} to {}"
        yield Hit(
            "network-opened",
            say(words, opening.protocol.replace("-1", "all protocols"), opening.ports, opening.peer),
            severity,
        )


def _severity(opening: _Opening, fresh: bool) -> Severity | None:
    """A new group has to let something in: private addresses and the web are what it is for."""
    world = opening.peer in WORLD or opening.peer.endswith("/0")
    if not opening.inward:
        if fresh:
            return None
        if not world:
            return "low"
        return "high" if opening.protocol == "-1" or opening.high - opening.low > _EPHEMERAL else "medium"
    if not world:
        wide = "/" in opening.peer and _prefix(opening.peer) < 8
        return "high" if wide else None if fresh else "medium"
    web = opening.protocol == "tcp" and any(set(range(opening.low, opening.high + 1)) == ports for ports in WEB)
    if web:
        return "low" if fresh else "medium"
    icmp = opening.protocol.startswith("icmp")
    return "medium" if icmp else "critical"


def _prefix(cidr: str) -> int:
    text = cidr.rsplit("/", 1)[-1]
    length = int(text) if text.isdigit() else 128
    return length if ":" not in cidr else max(length - 20, 0)


def _prefixes(change: Change) -> Iterator[Hit]:
    """A prefix list is part of every rule that names it."""
    before, after = (
        {each.get("cidr") for each in (*as_list(side.get("entry")), side) if isinstance(each, dict)}
        for side in (change.before if change.kind != "create" else {}, change.after)
    )
    for world in sorted(text for text in after - before if text in WORLD):
        yield Hit("network-opened", say("{} is in the prefix list, and so in every rule that names it", world))


def _acl(change: Change) -> Iterator[Hit]:
    before = set(_allowed(change.before)) if change.kind != "create" else set()
    after = set(_allowed(change.after)) if change.kind != "delete" else set()
    for peer, what in sorted(after - before):
        if peer in WORLD and (change.kind != "create" or (change.type.endswith("_rule") and what.startswith("-1 "))):
            yield Hit("network-opened", say("the network ACL lets {} in from {}", what, peer))
    denied = set(_denied(change.before)) if change.kind != "create" else set()
    for peer, what in sorted(denied - (set(_denied(change.after)) if change.kind != "delete" else set())):
        yield Hit("network-opened", say("the network ACL no longer denies {} from {}", what, peer))


def _allowed(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _acl_entries(values, "allow")


def _denied(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _acl_entries(values, "deny")


def _acl_entries(values: dict[str, Any], action: str) -> Iterator[tuple[str, str]]:
    blocks = as_list(values.get("ingress")) if "ingress" in values else [values] if not values.get("egress") else []
    for block in blocks:
        if isinstance(block, dict) and action in (block.get("action"), block.get("rule_action")):
            ports = f"{block.get('protocol')} {block.get('from_port')}-{block.get('to_port')}"
            yield from ((peer, ports) for peer in _peers(block, _CIDRS))
