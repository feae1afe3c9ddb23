#!/usr/bin/python3
"""Live interpreters of others, as clients that measure: bench/orders.h says what they are told on stdin and answer.

usage: bench/session_peers.py WAY open|call SNIPPET EXPECT

WAY      ipykernel: a kernel of Jupyter, asked by jupyter_client over its usual TCP; pipe: `python3 -i` with a pipe for its input
open     an interpreter for each run: from its start until the first byte of output, and until the answer
call     calls in one interpreter
"""
import os
import select
import subprocess
import sys
import time

PYTHON = "/usr/bin/python3"
WAIT = 60


class Kernel:
    """first: the message of iopub with the output. record: the reply of the shell channel is there, too; the kernel may say later that it is idle."""

    def __init__(self):
        from jupyter_client import KernelManager # where it is not, the pipe can still be measured
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=WAIT)

    def call(self, snippet, expect):
        began = time.perf_counter()
        asked = self.client.execute(snippet)
        said = ""
        while said != expect:
            message = self.client.get_iopub_msg(timeout=WAIT)
            if message["parent_header"].get("msg_id") == asked and message["msg_type"] == "stream":
                said += message["content"]["text"]
                first = time.perf_counter()
        while self.client.get_shell_msg(timeout=WAIT)["parent_header"].get("msg_id") != asked:
            pass
        return first - began, time.perf_counter() - began

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


class Pipe:
    """It says no more than what is printed; its prompt goes elsewhere."""

    def __init__(self):
        self.process = subprocess.Popen([PYTHON, "-I", "-i", "-q", "-u"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)

    def call(self, snippet, expect):
        began = time.perf_counter()
        os.write(self.process.stdin.fileno(), f"{snippet}\n".encode())
        said, first = "", None
        while said != expect:
            if not select.select([self.process.stdout], [], [], WAIT)[0]:
                sys.exit(f"python3 -i: printed {said!r}")
            first = first or time.perf_counter()
            said += os.read(self.process.stdout.fileno(), 4096).decode()
        return first - began, time.perf_counter() - began

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


WAYS = {"ipykernel": Kernel, "pipe": Pipe}


def opened(way, snippet, expect):
    began = time.perf_counter()
    one = WAYS[way]()
    first, record = one.call(snippet, expect)
    spent = time.perf_counter() - began
    one.close()
    return spent - record + first, spent


def main():
    way, what, snippet, expect = sys.argv[1:]
    expect = f"{expect}\n"
    one = WAYS[way]() if what == "call" else None
    for line in sys.stdin:
        order, rounds, pause = line.split()
        assert order == "paced", line
        rows, began, cpu = [], time.perf_counter(), time.process_time()
        for _ in range(int(rounds)):
            time.sleep(int(pause) / 1e6)
            rows.append(one.call(snippet, expect) if one else opened(way, snippet, expect))
        for first, record in rows:
            print(f"run {first * 1e6:.0f} {record * 1e6:.0f} -1")
        print(f"cpu {(time.process_time() - cpu) * 1e6:.0f}\ntook {(time.perf_counter() - began) * 1e6:.0f}\ndone", flush=True)
    if one:
        one.close()


main()
