from django.apps import AppConfig


class NotifyConfig(AppConfig):
    name = "notify"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access.screens.people import add_tab  # noqa: PLC0415 - models are loaded by now
        from audit.proof import register_anchors  # noqa: PLC0415
        from notify.anchors import anchored  # noqa: PLC0415
        from notify.history_alarms import TELLER  # noqa: PLC0415
        from notify.hooks import register  # noqa: PLC0415

        register_anchors(anchored)
        register(TELLER)
        add_tab("telling", "Notices", "telling:channels")
