"""Where things are that a page names: files of the change, the rules, the console. Without an address it is text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from sagefit.reviewing.md import code

_CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
"""By partition, as https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html names them."""


@dataclass(frozen=True)
class Console:
    """The console of an account in a region, for what is named ``machine`` there."""

    region: str
    account: str
    machine: str

    @property
    def _states(self) -> str:
        return f"https://{_domain(self.region)}/states/home?region={self.region}#"

    def _arn(self, kind: str) -> str:
        return f"arn:{_partition(self.region)}:states:{self.region}:{self.account}:{kind}:{self.machine}"

    def of_machine(self, text: str) -> str:
        """A link to the state machine."""
        return link(text, f"{self._states}/statemachines/view/{self._arn('stateMachine')}")

    def of_run(self, run: str) -> str:
        """The name of a run, with a link to its execution."""
        return link(code(run), f"{self._states}/v2/executions/details/{self._arn('execution')}:{quote(run, safe='')}")


def console(region: str, account: str, machine: str) -> Console | None:
    """The console, if these can be of AWS: they may come from somebody who is not trusted."""
    known = re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", region) and re.fullmatch(r"\d{12}", account)
    return Console(region, account, machine) if known and re.fullmatch(r"[A-Za-z0-9_-]{1,80}", machine) else None


@dataclass(frozen=True)
class Links:
    """``files``: the address that a path of the repository is added to; ``rules``: that of the page of the rules."""

    files: str = ""
    rules: str = ""

    def rule(self, name: str) -> str:
        """The name of a rule."""
        return link(code(name), f"{self.rules}#{name}") if self.rules else code(name)

    def file(self, path: str, line: int | None = None) -> str:
        """A path of the repository, with a line."""
        where = f"{path}:{line}" if line else path
        return (
            link(code(where), f"{self.files}{quote(path)}{f'#L{line}' if line else ''}") if self.files else code(where)
        )


def link(text: str, address: str) -> str:
    """``text``, which is Markdown, with an address whose characters end no link."""
    return f"[{text}]({quote(address, safe=':/?#&=%@+-._~')})"


def _partition(region: str) -> str:
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _domain(region: str) -> str:
    return _CONSOLES[_partition(region)]
