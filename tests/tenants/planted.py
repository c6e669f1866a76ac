"""A tenant full of things of every kind, each with a word in it that nobody else may ever read."""

from typing import Any

from django.apps import apps
from django.db import connections
from django.db.models import Model

from access.enums import Role
from access.models import (
    Absence,
    Agent,
    ApiToken,
    BreakGlass,
    Duty,
    GroupMembership,
    Membership,
    User,
    WorkingHours,
)
from approvals.models import Answer, Proposal, Question, Rejection, Trait
from audit.actions import record
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from common.models import Tenant
from common.rowsecurity import RowSecurity
from common.tx import action
from notify.models import Preference
from repair.models import RepairCause, RepairMove
from repair.models_alerts import StopAlert
from tests import factories as f
from tests import rows
from tests.access.people import INSTALLER
from tests.api.callers import token_for
from tests.approvals.later_walls import escalation_row, sample_row
from tests.approvals.signature_walls import signature_row
from tests.approvals.trait_walls import trait_values
from tests.notify.rows import destination_row, follower_row, mail_row, message_row, notice_row
from tests.repair.incident_walls import affected_row, make_incident, note_row
from tests.workflows.callback_walls import call_row, make_destination
from tests.workflows.callback_walls import secret_row as callback_secret_row
from tests.workflows.endpoint_walls import delivery_row, make_endpoint, secret_row
from tests.workflows.legal_hold_walls import legal_hold_row
from workflows.models import Attestation, Command, Hold, Run

CANARY = "kanarienvogel"
# What a parameter of an address is called, where that is not the name of the thing itself.
NAMES = {"packet": "repairpacket", "token": "apitoken", "person": "membership", "account": "membership"}


def secured_models() -> list[type[Model]]:
    """Every model whose rows belong to a tenant."""
    return [
        model for model in apps.get_models(include_auto_created=True)
        if any(isinstance(item, RowSecurity) for item in model._meta.constraints)
    ]  # fmt: skip


def column_of(model: type[Model]) -> str:
    return next(item.column for item in model._meta.constraints if isinstance(item, RowSecurity))


def rows_of(model: type[Model], tenant: Tenant) -> Any:
    """By the tenant's column, whatever it is called."""
    name = "pk" if model is Tenant else "tenant_id"
    return model._default_manager.filter(**{name: tenant.pk})


def plant(slug: str, word: str = CANARY) -> Tenant:
    """A tenant with a row of every model that has one."""
    tenant = f.make_tenant(slug, name=f"{word} house")
    _plant_people(tenant, word)
    command = _plant_work(tenant, word)
    _plant_around(tenant, word, command)
    _plant_notices(tenant, word)
    _plant_history(tenant, word)
    missing = [model._meta.label for model in secured_models() if not rows_of(model, tenant).exists()]
    assert not missing, f"plant a row of each of these, so that all is tried with another tenant's: {missing}"
    return tenant


def _plant_people(tenant: Tenant, word: str) -> None:
    group = f.make_group(tenant, f"{word} desk")
    user = f.make_user(
        tenant, f"{word}-{tenant.slug}", roles=[*Role], groups=[group], display_name=f"{word} person"
    )
    token_for(tenant, f"{word}-agent", acts_for=user)
    token = ApiToken.objects.get(tenant=tenant)
    Duty.objects.create(tenant=tenant, user=user, kind="owner", workflow=f"{word}-flow")
    BreakGlass.objects.create(
        tenant=tenant, reason=f"{word} alone", created_at=rows.now(), created_by=f"user:{user.pk}",
        ends_at=rows.now().replace(year=2100),
    )  # fmt: skip
    Absence.objects.create(
        tenant=tenant, user=user, starts_at=rows.now().replace(year=2090), ends_at=rows.now().replace(year=2091),
        zone="UTC", created_at=rows.now(), created_by=word,
    )  # fmt: skip
    WorkingHours.objects.create(tenant=tenant, group=group, zone="UTC", week=[[540, 1020]] * 5 + [None] * 2)
    assert GroupMembership.objects.filter(tenant=tenant).exists()
    assert token.agent.acts_for == user


def _plant_work(tenant: Tenant, word: str) -> Command:
    """One run that waits for people, and one whose outcome nobody knows."""
    user = User.objects.get(memberships__tenant=tenant)
    proposal = _proposal(tenant, word)
    f.make_evidence(proposal, title=f"{word} letter")
    Trait.objects.create(**trait_values(proposal))
    vote = f.make_decision(proposal, user, reason=f"{word} agrees")
    signature_row(vote, credential_id=word).save()
    _plant_talk(proposal, user, word)
    escalation_row(proposal=proposal).save()
    sample_row(proposal=proposal).save()
    command = f.make_command(_proposal(tenant, word, status="approved"), status="unknown")
    f.make_attempt(command)
    f.make_lookup(command)
    held = {"since": rows.now(), "until": rows.now().replace(year=2100)}
    proposal.claims.create(tenant=tenant, user=user, **held)
    packet = f.make_packet(
        Run.objects.get(pk=proposal.run_id), summary=f"{word} has stopped", cause="stalled"
    )
    cause = RepairCause.objects.create(
        tenant=tenant, title=f"{word} flew in", created_by=word, created_at=rows.now()
    )
    RepairMove.objects.create(
        tenant=tenant, packet=packet, choice="take", user=user, at=rows.now(), root_cause=cause,
        words=f"{word} took it",
    )  # fmt: skip
    StopAlert.objects.create(
        tenant=tenant, workflow="refund-triage", cause="stalled", owner=f"{word} desk", opened_at=rows.now(),
        due_at=rows.now().replace(year=2100),
    )  # fmt: skip
    _plant_incident(tenant, user, packet.run, word)
    replay = f.make_run(tenant, kind="replay", original=packet.run)
    f.make_replay(replay, user, effects="dry", reason=f"{word} wants to see it again")
    return command


