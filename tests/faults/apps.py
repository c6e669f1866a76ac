"""Loads the harness into every process that runs under its settings."""

from django.apps import AppConfig


class FaultsConfig(AppConfig):
    """Short clocks, a wrong clock and planted defects: what the environment of this process asks for."""

    name = "tests.faults"
    label = "faults"

    def ready(self) -> None:
        from tests.faults import conditions

        conditions.apply()
