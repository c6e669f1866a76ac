from django.apps import AppConfig


class RepairConfig(AppConfig):
    name = "repair"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from repair.actions import close_packets, open_packet  # noqa: PLC0415 - models are loaded by now
        from workflows import hooks  # noqa: PLC0415

        hooks.register(on_stopped=open_packet, on_settled=close_packets)
