"""What can go wrong before or beside a program. What a program does is a Result and never one of these."""
from __future__ import annotations

from typing import Any, Dict, Optional


class BrigError(Exception):
    """All of them. The text says what was wrong, and what to do."""


class ServiceUnavailable(BrigError):
    """No service can be reached, or no brigd can be started: nothing ran."""


class ServiceLost(ServiceUnavailable):
    """The connection ended while the run was on its way. Whether the program ran is not known; what is left of it has been ended."""


class Refused(BrigError):
    """The service does not carry out the request: nothing ran. code is one of brig-protocol(7), field the key it is about."""

    def __init__(self, code: str, message: str, field: Optional[str] = None, retry_after: Optional[float] = None) -> None:
        super().__init__(code, message, field, retry_after)
        self.code, self.message, self.field, self.retry_after = code, message, field, retry_after

    def __str__(self) -> str:
        return (f"{self.field}: " if self.field else "") + self.message


class Busy(Refused):
    """A quota was used up for as long as the run was to wait. retry_after: seconds, when it may be worth another try."""


class SetupFailed(BrigError):
    """The jail could not be built: nothing ran. `brig doctor` says what the host lacks."""

    def __init__(self, message: str, record: Dict[str, Any]) -> None:
        super().__init__(message, record)
        self.message, self.record = message, record

    def __str__(self) -> str:
        return f"{self.message}; brig doctor says what this host lacks"


class ProtocolError(BrigError):
    """The service said what it may not: it is broken, or it is none. The connection is closed."""
