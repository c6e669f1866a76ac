from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    name = "workflows"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals import hooks  # noqa: PLC0415 - models are loaded by now
        from audit import finding  # noqa: PLC0415
        from workflows import registry  # noqa: PLC0415
        from workflows.actions.decided import proposal_ended  # noqa: PLC0415
        from workflows.finding import runs_named  # noqa: PLC0415

        hooks.register(proposal_ended)
        finding.register(runs_named)
        registry.autodiscover()
