"""The errors of brig. What a program does is in its Result, and never raises one of these."""
from __future__ import annotations

from typing import Any, Dict, Optional


class BrigError(Exception):
    """The base of all errors. The text says what was wrong, and what to do."""


class ServiceUnavailable(BrigError):
    """No service can be reached, or no brigd can be started: nothing ran."""


class ServiceLost(ServiceUnavailable):
    """The connection ended during the run. Whether the program ran is not known; what was left of it has been ended."""


class Refused(BrigError):
    """The service refused the request: nothing ran. code is one of brig-protocol(7), field the key that is wrong."""

    def __init__(self, code: str, message: str, field: Optional[str] = None, retry_after: Optional[float] = None) -> None:
        super().__init__(code, message, field, retry_after)
        self.code, self.message, self.field, self.retry_after = code, message, field, retry_after

    def __str__(self) -> str:
        return (f"{self.field}: " if self.field else "") + self.message


class Busy(Refused):
    """A quota stayed used up for `wait` seconds, or a context of a session is in use: nothing ran. retry_after: seconds after which another try may succeed."""


class SessionLost(Refused):
    """The session has ended, or there is none of this id or name: nothing ran. The text says why it ended; open a new one."""

    def __str__(self) -> str:
        return f"{self.message}; open a new session"


class FilesFailed(BrigError):
    """Files could not be copied into a session or out of it. left_out: {name: why}; the other files were copied."""

    def __init__(self, message: str, left_out: Optional[Dict[str, str]] = None) -> None:
        super().__init__(message, left_out or {})
        self.message, self.left_out = message, left_out or {}

    def __str__(self) -> str:
        return self.message


class SetupFailed(BrigError):
    """The jail could not be built: nothing ran. `brig doctor` says what the host lacks."""

    def __init__(self, message: str, record: Dict[str, Any]) -> None:
        super().__init__(message, record)
        self.message, self.record = message, record

    def __str__(self) -> str:
        is_callers = (self.record.get("error") or {}).get("type") == "BAD_SPEC" # found in the jail: one of its files is in the place of another, say
        return self.message if is_callers else f"{self.message}; brig doctor says what this host lacks"


class ProtocolError(BrigError):
    """The service broke the protocol, or is not brigd. The connection is closed."""
