"""Small stories of people, pauses and providers in trouble; each played as those of `scenarios` are."""

from datetime import timedelta
from typing import Any

from access.actions import set_roles
from access.enums import Role
from access.models import Membership
from common.clock import db_clock
from common.errors import Refused
from tests.faults import voting
from tests.faults.flows import OPERATIONS
from tests.faults.people import Action
from tests.faults.scenarios import (
    HANG,
    I1,
    I4,
    I5,
    I6,
    I8,
    I13,
    Scenario,
    _lift,
    no_answer,
    plain,
)
from tests.faults.stage import Stage
from tests.faults.testifying import say_so
from workflows.actions import freezing
from workflows.actions.cancelling import cancel_run
from workflows.actions.editing import Edit, edit

NOT_NOW = {"fault": "status", "status": 429}
MUCH = "95.00"
"""Takes two people, to approve it and to say what became of it."""


# -- tries and pauses -----------------------------------------------------------------------------------------


def throttled_once(stage: Stage) -> None:
    """*Not now*, and how long to wait: a little later it is done."""
    stage.switch(NOT_NOW | {"next": 1, "retry_after": 2})
    action = stage.office.approved()
    stage.ends(stage.worker())
    stage.times["not_before"] = db_clock() + timedelta(seconds=1)
    stage.rest()
    assert stage.planted or stage.status(action) == "confirmed"


def throttled_without_end(stage: Stage) -> None:
    """*Not now*, for ever."""
    stage.switch(NOT_NOW)
    action = stage.office.approved()
    stage.rest()
    assert stage.status(action) == "dead"


def key_is_forgotten(stage: Stage) -> None:
    """No answer, no look-up, and the provider no longer knows the key: a second request would be a second effect."""
    stage.switch(HANG | {"next": 1})
    action = stage.office.approved(variant="forgetful")
    stage.ends(stage.worker())
    stage.sweep()
    stage.until(lambda: stage.command(action).lookups >= 5 or stage.status(action) == "confirmed")


def slow_answer(stage: Stage) -> None:
    """The answer takes a while, and somebody looks for leases that are over."""
    stage.switch({"fault": "delay", "seconds": 0.3, "next": 1})
    stage.office.approved()
    looker = stage.fork("look")
    stage.ends(stage.worker())
    looker.kill()
    stage.rest()


def lapsed_before_a_wrong_clock(stage: Stage) -> None:
    """The time to execute is over, and a worker believes that it is an hour earlier."""
    action = stage.office.approved(variant="brief")
    over = stage.command(action).proposal.execute_by
    assert over is not None
    stage.until(lambda: db_clock() > over)
    stage.pause(0.5)
    stage.ends(stage.worker(PLACET_CLOCK_WRONG_BY_S="-3600"))
    stage.rest()


# -- several --------------------------------------------------------------------------------------------------


def several(stage: Stage) -> None:
    """Three at a time."""
    for _ in range(3):
        stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


def one_is_deadly(stage: Stage) -> None:
    """Three are taken together with one from which no worker comes back."""
    poison = stage.office.approved("poison")
    others = [stage.office.approved() for _ in range(3)]
    looker = stage.fork("look")
    for _ in range(14):
        stage.until(lambda: not any(stage.status(action) == "claimed" for action in (poison, *others)))
        if stage.status(poison) == "dead":
            break
        for action in (poison, *others):
            stage.make_due(action)
        stage.ends(stage.worker(PLACET_FAULTS_DEADLY=poison.arguments["order"], PLACET_FAULTS_CLAIM_S="0.1"))
    looker.kill()
    stage.rest()


def newer_first(stage: Stage) -> None:
    """Another refund of the same order was proposed later, and is done; then somebody approves the older one."""
    older = stage.office.new("good")
    stage.office.propose(older)
    stage.office.approved(order=older.arguments["order"], amount="21.21")
    stage.rest()
    stage.office.approve(older)
    stage.rest()


def beside_another_tenant(stage: Stage) -> None:
    """The provider knows two tenants, each by its own key."""
    stage.know("somebody-else")
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


# -- people ---------------------------------------------------------------------------------------------------


def cancelled_during_the_call(stage: Stage) -> None:
    """Somebody wants it to stop while its request is under way, and the provider says *not now*."""
    stage.switch(NOT_NOW | {"next": 1})
    action = stage.office.approved()
    worker = stage.worker("CP8:stop", PLACET_FAULTS_CALL_S="9")
    stage.stops(worker)
    tenant, run = stage.office.tenant.pk, stage.command(action).run_id
    by = voting.person(stage.office.owen.pk)
    said = cancel_run(tenant_id=tenant, run_id=run, reason="not wanted", by=by, clock=db_clock)
    assert said == "cancel_requested"
    stage.pause(0.5)
    worker.go_on()
    stage.ends(worker)
    stage.rest()


