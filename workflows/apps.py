from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    name = "workflows"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from access.hooks import offer  # noqa: PLC0415
        from access.screens.people import add_tab  # noqa: PLC0415 - models are loaded by now
        from approvals import hooks  # noqa: PLC0415
        from audit import bundle, finding, replay, through  # noqa: PLC0415
        from workflows import bundled, rechecked, rechecked_holds, registry  # noqa: PLC0415
        from workflows.actions.decided import proposal_ended  # noqa: PLC0415
        from workflows.actions.questions import question_moved  # noqa: PLC0415
        from workflows.finding import endpoint_names, endpoints_named, runs_doing, runs_named  # noqa: PLC0415

        hooks.register(proposal_ended)
        hooks.on_question(question_moved)
        hooks.offer_editable(registry.editable)
        finding.register(runs_named)
        through.register("endpoint", endpoint_names, endpoints_named)
        replay.register(*(replay.Stateful(name, f"workflows_{name}") for name in ("run", "step", "command")))
        replay.register_differences(rechecked.differences)
        replay.register_differences(rechecked_holds.differences)
        bundle.register(bundled.rows)
        offer(registry.names)
        add_tab("endpoints", "Endpoints", "endpoints:endpoints")
        add_tab("contents", "Data", "contents:contents")
        registry.autodiscover()
        finding.register_doing(runs_doing)
