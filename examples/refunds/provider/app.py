"""Puts the parts together: who asks, what is answered, and whether this request is to go wrong."""

import socket
import threading

from examples.refunds.provider import misbehave
from examples.refunds.provider.admin import AdminApi
from examples.refunds.provider.effects import only_note
from examples.refunds.provider.exchange import Refusal, Reply, Request
from examples.refunds.provider.keys import Keys
from examples.refunds.provider.public import PublicApi
from examples.refunds.provider.store import Store
from examples.refunds.provider.switches import EFFECT_PATHS, Switches


class App:
    """One provider. ``stop`` is set when the process ends; whoever waits, waits on it."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self.store = store
        self.keys = keys
        self.switches = Switches()
        self.public = PublicApi(store, self.switches)
        self.admin = AdminApi(store, self.switches, keys)
        self.stop = threading.Event()

    def serve(self, request: Request, sock: socket.socket) -> bool:
        """Answer on ``sock``, well or badly; false when the connection must end."""
        if request.path == "/healthz":
            return misbehave.send(sock, Reply(200, {"status": "ok"}), request)
        if request.path.startswith("/_admin/"):
            return misbehave.send(sock, self.answer(request), request)
        try:
            request.tenant = self.keys.tenant_of(request)
        except Refusal as refusal:
            return misbehave.send(sock, refusal.reply, request)
        if not request.complete:
            request.fault = "incomplete_request"
            self.note(request)
            return False
        rule = self.switches.find(request)
        if rule is None:
            return misbehave.send(sock, self.answer(request), request)
        request.fault = rule.fault
        return misbehave.FAULTS[rule.fault](self, rule, request, sock)

    def answer(self, request: Request) -> Reply:
        """Execute the request and say what came of it."""
        api = self.admin if request.path.startswith("/_admin/") else self.public
        try:
            return api.answer(request)
        except Refusal as refusal:
            return refusal.reply

    def note(self, request: Request) -> None:
        """Journal the arrival of a request that would have an effect and is not executed, or not yet."""
        if request.method == "POST" and request.path in EFFECT_PATHS:
            request.arrival = only_note(self.store, request)
