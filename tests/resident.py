"""`hil` imported once: each command is a fork of one process that has all libraries.

A process of `hil` imports for most of a second, longer than most commands of the tests take.
`python resident.py SOCKET` imports and waits; `python resident.py SOCKET hil WORD...` has a fork
run the words with its own standard streams, folder and environment, and exits with its code;
`python resident.py SOCKET python -` runs the Python code that it reads.
"""

import array
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import traceback


@contextlib.contextmanager
def started(path: str, **options):
    """Start a process that answers at the socket `path` until the block ends."""
    words = [sys.executable, "-P", __file__, path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **options) as process:
        assert process.stdout.readline() == "ready\n"
        yield
        process.terminate()


def ask(path: str, words: list[str], cwd: str, streams: tuple[int, int, int] = (0, 1, 2)) -> int:
    """Have the words run by a fork of the process at the socket; its exit code."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        order = {"words": words, "cwd": cwd, "environment": dict(os.environ)}
        given = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        line.sendmsg([json.dumps(order).encode() + b"\n"], given)
        answer = line.recv(16)
    return int(answer) if answer else 1  # it died


def serve(path: str) -> None:
    """Import what commands import, then fork for each that asks."""
    import xarray  # noqa: F401

    import hil.record.read
    import hil.reports.run_report
    import hil.runs.session  # noqa: F401
    from hil.__main__ import main

    sys.path.insert(0, os.path.dirname(__file__))
    from compile_once import share_compilations

    del sys.path[0]
    share_compilations()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
        print("ready", flush=True)
        while True:
            line, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os._exit(_run(line, main))
            line.close()


def _run(line: socket.socket, main) -> int:
    data, found, _, _ = line.recvmsg(1 << 20, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    while not data.endswith(b"\n"):
        data += line.recv(1 << 20)
    streams = array.array("i", found[0][2])
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    order = json.loads(data)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["cwd"])
    program, *words = order["words"]
    try:
        if program == "hil":
            sys.argv = ["hil", *words]
            code = main(words)
        else:
            sys.argv = words
            sys.path.insert(0, "")
            code = _python(sys.stdin.read())
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    line.sendall(str(code).encode())
    return code


def _python(text: str) -> int:
    try:
        exec(compile(text, "<stdin>", "exec"), {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(ask(sys.argv[1], sys.argv[2:], os.getcwd()))
    serve(sys.argv[1])
