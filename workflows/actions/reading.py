"""Opening protected content. Whoever reads a document is written down first."""

from typing import Final
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from audit.actions import record
from audit.actors import Actor
from common.errors import NotFound
from common.tx import action
from workflows.models import Document

# Reviewers see what they decide on, auditors what was decided: neither needs a customer's own words for it.
READERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)


@action
def open_document(*, tenant_id: UUID, run_id: UUID, document_id: UUID, by: Actor) -> Document:
    """The document with its content. Raises RoleMissing, and NotFound, for another tenant's or run's too."""
    check_role(membership_of(by.user_id, tenant_id), *READERS)
    document = Document.objects.filter(tenant_id=tenant_id, run_id=run_id, pk=document_id).first()
    if document is None:
        raise NotFound
    record(
        by=by, kind="document.opened", tenant_id=tenant_id, subject_type="document", subject_id=document.pk,
        run_id=run_id, body={"kind": document.kind},
    )  # fmt: skip
    return document
