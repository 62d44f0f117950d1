"""CloudWatch: composite alarms. moto's alarms already know a rule, only the call is missing."""

from __future__ import annotations

from moto.cloudwatch import urls
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult


class CloudWatch(CloudWatchResponse):
    """moto's CloudWatch with ``PutCompositeAlarm``."""

    def put_composite_alarm(self) -> ActionResult:
        """Keep a composite alarm; like all alarms here it is stored, not evaluated."""
        return self.put_metric_alarm()


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {"{0}/$": CloudWatch.dispatch}
