"""The worked example's provider: its port and its key, both kept over restarts."""

import json
import socket

from launch import LaunchError
from launch.datadir import DataDir, write_private

_TENANT = "demo"
_MODULE = "examples.refunds.provider"


class Provider:
    """How the provider is started, and how the product finds it."""

    def __init__(self, data: DataDir) -> None:
        self.folder = data.folder("provider")
        self.port = _free_port(data)
        self.key = data.secret("provider_key")
        self.theirs, self.ours = data.path / "provider-keys.json", data.path / "refunds-keys.json"
        write_private(self.theirs, json.dumps({self.key: _TENANT}))
        write_private(self.ours, json.dumps({_TENANT: self.key}))

    def command(self) -> list[str]:
        """What Python is to run."""
        place = ("--data", str(self.folder), "--port", str(self.port), "--keys", str(self.theirs))
        return ["-m", _MODULE, *place]

    def environment(self) -> dict[str, str]:
        return {
            "PLACET_REFUNDS_URL": f"http://127.0.0.1:{self.port}",
            "PLACET_REFUNDS_KEYS": str(self.ours),
        }


def _free_port(data: DataDir) -> int:
    """The port of last time if it is free: proposals that wait name the provider's address."""
    last = data.recall("ports.json", "provider")
    for candidate in (last, 0) if last else (0,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            port = int(probe.getsockname()[1])
        data.remember("ports.json", "provider", port)
        return port
    raise LaunchError("There is no free port for the provider.")