def frozen_by_its_order(stage: Stage) -> None:
    """The kill switch is pulled for one record only, while a worker has its command."""
    action = stage.office.approved()
    worker = stage.worker("CP3:stop")
    stage.stops(worker)
    scope = freezing.Scope(stage.office.tenant.pk, target=f"order:{action.arguments['order']}")
    by = voting.person(stage.office.owen.pk)
    hold = freezing.freeze(scope=scope, why="stop", by=by, clock=db_clock)
    assert hold.drained_at is not None
    stage.times["frozen"], stage.hold_id = hold.drained_at, hold.pk
    worker.go_on()
    stage.ends(worker)
    _lift(stage)
    stage.rest()


def circuit_opens_after_the_claim(stage: Stage) -> None:
    """Five calls come to nothing while a worker has a sixth command in hand."""
    from workflows.models import Hold

    last = stage.office.approved()
    worker = stage.worker("CP3:stop")
    stage.stops(worker)
    stage.switch({"fault": "status", "status": 500, "next": 5})
    for _ in range(5):
        stage.office.approved()
    stage.ends(stage.worker())
    stage.until(lambda: Hold.objects.filter(tenant_id=stage.office.tenant.pk, reason="circuit").exists())
    stage.pause(0.5)
    worker.go_on()
    stage.ends(worker)
    assert stage.status(last) != "claimed"
    stage.rest()


def _left_unknown(stage: Stage, *rules: dict[str, Any], amount: str = "") -> Action:
    stage.switch(*rules)
    action = stage.office.approved(amount=amount)
    stage.ends(stage.worker() if rules else stage.worker("CP8:kill"))
    stage.sweep()
    stage.becomes(action, "unknown")
    return action


def _say(stage: Stage, action: Action, reference: str) -> None:
    try:
        say_so(stage.office.tenant.pk, stage.command(action).pk, stage.office.owen.pk, reference)
    except Refused:
        return


def one_person_says_so_twice(stage: Stage) -> None:
    """Two people must say that it happened; one does, and again."""
    action = _left_unknown(stage, amount=MUCH)
    reference = stage.reference_of(action)
    with_defect = stage.fork("attest", **_word(stage, action, reference))
    stage.ends(with_defect)
    stage.ends(stage.fork("attest", **_word(stage, action, reference)))
    stage.rest()


def _word(stage: Stage, action: Action, reference: str) -> dict[str, str]:
    return {
        "tenant": str(stage.office.tenant.pk), "command": str(stage.command(action).pk),
        "user": str(stage.office.owen.pk), "reference": reference,
    }  # fmt: skip


def said_too_early(stage: Stage) -> None:
    """The provider books it late, and somebody who has looked says before that that it did not happen."""
    late = OPERATIONS["faults.blind"].settle_time.total_seconds() * 0.9
    action = _left_unknown(stage, {"fault": "apply_late", "seconds": late, "next": 1})
    stage.ends(stage.fork("attest", **_word(stage, action, "")))
    stage.pause(late)
    stage.rest()


def one_person_with_two_accounts(stage: Stage) -> None:
    """Much money needs two people, and one has said yes under both of their names."""
    action = stage.office.new("one_person", amount=MUCH)
    stage.office.propose(action)
    other = stage.office.another_reviewer("rita-too")
    pair = Membership.objects.filter(tenant=stage.office.tenant, user__in=[stage.office.rita, other])
    assert pair.update(person_id=stage.office.rita.pk) == 2
    for user in (stage.office.rita, other):
        stage.ends(stage.fork(
            "vote", office={"tenant": str(stage.office.tenant.pk)}, proposal_id=str(action.proposal_id),
            user_id=str(user.pk), kind="approve",
        ))  # fmt: skip
    stage.ends(stage.worker())
    stage.rest()


