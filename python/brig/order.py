"""One run as it was ordered: the request, with its descriptors and files."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .bridge import Bridge
from .client import Hosts, Loop, Run, Shown, Sink, Text, Time, _close_all, _sealed, encoded, entries_of, milliseconds, open_shown, put_cell, shown
from .files import Content, Mover
from .result import Result
from .tools import Toolbox


@dataclasses.dataclass
class Order:
    """The request of one run, with its descriptors, which the order owns until begin(). done() closes them and ends the transfer of files."""

    request: Dict[str, Any]
    fds: List[int]
    stdin: Optional[Text]
    sinks: Tuple[Optional[Sink], Optional[Sink]]
    mover: Optional[Mover]
    box: Optional[Toolbox]

    def __post_init__(self) -> None:
        if self.stdin is not None:
            self.stdin = encoded(self.stdin, "stdin")

    def begin(self, loop: Loop) -> Run:
        fds, self.fds = self.fds, []
        return loop.begin(self.request, fds, self.stdin, *self.sinks, Bridge(self.box, loop.connection.loop) if self.box else None)

    def done(self) -> None:
        _close_all(self.fds)
        self.fds = []
        if self.mover:
            self.mover.end()

    def result(self, run: Run) -> Result:
        result = run.outcome()
        if not self.mover:
            return result
        if self.mover.error:
            raise self.mover.error
        taken = self.mover.taken
        left_out = taken.files.left_out if taken.is_whole else {**taken.files.left_out, "": "cut"}
        return dataclasses.replace(result, files=taken.files, left_out=left_out)


def order_of(request: Dict[str, Any], code: Optional[Text], box: Optional[Toolbox], stdin: Optional[Text], env: Optional[Mapping[str, str]],
             ro: Optional[Shown], cwd: Optional[str], network: Hosts, allow_missing: Sequence[str], cold: bool, wait: Time, files: Optional[Mapping[str, Content]], get: Sequence[str],
             on_stdout: Optional[Sink], on_stderr: Optional[Sink]) -> Order:
    made = Order(request, [], stdin, (on_stdout, on_stderr), None, box)
    try:
        if code is not None:
            made.fds.append(_sealed(code))
        pairs = shown(ro)
        open_shown(pairs, made.fds)
        if files or get:
            made.mover = Mover(files, get, code is not None)
            made.fds.append(made.mover.theirs.detach())
            request["files"] = True
            made.mover.start()
        request.update(env=entries_of(env), ro=[name for name, _ in pairs], wait_ms=milliseconds(wait))
        if cwd is not None:
            request["cwd"] = cwd
        if cold:
            request["cold"] = True
        put_cell(request, network, allow_missing)
    except BaseException:
        made.done()
        raise
    return made
