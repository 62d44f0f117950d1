"""Whether anybody hears the alarms: an e-mail address must confirm a message from AWS first."""

from __future__ import annotations

from collections.abc import Iterator

from sagefit.doctor.asking import client
from sagefit.doctor.finding import Finding
from sagefit.platform import Platform

_CHECK = "alarms"
_PENDING = "PendingConfirmation"  # what stands in place of an ARN (API reference of ListSubscriptionsByTopic)


def check_notices(platform: Platform) -> Iterator[Finding]:
    """A finding for each address that has not confirmed, or one line."""
    topic = platform.topic_arn
    if not topic:
        yield Finding(
            _CHECK, "unknown", "not asked: the platform's document names no topic", "apply the platform again"
        )
        return
    pages = client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    found = [each for page in pages for each in page["Subscriptions"]]
    waiting = [each for each in found if each["SubscriptionArn"] == _PENDING]
    for each in waiting:
        yield Finding(
            _CHECK,
            "fault",
            f"{each['Endpoint']} has not confirmed that it wants the platform's mails, and gets none",
            f"follow the link in AWS's mail; to get it again: aws sns subscribe --topic-arn {topic} "
            f"--protocol {each['Protocol']} --notification-endpoint {each['Endpoint']}",
        )
    if not found:
        yield Finding(_CHECK, "ok", "nobody is told: no address is subscribed (alarms.emails of the platform)")
    elif not waiting:
        yield Finding(_CHECK, "ok", f"{len(found)} subscribed")
