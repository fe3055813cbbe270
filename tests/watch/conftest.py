"""A run that is watched while its rows are written again; a certificate of this computer."""

import datetime

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hil.loop import tap as taps
from hil.watch import bench
from hil.watch.bench import Run


@pytest.fixture
def shown(all_on, tmp_path, monkeypatch):
    """A run as it is seen while its rows are written again, and the rows of its recording."""
    from hil.record.layout import text_of
    from hil.record.read import open_h5

    with open_h5(all_on) as file:
        dtype = np.dtype([(name, d.dtype, d.shape[1:]) for name, d in file["ticks"].items()])
        rows = np.zeros(file["ticks/t_s"].shape[0], dtype)
        for name, dataset in file["ticks"].items():
            rows[name] = dataset[:]
        assert text_of(file.attrs["outcome"]) == "complete"
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    monkeypatch.setattr(
        bench, "commands_with", lambda tap: iter([(["record", tap, str(all_on)], tmp_path)])
    )
    tap = taps.create(dtype, 4096)
    tap.set_recorder_ready()
    run = Run(*taps.running()[0])
    run.look()
    yield run, tap, rows
    tap.close_writer()
    tap.unlink()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A PEM file with a certificate of this computer and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(1))
        .add_extension(names, critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "page.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return path
