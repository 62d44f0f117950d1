"""Service Quotas: those of SageMaker training (moto has those of VPC)."""

from __future__ import annotations

import json
import uuid
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.core.utils import unix_time
from moto.servicequotas import urls
from moto.servicequotas.responses import ServiceQuotasResponse

from sagefit_cloud import quotas

_PAGE = 100


class ServiceQuotas(ServiceQuotasResponse):
    """moto's Service Quotas with the ones of SageMaker training jobs."""

    def list_service_quotas(self) -> str:
        """The account's quotas, in pages."""
        return self._page(defaults=False)

    def list_aws_default_service_quotas(self) -> str:
        """AWS's defaults, in pages."""
        return self._page(defaults=True) if self._is_sagemaker() else super().list_aws_default_service_quotas()

    def get_service_quota(self) -> str:
        """One quota of the account."""
        if not self._is_sagemaker():
            return super().get_service_quota()
        return json.dumps({"Quota": self._describe(self._quota(), defaults=False)})

    def get_aws_default_service_quota(self) -> str:
        """One default."""
        return json.dumps({"Quota": self._describe(self._quota(), defaults=True)})

    def request_service_quota_increase(self) -> str:
        """Grant what is asked for, at once."""
        quota, wanted = self._quota(), float(self._asked()["DesiredValue"])
        quotas.grant(self.region, quota, wanted)
        now = unix_time()
        answer = {
            "Id": uuid.uuid4().hex,
            "ServiceCode": quotas.SERVICE_CODE,
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "DesiredValue": wanted,
            "Status": "APPROVED",
            "Created": now,
            "LastUpdated": now,
        }
        return json.dumps({"RequestedQuota": answer})

    def _asked(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body or "{}")
        return found

    def _is_sagemaker(self) -> bool:
        return self._asked().get("ServiceCode") == quotas.SERVICE_CODE

    def _quota(self) -> quotas.Quota:
        code = self._asked().get("QuotaCode")
        found = quotas.quotas().get(str(code)) if self._is_sagemaker() else None
        if found is None:
            raise JsonRESTError("NoSuchResourceException", f"no quota {code!r} of {self._asked().get('ServiceCode')}")
        return found

    def _page(self, *, defaults: bool) -> str:
        if not self._is_sagemaker():
            raise JsonRESTError("NoSuchResourceException", "the embedded cloud lists quotas of sagemaker only")
        asked, known = self._asked(), list(quotas.quotas().values())
        start, size = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or _PAGE)
        page: dict[str, Any] = {
            "Quotas": [self._describe(quota, defaults=defaults) for quota in known[start : start + size]]
        }
        if start + size < len(known):
            page["NextToken"] = str(start + size)
        return json.dumps(page)

    def _describe(self, quota: quotas.Quota, *, defaults: bool) -> dict[str, Any]:
        owner = "" if defaults else self.current_account
        return {
            "ServiceCode": quotas.SERVICE_CODE,
            "ServiceName": "Amazon SageMaker",
            "QuotaArn": f"arn:{self.partition}:servicequotas:{self.region}:{owner}:sagemaker/{quota.code}",
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "Value": quota.default if defaults else quotas.value(self.region, quota),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }


def install() -> None:
    """Put this class in place of moto's."""
    urls.url_paths = {"{0}/$": ServiceQuotas.dispatch}
