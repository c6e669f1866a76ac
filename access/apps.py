from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class AccessConfig(AppConfig):
    name = "access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import rechecked, rechecked_postures  # noqa: PLC0415 - models are loaded by now
        from access import through as tokens  # noqa: PLC0415
        from access.sessions import begin  # noqa: PLC0415  it needs the models
        from audit import replay, through  # noqa: PLC0415

        user_logged_in.connect(
            lambda request, **_: begin(request), weak=False, dispatch_uid="access.sessions.begin"
        )
        replay.register_differences(rechecked.differences)
        replay.register_differences(rechecked_postures.differences)
        through.register("token", tokens.names_of, tokens.find)
