"""SandboxExecutor: has the constructor, methods and results of a published class of this name, and executes the code in a jail."""
from __future__ import annotations

import dataclasses
import sys
from typing import Any, Dict, List, Optional, Tuple

from .result import Result
from .tools import toolbox

CUT = "\n... (output truncated)"


@dataclasses.dataclass
class ExecutionResult:
    """The result of one execution. The first five attributes are those of the published class; `result` has everything."""

    success: bool
    output: str
    error: Optional[str] = None
    execution_time: float = 0.0
    return_value: Any = None
    tool_calls: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    result: Optional[Result] = None

    def to_dict(self) -> Dict[str, Any]:
        return {"success": self.success, "output": self.output, "error": self.error, "execution_time": self.execution_time,
                "return_value": self.return_value}


class SandboxExecutor:
    """
    tools_api: an object whose methods the code may call, {name: function}, or a Toolbox; None: no tools. timeout: seconds. max_output_size:
    characters. verbose: prints on stderr what is executed. Further keywords are those of brig.run(), for each execution.
    """

    def __init__(self, tools_api: Any = None, timeout: float = 30.0, max_output_size: int = 1_000_000, verbose: bool = False, **options: Any) -> None:
        self.tools_api, self.timeout, self.max_output_size, self.verbose, self.options = tools_api, timeout, max_output_size, verbose, options
        self._box = toolbox(tools_api, *(self.options.pop(name, None) for name in ("allow", "deny", "ask")))

    def execute(self, code: str) -> ExecutionResult:
        """Runs the code. What it does is in the result; raises an exception only if no jail can be built."""
        from . import run
        self._say(f"brig: executing {len(code)} characters")
        options: Dict[str, Any] = {"output": max(1024, min(4 * self.max_output_size, 16 << 20)), **self.options}
        done = run(code, tools=self._box, timeout=self.timeout, **options)
        calls = (done.record.get("tool_calls") or {}).get("calls", [])
        said = ExecutionResult(done.ok, self._output(done), self._error(done), done.seconds, done.value,
                               [{"name": call["name"], "ms": call["ms"], "ok": call["verdict"] == "ok",
                                 "error": None if call["verdict"] == "ok" else call["verdict"]} for call in calls], done)
        self._say(f"brig: {'done' if said.success else said.error} after {said.execution_time:.3f} s")
        return said

    def validate_code(self, code: str) -> Tuple[bool, Optional[str]]:
        """Checks the code without executing it. Returns (True, None), or (False, what is wrong)."""
        from . import check
        found = check(code, **{name: self.options[name] for name in ("server", "path", "profile") if name in self.options})
        if found.valid:
            return True, None
        first = found.syntax_error or (found.errors[0] if found.errors else {})
        where = f" (line {first['line']})" if first.get("line") else ""
        return False, found.message + where if found.syntax_error or not found.errors else f"{first['message']}{where}"

    # --- texts ---

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text, file=sys.stderr)

    def _output(self, done: Result) -> str:
        parts = [done.stdout.strip(), f"STDERR: {done.stderr.strip()}" if done.stderr.strip() else ""]
        text = "\n".join(part for part in parts if part)
        return text[:self.max_output_size] + CUT if len(text) > self.max_output_size or done.truncated else text

    def _error(self, done: Result) -> Optional[str]:
        if done.ok:
            return None
        if done.verdict in ("timeout_wall", "timeout_cpu"):
            return f"Code execution exceeded timeout of {self.timeout} seconds"
        if done.error:
            text = str(done.error)
            return f"Syntax error: {done.error.message} (line {done.error.line})" if done.error.type in SYNTAX else text
        return {"oom": "MemoryError: the memory limit was reached", "output_limit": "the output limit was reached",
                "signaled": f"ended by signal {done.record.get('signal')}"}.get(done.verdict, f"{done.verdict}: status {done.status}")


SYNTAX = "SyntaxError", "IndentationError", "TabError"
