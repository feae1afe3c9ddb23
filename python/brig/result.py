"""How a program ended, and what a check of one found."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional

from .files import Files

# The statuses of brig, for programs without a status of their own; the same as in brig(1).
_STATUS = {"timeout_wall": 124, "timeout_cpu": 124, "oom": 137, "output_limit": 153, "cancelled": 143, "client_gone": 143, "setup_failed": 125}


@dataclasses.dataclass(frozen=True)
class ProgramError:
    """The exception that ended the program, as the program reported it."""

    type: str
    message: str
    traceback: Optional[str] = None
    line: Optional[int] = None
    offset: Optional[int] = None
    text: Optional[str] = None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclasses.dataclass(frozen=True)
class CallState:
    """What a call found and left in its session, as the service knows it."""

    id: str                             # of the session
    context: Optional[str]              # None: the call was a command
    state: str                          # new: first use; kept; reset: a new one after loss or restart; lost: it ended in this call
    age: float                          # seconds since the session was opened
    idle_left: float                    # seconds without a call after which it is closed


@dataclasses.dataclass(frozen=True)
class Result:
    """How one run ended. Everything from stdout_raw on comes from the program: treat it as hostile.

    Every run that has begun has a Result, whatever its program did.
    """

    record: Dict[str, Any]              # the whole record, see brig(1)
    verdict: str                        # the record's exit_reason: exited, signaled, timeout_wall, timeout_cpu, oom, output_limit, cancelled
    status: int                         # as of `brig run`: the program's own, 128 + signal, 124, 137, 153
    truncated: bool                     # the program wrote more output than is kept
    exec_error: Optional[str]           # why the command could not be executed, like ENOENT
    lost: List[Dict[str, Any]]          # layers that were not in force, and why
    # What the program reported of itself, and what it wrote.
    stdout_raw: bytes                   # the output that is kept, byte for byte
    stderr_raw: bytes
    value: Any = None                   # of the last expression, or of the variable result, if it is JSON
    value_repr: Optional[str] = None    # its repr()
    error: Optional[ProgramError] = None
    variables: List[str] = dataclasses.field(default_factory=list)
    warnings: List[str] = dataclasses.field(default_factory=list)
    security_event: Optional[str] = None  # "blocked_import"
    displays: List[Dict[str, Any]] = dataclasses.field(default_factory=list) # {MIME type: data} of each display() and figure, in order
    bundle: Dict[str, Any] = dataclasses.field(default_factory=dict)         # of the value. Images and PDF are base64
    shortened: List[str] = dataclasses.field(default_factory=list)           # sentences about what was cut or left out of these
    report_error: Optional[str] = None  # why the report of the program is ignored
    files: Files = dataclasses.field(default_factory=Files)             # the files that matched get: {name below /workspace: bytes}
    left_out: Dict[str, str] = dataclasses.field(default_factory=dict)  # left out, and why: link, special, size, unreadable, deep, changed;
    # of patterns that matched nothing: none; "": cut

    @property
    def ok(self) -> bool:
        """The program ended by itself, with status 0."""
        return self.verdict == "exited" and self.status == 0

    @property
    def stdout(self) -> str:
        return self.stdout_raw.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_raw.decode("utf-8", "replace")

    @property
    def session(self) -> Optional[CallState]:
        """None if this was not a call of a session."""
        said = self.record.get("session")
        if not isinstance(said, dict):
            return None
        age, idle_left = ((said.get(name) or 0) / 1000 for name in ("age_ms", "idle_left_ms"))
        return CallState(str(said.get("id")), said.get("context"), str(said.get("state")), age, idle_left)

    @property
    def seconds(self) -> float:
        """Wall time of the program."""
        return (self.record.get("wall_ms") or 0.0) / 1000


@dataclasses.dataclass(frozen=True)
class Check:
    """What a check of a program found. It is advice: the jail does not depend on it, and a program can hide what it does."""

    valid: bool
    message: str                        # the result in one sentence
    errors: List[Dict[str, Any]]        # line, offset, message
    warnings: List[Dict[str, Any]]
    syntax_error: Optional[Dict[str, Any]]
    line_count: int
    character_count: int
    estimated_complexity: str           # low, medium, high
    imports: List[str]
    recommendations: List[str]


def status_of(record: Dict[str, Any], exec_error: Optional[str]) -> int:
    """The exit status that `brig run` would have."""
    if exec_error:
        return 127 if exec_error == "ENOENT" else 126
    own = record.get("exit_code")
    if own is not None and record["exit_reason"] in ("exited", "signaled"):
        return int(own)
    return _STATUS.get(record["exit_reason"], 125)
