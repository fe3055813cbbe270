"""Tests of one group share a worker: pytest-xdist has ignored groups with a newer pytest."""

import os

import pytest


@pytest.mark.xdist_group("held together")
def test_a_group_reaches_the_scheduler(request):
    if "PYTEST_XDIST_WORKER" in os.environ and request.config.option.loadgroup:
        assert request.node.nodeid.endswith("@held together")
    else:
        assert request.node.get_closest_marker("xdist_group").args == ("held together",)
