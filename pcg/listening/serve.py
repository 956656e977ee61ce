"""A web server that serves nothing but listening tests: `python -m pcg.listening.serve FOLDER
--port 7870`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pcg.listening.backup import from_environment
from pcg.listening.routes import serve_app


def run(root: Path, host: str = "127.0.0.1", port: int = 7870) -> None:
    """Serve the tests of `root` until interrupted."""
    import uvicorn

    app = serve_app(root)
    backup = from_environment(app.state.desk)
    try:
        uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=5)
    finally:
        if backup is not None:
            backup.stop()
        app.state.desk.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7870)
    options = parser.parse_args()
    run(options.root, options.host, options.port)
