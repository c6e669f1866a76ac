"""The stage engine: claims due steps, runs their stage outside any transaction, stores the result before the next."""

from workflows.engine.run import run_due_steps

__all__ = ["run_due_steps"]
