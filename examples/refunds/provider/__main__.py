"""``python -m examples.refunds.provider --data DIR --port PORT``: runs until SIGTERM or Ctrl-C."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from examples.refunds.provider.app import App
from examples.refunds.provider.keys import Keys
from examples.refunds.provider.seed import seed
from examples.refunds.provider.server import Server
from examples.refunds.provider.store import Store


def main() -> int:
    arguments = _parser().parse_args()
    store = Store(arguments.data)
    seed(store, arguments.orders)
    server = Server(App(store, Keys.read(arguments.keys)), arguments.host, arguments.port)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server.start()
    sys.stdout.write(f"Refund provider listening on http://{arguments.host}:{server.port}\n")
    sys.stdout.flush()
    ended.wait()
    server.stop()
    store.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.refunds.provider", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the provider's own database")
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one and prints it")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the switches need no key: keep it on the loopback"
    )
    parser.add_argument("--keys", type=Path, help="JSON file of API keys: {key: tenant}")
    parser.add_argument("--orders", type=int, default=400, help="how many orders to generate, from 1001 on")
    return parser


if __name__ == "__main__":
    sys.exit(main())
