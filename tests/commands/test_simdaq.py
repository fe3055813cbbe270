"""`hil simdaq` as a user types it."""

import json
import os
import signal
import subprocess
import sys

import grpc
import nidaqmx
import pytest

from hil.__main__ import main

PROGRAM = """
import sys
import nidaqmx
with nidaqmx.Task() as task:
    task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
    task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=500)
    print(sys.argv[1:], len(task.read(500)))
sys.exit(7)
"""


def hil(*words, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "hil", "simdaq", *words],
        capture_output=True, text=True, timeout=600, check=False, **kwargs,
    )  # fmt: skip


def test_a_program_runs_on_simulated_cards_with_its_arguments(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = hil("--fast", "--run", str(program), "--of", "its own")
    assert done.stdout == "['--of', 'its own'] 500\n"
    assert (done.returncode, done.stderr) == (7, "")


def test_a_waiting_program_gets_its_keyboard_interrupt(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import nidaqmx\n"
        "with nidaqmx.Task() as task:\n"
        "    task.ai_channels.add_ai_voltage_chan('Dev1/ai0')\n"
        "    task.timing.cfg_samp_clk_timing(100.0, samps_per_chan=100_000)\n"
        "    task.start()\n"
        "    try:\n"
        "        print('waits', flush=True)\n"
        "        while True:\n"
        "            task.read(1000)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted')\n"
    )
    runs = subprocess.Popen(
        [sys.executable, "-m", "hil", "simdaq", "--run", str(program)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert runs.stdout.readline() == "waits\n"
        runs.send_signal(signal.SIGINT)
        assert runs.communicate(timeout=300) == ("interrupted\n", "")
    finally:
        runs.kill()
    assert runs.returncode == 0


def test_an_interrupt_between_c_and_the_simulation_is_not_lost(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "import nidaqmx\n"
        "def interrupt(frame, event, _):\n"
        "    if frame.f_code.co_qualname == 'Marshal.guarded.<locals>.handler':\n"
        "        sys.settrace(None)\n"
        "        raise KeyboardInterrupt\n"
        "sys.settrace(interrupt)\n"
        "try:\n"
        "    nidaqmx.Task()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "hil", "simdaq", "--run", str(program)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_the_environment_alone_is_enough(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    lines = hil("--fast", "--card", "USB-6361=Dev1", "--env").stdout
    shell = f'{lines}\n"{sys.executable}" "{program}"'
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert done.stdout == "[] 500\n"


def test_the_bench_is_listed(capsys):
    assert main(["simdaq", "--json", "--card", "USB-6001=Dev7"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"model": "USB-6001", "name": "Dev7"}]
    assert main(["simdaq"]) == 0
    assert "cDAQ1Mod1    NI 9205" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--card", "PCIe-9999=Dev1"), "card 'PCIe-9999' is not known"),
        (("--card", "PCIe-6363"), "write MODEL=NAME"),
        (("--card", "NI 9205=Mod1"), "a module needs its chassis"),
        (("--run", "nosuch.py"), "nosuch.py: no such file"),
        (("--run",), "name a program"),
    ],
)
def test_bad_input_is_one_line(words, line, capsys):
    assert main(["simdaq", *words]) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


@pytest.mark.library_leaks("gRPC closes its sockets some time after its server")
def test_a_server_answers_until_it_is_interrupted_and_holds_its_port(capfd):
    server = subprocess.Popen(
        [sys.executable, "-m", "hil", "simdaq", "--fast", "--port", "0"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = server.stdout.readline()
        port = int(line.split("127.0.0.1:")[1].split(":")[0])
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            options = nidaqmx.GrpcSessionOptions(channel, "")
            with nidaqmx.Task(grpc_options=options) as task:
                task.ai_channels.add_ai_voltage_chan("cDAQ1Mod1/ai0")
                assert abs(task.read()) < 2.0
        assert main(["simdaq", "--port", str(port)]) == 4
        assert f"port {port}" in capfd.readouterr().err
    finally:
        os.kill(server.pid, signal.SIGINT)
        try:
            assert server.wait(timeout=300) == 0
        finally:
            server.kill()
            server.stdout.close()


def test_importing_hil_asks_for_nothing_of_nis():
    """The core installs without nidaqmx, cffi and grpc."""
    code = (
        "import hil, hil.__main__, hil.commands.command_line, sys;"
        "hil.commands.command_line.command_line();"
        "print({'nidaqmx', 'cffi', 'grpc'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
