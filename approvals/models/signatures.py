"""What a passkey signed of an approval, kept whole."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from approvals.models.decisions import Decision
from common.fsm import Frozen
from common.tenancy import SameTenant, TenantRow


class Signature(TenantRow):
    """One approval's signature by the approver's passkey: everything by which anybody can check it, and never changed.

    ``document`` is the RFC 8785 form of what was signed; the challenge is a digest of it (`approvals.signing`). The
    other parts are what the passkey answered, in base64, and its public key (COSE) as it was held then. No personal
    data: ids, digests, keys.
    """

    decision = models.OneToOneField(
        Decision, on_delete=models.PROTECT, db_constraint=False, related_name="signature"
    )
    nonce = models.CharField(max_length=32)
    document = models.TextField()
    credential_id = models.TextField()
    public_key = models.TextField()
    authenticator_data = models.TextField()
    client_data = models.TextField()
    signature = models.TextField()
    at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_signature_bound",
                fields=[
                    "tenant",
                    "decision",
                    "nonce",
                    "document",
                    "credential_id",
                    "public_key",
                    "authenticator_data",
                    "client_data",
                    "signature",
                    "at",
                ],
            )
        ]
        constraints: ClassVar = [
            SameTenant(field="decision", name="approvals_signature_decision_tenant"),
            models.UniqueConstraint(fields=["nonce"], name="approvals_signature_nonce_once"),
            models.CheckConstraint(
                condition=~Q(document="") & ~Q(signature="") & ~Q(public_key=""),
                name="approvals_signature_is_whole",
            ),
        ]
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"signature of {self.decision_id}"