def editor_approves(stage: Stage) -> None:
    """A reviewer changes the amount and says yes to that."""
    office = stage.office
    first = office.new("pending")
    office.propose(first)
    second = office.new("one_person", order=first.arguments["order"], amount="31.31")
    second.arguments["receipt_to"] = first.arguments["receipt_to"]
    by = voting.person(office.owen.pk)
    wish = Edit(first.digest, {"amount": "31.31"})
    made = edit(tenant_id=office.tenant.pk, proposal_id=first.proposal_id, edit=wish, by=by, clock=db_clock)
    second.proposal_id, second.digest = made.pk, made.digest
    stage.ends(stage.fork(
        "vote", office={"tenant": str(office.tenant.pk)}, proposal_id=str(made.pk), user_id=str(office.owen.pk),
        kind="approve",
    ))  # fmt: skip
    stage.ends(stage.worker())
    stage.rest()


# -- what is settled, and by what ------------------------------------------------------------------------------


def lapsed_while_unknown(stage: Stage) -> None:
    """Its time to execute is over, and nobody knows whether it was."""
    action = stage.office.approved(variant="brief")
    stage.ends(stage.worker("CP8:kill"))
    over = stage.command(action).proposal.execute_by
    assert over is not None
    stage.until(lambda: db_clock() > over)
    stage.rest()
    stage.pause(0.5)


def cancelled_while_unknown(stage: Stage) -> None:
    """Somebody wants it to stop, and nobody knows whether it has been done."""
    action = _left_unknown(stage)
    stage.ends(stage.fork(
        "cancel", tenant=str(stage.office.tenant.pk), run=str(stage.command(action).run_id),
        user=str(stage.office.owen.pk),
    ))  # fmt: skip
    stage.rest()


def never_left(stage: Stage) -> None:
    """The worker died before its call, so a look-up finds nothing."""
    stage.office.approved()
    stage.ends(stage.worker("CP5:kill"))
    stage.rest()


def killed_after_the_claim(stage: Stage) -> None:
    """It is taken again, in the lane of what is taken again."""
    stage.office.approved()
    stage.ends(stage.worker("CP3:kill"))
    stage.rest()


def empty_yes(stage: Stage) -> None:
    """200, and nothing that says what was done. Nothing was."""
    stage.switch({"fault": "status", "status": 200, "execute": False, "next": 1})
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


def line_is_cut(stage: Stage) -> None:
    """It happened, and the connection ends before the answer."""
    stage.switch({"fault": "drop_connection", "execute": True, "next": 1})
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


def key_was_spent(stage: Stage) -> None:
    """The provider knows the key, with other parameters; another action waits."""
    stage.switch({"fault": "status", "status": 422, "code": "idempotency_key_reused", "next": 1})
    first = stage.office.approved()
    stage.ends(stage.worker())
    stage.pause(1)  # what is sent in the same instant is no fault, and a quick machine is that quick
    second = stage.office.approved()
    stage.sweep()
    stage.pause(1.5)
    if not stage.planted:
        assert (stage.status(first), stage.status(second)) == ("unknown", "held")
        _look_and_go_on(stage, first)
    stage.rest()


def _look_and_go_on(stage: Stage, action: Action) -> None:
    """A person finds that nothing happened, and lets others through again."""
    from workflows.models import Hold

    hold = Hold.objects.get(tenant_id=stage.office.tenant.pk, reason="circuit")
    tenant, by = stage.office.tenant.pk, voting.person(stage.office.owen.pk)
    stage.until(lambda: _is_said(stage, action))
    freezing.lift(hold_id=hold.pk, tenant_id=tenant, why="looked", by=by, clock=db_clock)


def _is_said(stage: Stage, action: Action) -> bool:
    try:
        say_so(stage.office.tenant.pk, stage.command(action).pk, stage.office.owen.pk, "")
    except Refused:
        return False
    return True


def record_changes_between_tries(stage: Stage) -> None:
    """One and the same process tries twice, and in between the customer is blocked."""
    stage.switch(NOT_NOW | {"next": 1, "retry_after": 3})
    action = stage.office.approved("pinning")
    stage.sweep()
    stage.becomes(action, "retry_wait")
    stage.office.block_customer(action)
    stage.times["record"] = db_clock()
    stage.rest()


def withdrawn_before_the_worker(stage: Stage) -> None:
    """Taken back when no worker has it yet."""
    action = stage.office.approved("withdrawn")
    stage.ends(stage.fork(
        "withdraw", tenant=str(stage.office.tenant.pk), proposal=str(action.proposal_id),
    ))  # fmt: skip
    stage.ends(stage.worker())
    stage.rest()


