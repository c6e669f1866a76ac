"""Roles and scopes: closed lists."""

from django.db.models import TextChoices


class Role(TextChoices):
    """What a person may do in a tenant."""

    REVIEWER = "reviewer", "Reviewer"
    OPERATOR = "operator", "Operator"
    AUDITOR = "auditor", "Auditor"
    OWNER = "owner", "Workflow owner"
    ADMIN = "admin", "Admin"


class Scope(TextChoices):
    """What a token may do. No scope decides or attests: there is none for it."""

    RUNS_WRITE = "runs:write"
    RUNS_READ = "runs:read"
    PROPOSALS_WRITE = "proposals:write"
    PROPOSALS_READ = "proposals:read"
    PROPOSALS_ANSWER = "proposals:answer"
    RESULTS_READ = "results:read"
    AUDIT_READ = "audit:read"


class DutyKind(TextChoices):
    """What a person answers for, and so does not decide about."""

    OWNER = "owner", "Owner of the workflow"
    POLICY_EDITOR = "policy_editor", "Wrote its policy"


class Posture(TextChoices):
    """Under which posture of the tenant something was decided; empty is the ordinary one."""

    ORDINARY = "", "Ordinary"
    BREAK_GLASS = "break_glass", "Break-glass"
