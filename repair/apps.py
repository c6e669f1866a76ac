from django.apps import AppConfig


class RepairConfig(AppConfig):
    name = "repair"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from notify.hooks import register as register_teller  # noqa: PLC0415 - models are loaded by now
        from repair import actions, stalled, telling  # noqa: PLC0415
        from repair.incidents import erasing, joining  # noqa: PLC0415
        from workflows import hooks  # noqa: PLC0415

        hooks.register(
            on_stopped=actions.open_packet,
            on_settled=actions.close_packets,
            which_stopped=actions.runs_with_packets,
            on_half_said=actions.await_second,
        )
        register_teller(telling.TELLER)
        hooks.look_too(stalled.look)
        hooks.look_too(joining.look)
        hooks.look_too(erasing.look)
