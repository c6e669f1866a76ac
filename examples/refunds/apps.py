from django.apps import AppConfig


class RefundsConfig(AppConfig):
    name = "examples.refunds"
    verbose_name = "Refunds (example)"
