"""The history: events that are only ever added, and the seals that number and chain them."""

from typing import Any

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from audit.actors import Owner, Via
from common.ids import new_id
from common.rowsecurity import RowSecurity
from common.walls import AppendOnly, NoTruncate, Wall


class Stamp(Wall):
    """Time, transaction and order of an event are the database's, whatever the INSERT says.

    The order is a sequence's: it fits cause and effect also where the clock steps back, because an action that waited
    for another one writes its events after the wait.
    """

    when = pgtrigger.Before
    operation = pgtrigger.Insert

    def get_func(self, model: Any) -> str:
        return """
            NEW.at := clock_timestamp();
            NEW.xid := pg_current_xact_id()::text::bigint;
            NEW.written := nextval('audit_event_written');
            RETURN NEW;
        """


class Event(models.Model):
    """One change of state, one refused attempt, one thing that was seen. Insert and select only.

    No foreign keys: an event outlives what it speaks of. ``body`` holds ids, states, codes and digests,
    never the words of a customer or a model.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=80)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    run_id = models.UUIDField(null=True)
    from_state = models.CharField(max_length=40, blank=True)
    to_state = models.CharField(max_length=40, blank=True)
    performed_by = models.CharField(max_length=200)
    on_behalf_of = models.CharField(max_length=200, blank=True)
    via = models.CharField(max_length=20, choices=Via.choices)
    owner = models.CharField(max_length=20, choices=Owner.choices)
    reason = models.CharField(max_length=500, blank=True)
    request_id = models.CharField(max_length=80, blank=True)
    digest = models.CharField(max_length=80, blank=True)
    body = models.JSONField(default=dict)
    through = models.CharField(max_length=80, null=True)
    """Which token, session or endpoint the actor came through; null in events of before there was this column."""
    # Both are stamped by the database: its clock, and the transaction that the sealer waits for.
    at = models.DateTimeField()
    xid = models.BigIntegerField()
    written = models.BigIntegerField(null=True)
    """Which event was written before which, across transactions; null in those of before there was this column."""

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~models.Q(performed_by=""), name="audit_event_has_performed_by"),
        ]
        indexes = [
            models.Index(fields=["xid"], name="audit_event_xid"),
            models.Index(fields=["tenant_id", "-at", "-id"], name="audit_event_newest"),
            models.Index(fields=["tenant_id", "run_id", "at"], name="audit_event_run"),
            # For people who look for one actor or kind among all there is: docs/adr/0043.
            models.Index(fields=["tenant_id", "performed_by", "at"], name="audit_event_actor"),
            models.Index(
                fields=["tenant_id", "on_behalf_of", "at"],
                name="audit_event_for",
                condition=~models.Q(on_behalf_of=""),
            ),
            models.Index(fields=["tenant_id", "kind", "at"], name="audit_event_kind"),
            # One token among those of its automation: docs/adr/0049.
            models.Index(
                fields=["tenant_id", "through", "at"],
                name="audit_event_through",
                condition=models.Q(through__gt=""),
            ),
            models.Index(fields=["tenant_id", "subject_id", "at"], name="audit_event_subject"),
            models.Index(
                fields=["tenant_id", "digest"], name="audit_event_digest", condition=~models.Q(digest="")
            ),
        ]
        triggers = [
            Stamp(name="audit_event_stamp"),
            AppendOnly(name="audit_event_append_only"),
            NoTruncate(name="audit_event_no_truncate"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_type}:{self.subject_id}"


class Seal(models.Model):
    """The place of one event in its tenant's chain: ``hash`` covers the event's canonical bytes and ``previous``."""

    event_id = models.UUIDField(primary_key=True)
    tenant_id = models.UUIDField()
    seq = models.BigIntegerField()
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "seq"], name="audit_seal_one_per_place"),
            RowSecurity(name="audit_seal_row_security", signer=True),
        ]
        triggers = [
            AppendOnly(name="audit_seal_append_only"),
            NoTruncate(name="audit_seal_no_truncate"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id}#{self.seq}"


class Head(models.Model):
    """The end of a tenant's chain; the sealer locks it, nobody else."""

    tenant_id = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.tenant_id}#{self.seq}"


class Watermark(models.Model):
    """How far the sealer has come: every event of a transaction below ``sealed_below`` is sealed. One row.

    Transaction numbers mean something in one database cluster only, hence ``cluster``: after a restore into
    another one the mark says nothing and the sealer looks at all events once.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    sealed_below = models.BigIntegerField()
    cluster = models.BigIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="audit_watermark_one_row")]

    def __str__(self) -> str:
        return f"sealed below {self.sealed_below}"


class Checkpoint(models.Model):
    """What the signer has signed: ``note`` is the whole text. Only the signer adds rows, and they prove nothing alone:

    whoever can change the seals can change these too. Proof is a copy that is kept elsewhere.
    """

    id = models.UUIDField(primary_key=True)
    tenant_id = models.UUIDField()
    size = models.BigIntegerField()
    root = models.CharField(max_length=64)
    note = models.TextField()
    key_hash = models.CharField(max_length=8)
    signed_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["tenant_id", "-recorded_at"], name="audit_checkpoint_newest")]
        constraints = [RowSecurity(name="audit_checkpoint_row_security", signer=True)]
        triggers = [
            AppendOnly(name="audit_checkpoint_append_only"),
            NoTruncate(name="audit_checkpoint_no_truncate"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} up to {self.size}"


class SigningKey(models.Model):
    """A public key that the signer has used, as one line. Nobody's in particular, hence without a tenant."""

    vkey = models.CharField(primary_key=True, max_length=200)
    since = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "audit_signing_key"
        triggers = [
            AppendOnly(name="audit_signing_key_append_only"),
            NoTruncate(name="audit_signing_key_no_truncate"),
        ]

    def __str__(self) -> str:
        return self.vkey


class SignerReport(models.Model):
    """What the signer has to say: that it refuses a history, or that a person has accepted one."""

    class Kind(models.TextChoices):
        REFUSED = "refused"
        ACCEPTED = "accepted"

    id = models.UUIDField(primary_key=True)
    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=20, choices=Kind.choices)
    cause = models.CharField(max_length=40)
    detail = models.CharField(max_length=600)
    at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "audit_signer_report"
        indexes = [models.Index(fields=["tenant_id", "-recorded_at"], name="audit_signer_report_newest")]
        constraints = [RowSecurity(name="audit_signer_report_row_security", signer=True)]
        triggers = [
            AppendOnly(name="audit_signer_report_append_only"),
            NoTruncate(name="audit_signer_report_no_truncate"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.tenant_id}: {self.detail}"
