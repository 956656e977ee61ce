"""One running page for the tests that talk to it over HTTP."""

from collections.abc import Iterator

import pytest

from pcg.bench.load import StartUp, served
from pcg.settings import BUNDLED_DIR


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, StartUp]]:
    """(address, what the start took) of `python app.py`.

    With the bundled voice, or where it is not in the checkout with a tiny random one.
    """
    model = "bundled"
    if not (BUNDLED_DIR / "target").is_dir():
        from pcg.testing import tiny_bundled

        folder = tmp_path_factory.mktemp("tiny")
        tiny_bundled(folder)
        model = str(folder)
    limits = {"PCG_METRICS": "false", "PCG_LIMITS_MAX_SECONDS": "2"}
    with served({"PCG_MODEL": model, **limits}) as running:
        yield running
