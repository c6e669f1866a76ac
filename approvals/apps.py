from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access import hooks  # noqa: PLC0415 - models are loaded by now
        from approvals import bundled, rechecked, rechecked_signatures, telling, telling_samples  # noqa: PLC0415
        from approvals.standing import effects_of_leaving  # noqa: PLC0415
        from audit import bundle, replay  # noqa: PLC0415
        from notify.hooks import register  # noqa: PLC0415

        replay.register(replay.Stateful("proposal", "approvals_proposal"))
        replay.register_differences(rechecked.differences)
        replay.register_differences(rechecked_signatures.differences)
        hooks.register(effects_of_leaving)
        bundle.register(bundled.rows, contracts=bundled.contracts, views=bundled.views)
        for teller in (*telling.TELLERS, *telling_samples.TELLERS):
            register(teller)
