"""An MCAP file whose chunks are written in a thread."""

import functools
import io
from types import SimpleNamespace

import numpy as np

from hil.record import mcap_chunks


def test_nothing_else_is_written_while_a_chunk_is(monkeypatch):
    """Channels and texts between two chunks had lain within the first, and the file was damaged."""
    file = io.BytesIO()

    class LateThread:
        """Begins to write only when its end is waited for."""

        def __init__(self, max_workers):
            pass

        def submit(self, write, *arguments):
            at = file.tell()

            @functools.cache
            def result():
                assert file.tell() == at
                write(*arguments)

            return SimpleNamespace(result=result)

        def shutdown(self):
            pass

    monkeypatch.setattr(mcap_chunks, "ThreadPoolExecutor", LateThread)
    with mcap_chunks.ChunkedFile(file) as out:
        for i in range(3):
            number = out.add_channel(f"/topic{i}", "json", "text", b"{}")
            out.add_messages(number, np.array([i]), 0, np.array(np.void(b"{}")))
            out.end_chunk()
            out.add_metadata(f"name{i}", {})
        out.finish()