def reviewer_lost_the_role(stage: Stage) -> None:
    """The one who approved is still there, and no reviewer any more."""
    action = stage.office.new()
    stage.office.propose(action)
    reviewer = stage.office.another_reviewer("moved")
    stage.office.vote(action, reviewer)
    by = voting.person(stage.office.owen.pk)
    set_roles(tenant=stage.office.tenant, user=reviewer, roles=[Role.OPERATOR], by=by, clock=db_clock)
    stage.ends(stage.worker())
    stage.rest()


I3, I12, I14, I21 = "I3 NO-LOST-APPROVAL", "I12 QUORUM", "I14 BINDING", "I21 AUDIT-ATOMIC"
I29, TRIES = "I29 OPERATOR", "TRIES SO-MANY-AND-NO-SOONER"
FREEZE = "FREEZE NOTHING-SENT-WHILE-FROZEN"

FURTHER = [
    Scenario(plain, shows=(
        ("voids_what_is_fine", I3), ("end_is_kept_to_itself", I3), ("history_of_another_digest", I14),
        ("history_written_apart", I21),
    )),
    Scenario(plain, together=True, shows=(("history_written_apart", I21),)),
    Scenario(no_answer, kind="blind", shows=(("nobody_is_asked", I3),)),
    Scenario(throttled_once, shows=(("never_tried_again", I3), ("due_time_ignored", TRIES))),
    Scenario(throttled_without_end, shows=(("one_try_too_many", TRIES),)),
    Scenario(key_is_forgotten, kind="dedup", shows=(("sent_again_with_a_forgotten_key", I6),)),
    Scenario(slow_answer, shows=(("lease_over_at_once", I8),)),
    Scenario(lapsed_before_a_wrong_clock, shows=(("clock_of_the_machine", I13),)),
    Scenario(lapsed_before_a_wrong_clock, together=True, shows=(("clock_of_the_machine", I13),)),
    Scenario(several, together=True, shows=(("answers_mixed_up", I5),)),
    Scenario(one_is_deadly, together=True, shows=(("taken_together_again", "I18 QUEUE-LIVENESS"),)),
    Scenario(newer_first, shows=(("older_over_newer", "ORDER NEWER-IS-NOT-OVERWRITTEN"),)),
    Scenario(beside_another_tenant, shows=(("credential_of_another_tenant", "I24 TENANT-ISOLATION"),)),
    Scenario(cancelled_during_the_call, shows=(
        ("wish_to_cancel_forgotten", "CANCEL NOTHING-SENT-AFTER-A-WISH-TO-STOP"),
    )),
    Scenario(frozen_by_its_order, shows=(("freeze_of_one_record_ignored", FREEZE),)),
    Scenario(frozen_by_its_order, together=True, shows=(("freeze_of_one_record_ignored", FREEZE),)),
    Scenario(circuit_opens_after_the_claim, shows=(("open_circuit_ignored", FREEZE),)),
    Scenario(one_person_says_so_twice, kind="blind", shows=(
        ("one_word_is_enough", I29), ("words_counted_not_people", I29),
    )),
    Scenario(said_too_early, kind="blind", shows=(
        ("no_settle_time_for_people", I29), ("no_settle_time_for_people", I1),
    )),
    Scenario(one_person_with_two_accounts, shows=(("accounts_counted_not_people", I12),)),
    Scenario(editor_approves, shows=(("own_version_approved", I12),)),
    Scenario(lapsed_while_unknown, kind="blind", shows=(("unknown_lapses", I5),)),
    Scenario(cancelled_while_unknown, kind="blind", shows=(("unknown_is_cancelled", I5),)),
    Scenario(never_left, shows=(("look_up_believes_anything", I5),)),
    Scenario(killed_after_the_claim, shows=(("second_lane_forgotten", I3),)),
    Scenario(empty_yes, shows=(("empty_yes_is_believed", I5),)),
    Scenario(line_is_cut, shows=(("library_tries_again", I4), ("library_tries_again", I1))),
    Scenario(key_was_spent, shows=(
        ("reused_key_means_refused", "I7 KEY-STABILITY"), ("reused_key_alarms_nobody", "I7 KEY-STABILITY"),
    )),
    Scenario(record_changes_between_tries, shows=(("looked_at_once_for_all_tries", "PIN RECORD-AS-SEEN"),)),
    Scenario(withdrawn_before_the_worker, shows=(("command_outlives_its_proposal", I3),)),
    Scenario(reviewer_lost_the_role, shows=(("role_not_asked_for_again", "I16 REVOCATION"),)),
    Scenario(reviewer_lost_the_role, together=True, shows=(("role_not_asked_for_again", "I16 REVOCATION"),)),
]  # fmt: skip
