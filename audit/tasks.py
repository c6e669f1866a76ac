"""Thin wrappers: beat wakes them, the sweep process calls the same functions where there is no Redis."""

import structlog
from celery import shared_task

from audit import sealer
from audit.actors import INSTALLATION, clock_actor
from audit.checks import record_verdict
from audit.reporting import spread_verdict
from audit.verify import verify_all
from common.clock import db_clock

log = structlog.get_logger("placet.audit")


@shared_task(name="audit.tasks.seal", ignore_result=True)
def seal(**_: object) -> int:
    """Seal what can be sealed; a second call at the same time does nothing."""
    return sealer.seal(db_clock)


@shared_task(name="audit.tasks.verify_daily", ignore_result=True, time_limit=3600, soft_time_limit=3500)
def verify_daily(**_: object) -> bool:
    """Recompute every chain and write down what was found; a break is logged as an error, too."""
    verdicts = []
    for verdict in verify_all():  # each written down at once: one that takes too long hides none before it
        verdicts.append(verdict)
        record_verdict(verdict, by=clock_actor("daily check"))
        if verdict.tenant_id == INSTALLATION:
            spread_verdict(verdict, by=clock_actor("daily check"))
        if not verdict.holds:
            log.error(
                "audit_chain_broken", tenant=str(verdict.tenant_id), seq=verdict.seq, cause=verdict.cause
            )
    log.info("audit_verified", chains=len(verdicts), events=sum(verdict.sealed for verdict in verdicts))
    return all(verdict.holds for verdict in verdicts)
