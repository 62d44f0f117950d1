"""SNS: an e-mail address that is subscribed waits until it is confirmed. No mail is sent here.

The token of a subscription is its own ARN here, which AWS sends in the mail.
https://docs.aws.amazon.com/sns/latest/dg/SendMessageToHttp.confirm.html
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.sns import urls
from moto.sns.exceptions import SNSInvalidParameter
from moto.sns.responses import SNSResponse

_BY_MAIL = ("email", "email-json")
_PENDING = "PendingConfirmation"


class Sns(SNSResponse):
    """moto's SNS with subscriptions that wait for their confirmation."""

    def subscribe(self) -> ActionResult:
        """Subscribe; an address that was not subscribed before has to confirm it."""
        before = set(self.backend.subscriptions)
        answer = super().subscribe()
        new = set(self.backend.subscriptions) - before
        if self._get_param("Protocol") in _BY_MAIL and new:
            self.backend.subscriptions[new.pop()].attributes[_PENDING] = True
        return answer

    def confirm_subscription(self) -> ActionResult:
        """Confirm the subscription that the token names."""
        found = self.backend.subscriptions.get(self._get_param("Token"))
        if found is None:
            raise SNSInvalidParameter("Invalid token")
        found.attributes[_PENDING] = False
        return ActionResult({"SubscriptionArn": found.arn})

    def list_subscriptions(self) -> ActionResult:
        """The subscriptions; those that wait have no ARN yet."""
        return _told(super().list_subscriptions())

    def list_subscriptions_by_topic(self) -> ActionResult:
        """The same, of one topic."""
        return _told(super().list_subscriptions_by_topic())


def _told(answer: ActionResult) -> ActionResult:
    found: Any = answer.result
    shown = [
        {
            "SubscriptionArn": _PENDING if each.attributes.get(_PENDING) is True else each.arn,
            "Owner": each.account_id,
            "Protocol": each.protocol,
            "Endpoint": each.endpoint,
            "TopicArn": each.topic.arn,
        }
        for each in found["Subscriptions"]
    ]
    return ActionResult({**found, "Subscriptions": shown})


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {**urls.url_paths, "{0}/$": Sns.dispatch}
