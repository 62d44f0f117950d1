"""CloudWatch: composite alarms, and dashboards that are the same in all regions.

moto's alarms already know a rule, only the call is missing. Its dashboards are each region's own; those of an account
are global: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html
"""

from __future__ import annotations

from moto.cloudwatch import urls
from moto.cloudwatch.models import CloudWatchBackend, cloudwatch_backends
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult

_OF_ALL_REGIONS = "us-east-1"  # where this cloud keeps them


class CloudWatch(CloudWatchResponse):
    """moto's CloudWatch with ``PutCompositeAlarm``, and one set of dashboards an account."""

    @property
    def cloudwatch_backend(self) -> CloudWatchBackend:
        """Where what is asked for is kept."""
        region = _OF_ALL_REGIONS if "Dashboard" in self._get_action() else self.region
        return cloudwatch_backends[self.current_account][region]

    def put_composite_alarm(self) -> ActionResult:
        """Keep a composite alarm; like all alarms here it is stored, not evaluated."""
        return self.put_metric_alarm()


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {"{0}/$": CloudWatch.dispatch}
