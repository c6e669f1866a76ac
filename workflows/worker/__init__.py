"""The worker protocol (design, section 6): claim, send, store; recover, reconcile. PostgreSQL decides."""

from workflows.worker.loop import work

__all__ = ["work"]