def _plant_incident(tenant: Tenant, user: User, run: Run, word: str) -> None:
    incident = make_incident(
        tenant=tenant, user=user, trouble=f"{word} looks wrong", hypothesis=f"{word} did it"
    )
    affected_row(
        incident, run=run, mark="fine", marked_by=user, marked_at=rows.now(), words=f"{word} is well"
    ).save()
    note_row(incident, words=f"{word} was called").save()


def _plant_talk(proposal: Proposal, user: User, word: str) -> None:
    question = Question.objects.create(
        tenant=proposal.tenant, proposal=proposal, of="colleague", colleague=user, wording=f"{word}?", asked_by=user,
        asked_at=rows.now(),
    )  # fmt: skip
    Answer.objects.create(
        tenant=proposal.tenant, question=question, wording=f"{word}!", user=user, performed_by=f"user:{user.pk}",
        via="session", at=rows.now(),
    )  # fmt: skip
    Rejection.objects.create(
        tenant=proposal.tenant, proposal=proposal, operation=proposal.operation, target=proposal.target,
        material_digest=proposal.material_digest, rejected_by=user, rejected_at=rows.now(),
        until=rows.now().replace(year=2100),
    )  # fmt: skip


def _proposal(tenant: Tenant, word: str, **fields: Any) -> Proposal:
    run = f.make_run(tenant, workflow=f"{word}-flow", requested_by=f"api:{word}")
    return f.make_proposal(run, f.make_step(run, status="waiting"), reason=f"{word} wants it", **fields)


def _plant_around(tenant: Tenant, word: str, command: Command) -> None:
    user = User.objects.get(memberships__tenant=tenant)
    Hold.objects.create(
        tenant=tenant,
        reason="freeze",
        why=f"{word} is cold",
        placed_by=f"user:{user.pk}",
        placed_at=rows.now(),
    )
    legal_hold_row(tenant=tenant, why=f"{word} sues").save()
    Attestation.objects.create(
        tenant=tenant, command=command, says="happened", user=user, role="operator", reference=f"{word}-1",
        reason=f"{word} saw it", tries=1, at=rows.now(),
    )  # fmt: skip
    endpoint = make_endpoint(
        tenant=tenant, agent=Agent.objects.get(tenant=tenant), name=f"{word}-hook", created_by=word
    )
    secret_row(endpoint).save()
    delivery_row(endpoint).save()
    destination = make_destination(
        tenant=tenant, name=f"{word}-crm", url=f"https://{word}.example/", created_by=word
    )
    callback_secret_row(destination).save()
    call_row(destination, run=Run.objects.filter(tenant=tenant).first()).save()


def _plant_notices(tenant: Tenant, word: str) -> None:
    destination = destination_row(
        tenant, name=f"{word}-room", url=f"https://{word}.example/hook", created_by=word
    )
    destination.save()
    message = message_row(tenant, lead=f"{word} waits")
    message.save()
    notice = notice_row(message, User.objects.get(memberships__tenant=tenant))
    notice.save()
    mail_row(notice).save()
    follower_row(tenant).save()
    Preference.objects.create(tenant=tenant, user=notice.user, zone="Europe/Berlin")


@action
def _record(tenant: Tenant, word: str) -> None:
    run = Run.objects.filter(tenant=tenant).first()
    record(
        by=INSTALLER, kind="run.running", tenant_id=tenant.pk, subject_type="run", subject_id=run.pk, run_id=run.pk,
        reason=f"{word} began",
    )  # fmt: skip


def _plant_history(tenant: Tenant, word: str) -> None:
    _record(tenant, word)
    seal(db_clock)
    _plant_signed(tenant, word)


def _plant_signed(tenant: Tenant, word: str) -> None:
    """As the signer, whose role alone adds these."""
    as_superuser(
        "INSERT INTO audit_checkpoint (id, tenant_id, size, root, note, key_hash, signed_at)"
        " VALUES (%s, %s, 1, '', %s, '', now())", new_id(), tenant.pk, f"placet/{tenant.pk} {word}",
    )  # fmt: skip
    as_superuser(
        "INSERT INTO audit_signer_report (id, tenant_id, kind, cause, detail, at)"
        " VALUES (%s, %s, 'accepted', 'changed', %s, now())", new_id(), tenant.pk, word,
    )  # fmt: skip


def id_for(parameter: str, tenant: Tenant) -> str:
    """The planted thing that a parameter of this name means, such as ``run_id``."""
    name = parameter.removesuffix("_id").replace("_", "")
    if name == "user":
        return str(Membership.objects.filter(tenant=tenant).values_list("user_id", flat=True)[0])
    known = {model._meta.model_name: model for model in secured_models()}
    model = known[NAMES.get(name, name)]
    return str(rows_of(model, tenant).order_by("pk").values_list("pk", flat=True)[0])


def as_superuser(statement: str, *parameters: Any) -> list[Any]:
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else []
