"""What a process remembers of the documents that it shows: little, and not for longer than pages are turned."""

import gc
from threading import Event

import pytest

from approvals.shown import Kept, view_of
from approvals.viewmodels import ViewDocument
from common.clock import db_clock
from common.content_errors import ContentErased
from tests.workflows.conftest import Desk, desk
from workflows.actions.erasing import erase_content

__all__ = ["desk"]
CANARY = "kanari-in-memory"


def document(headline: str) -> ViewDocument:
    return ViewDocument(
        operation="pay", operation_version=1, contract_digest="0" * 64, headline=headline, consequence="-", fields=()
    )  # fmt: skip


def test_a_large_document_is_read_once_and_forgotten_by_itself() -> None:
    reads, forgotten = [], Event()

    class Watched(Kept):
        def forget(self, name: bytes) -> None:
            super().forget(name)
            forgotten.set()

    def read(stored: bytes) -> ViewDocument:
        reads.append(stored)
        return ViewDocument.from_bytes(stored)

    kept, stored = Watched(read, life_s=0.05), document(CANARY).to_bytes()
    assert kept(stored).headline == CANARY
    assert forgotten.wait(30)
    assert len(kept) == 0
    patient = Kept(read, life_s=3600)
    assert patient(stored) is patient(stored)
    assert len(reads) == 2


def test_few_are_kept_at_a_time() -> None:
    kept = Kept(ViewDocument.from_bytes, life_s=3600)
    for number in range(20):
        kept(document(str(number)).to_bytes())
    assert len(kept) == 6


@pytest.mark.django_db
def test_nothing_of_an_erased_run_stays_in_memory(desk: Desk) -> None:
    from access.management.operator import at_the_console
    from approvals.models import Proposal
    from workflows.actions.cancelling import cancel_run

    proposal = desk.proposed(order=CANARY)
    assert CANARY in str(view_of(Proposal.objects.get(pk=proposal.pk)))
    by = at_the_console()
    cancel_run(tenant_id=desk.tenant.pk, run_id=proposal.run_id, reason="over", by=by, clock=db_clock)
    erase_content(tenant_id=desk.tenant.pk, run_id=proposal.run_id, why="asked", by=by, clock=db_clock)
    with pytest.raises(ContentErased):
        view_of(Proposal.objects.get(pk=proposal.pk))
    del proposal
    gc.collect()
    held = [thing for thing in gc.get_objects() if isinstance(thing, ViewDocument)]
    assert not [thing for thing in held if CANARY in repr(thing)]
