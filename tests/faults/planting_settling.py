"""Planted defects: what is settled too early, for no reason or for somebody else; pauses and caps that nobody keeps."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from types import SimpleNamespace
from typing import Any

from common.tx import action
from tests.faults.planting import always, everywhere, patch, plants

W = "workflows.worker"


@plants
def voids_what_is_fine() -> None:
    """Everything that is about to be sent is called void."""
    from workflows.enums import VoidReason
    from workflows.settling import Move, Settlement

    patch(f"{W}.send.before_send", always(Settlement(Move.VOID, void_reason=VoidReason.REVIEWER)))


@plants
def end_is_kept_to_itself() -> None:
    """A command ends, and its proposal, step and run never hear of it."""
    patch(f"{W}.store.conclude", always(value=None))


@plants
def history_of_another_digest() -> None:
    """Events name something else than what was approved."""

    def make(event: Any) -> Any:
        def wrong(*args: Any, **fields: Any) -> Any:
            return replace(event(*args, **fields), digest="sha256:" + "0" * 64)

        return wrong

    everywhere("command_event", ("workflows.actions.decided", f"{W}.batch.store", f"{W}.batch.send"), make)


@plants
def history_written_apart() -> None:
    """Events are written when the change has been committed, in a transaction of their own."""
    from django.db import transaction

    def make(record_many: Any) -> Any:
        return lambda entries: transaction.on_commit(lambda: action(record_many)(entries))

    everywhere("record_many", ("workflows.actions.decided", f"{W}.batch.store"), make)


@plants
def nobody_is_asked() -> None:
    """What nobody can find out is called unknown, and no packet says so."""
    everywhere("report_unknown", (f"{W}.store", f"{W}.send"), always(value=None))


@plants
def never_tried_again() -> None:
    """*Not now* is taken for *never*."""
    patch(f"{W}.store.tries_left", always(value=False))


@plants
def one_try_too_many() -> None:
    """The cap on tries is compared with one less."""
    everywhere(
        "tries_left", (f"{W}.checks", f"{W}.store", f"{W}.reconcile"),
        lambda _: lambda held: held.command.tries <= held.operation.max_tries,
    )  # fmt: skip


@plants
def due_time_ignored() -> None:
    """What waits for its next try is taken at once."""
    patch(f"{W}.claim._CLAIMABLE", lambda sql: sql.replace("c.due_at <= clock_timestamp()", "true"))


@plants
def sent_again_with_a_forgotten_key() -> None:
    """How long the provider remembers a key is not looked at."""

    def make(may_send_again: Any) -> Any:
        return lambda command, **facts: may_send_again(
            command, **facts | {"key_retention": timedelta(days=1)}
        )

    patch(f"{W}.again.may_send_again", make)


@plants
def lease_over_at_once() -> None:
    """The call's lease ends when it begins."""
    from workflows.models import Command

    send = Command.send

    @wraps(send)
    def wrong(self: Command, *, at: datetime, lease_until: datetime) -> None:
        send(self, at=at, lease_until=at)

    Command.send = wrong  # type: ignore[method-assign]


@plants
def clock_of_the_machine() -> None:
    """Workers ask their own machine what time it is."""
    from workflows.worker import loop

    loop.work.__kwdefaults__["clock"] = lambda: datetime.fromtimestamp(time.time(), UTC)


@plants
def answers_mixed_up() -> None:
    """Of several answers each is stored with another one's command."""

    def make(store: Any) -> Any:
        def wrong(answers: Any, **others: Any) -> Any:
            seen = [answer.seen for answer in answers]
            turned = zip(answers, [*seen[1:], *seen[:1]], strict=True)
            return store([replace(answer, seen=other) for answer, other in turned], **others)

        return wrong

    patch(f"{W}.batch.round.store_together", make)


@plants
def taken_together_again() -> None:
    """What was lost with its worker is taken again with all the others."""
    from workflows.enums import Lane

    patch(f"{W}.recover.Lane", lambda _: type("Lanes", (), {"REPROCESS": Lane.NEW}))


@plants
def older_over_newer() -> None:
    """Nobody asks whether something newer was done to the record."""
    patch(f"{W}.send._is_overtaken", always(value=False))
    patch(f"{W}.batch.rows.with_others_in_the_way", always(value=set()))


@plants
def credential_of_another_tenant() -> None:
    """The connector of the first tenant that was served is kept for all."""

    def make(provider_for: Any) -> Any:
        def wrong(site: Any) -> Any:
            from examples.refunds.site import _keys

            other = next(tenant for tenant in _keys() if tenant != site.tenant)
            return provider_for(replace(site, tenant=other))

        return wrong

    patch("tests.faults.flows.provider_for", make)


@plants
def wish_to_cancel_forgotten() -> None:
    """That somebody wants the run to stop is not looked at when the answer comes."""

    def make(after: Any) -> Any:
        return lambda command, **facts: after(command, **facts | {"cancel_wished": False})

    everywhere("after_nothing_happened", ("workflows.settling", f"{W}.store", f"{W}.reconcile"), make)


@plants
def freeze_of_one_record_ignored() -> None:
    """Only a freeze of everything counts."""
    patch(
        "workflows.scope.matches", lambda matches: lambda hold, *row: not hold.target and matches(hold, *row)
    )


@plants
def open_circuit_ignored() -> None:
    """A worker that has its command already sends it to a provider in trouble."""
    patch(
        "workflows.scope.matches",
        lambda matches: lambda hold, *row: hold.reason != "circuit" and matches(hold, *row),
    )


@plants
def one_word_is_enough() -> None:
    """From the limit on too, one person settles what nobody else can."""
    patch("workflows.actions.attesting.people_needed", always(value=1))


@plants
def words_counted_not_people() -> None:
    """The same person's second word counts as another one's."""

    def make(standings: Any) -> Any:
        return lambda *args, **others: _Anybody(standings(*args, **others))

    patch("workflows.actions.attesting.standings", make)
    patch(
        "workflows.actions.attesting.counting", lambda _: lambda words, *_: [_Other(word) for word in words]
    )


class _Other:
    """A word that seems to be somebody else's."""

    def __init__(self, word: Any) -> None:
        self.says, self.reference, self.user_id = word.says, word.reference, word.pk


class _Anybody(dict[Any, Any]):
    """Knows everybody it is asked for."""

    def __missing__(self, key: Any) -> Any:
        return SimpleNamespace(person=key)


@plants
def no_settle_time_for_people() -> None:
    """A person's *no* counts at once, while the request may still be on its way."""
    patch("workflows.actions.attesting.settles_at", lambda _: lambda held: held.command.last_sent_at)


@plants
def accounts_counted_not_people() -> None:
    """Whoever has two accounts counts twice."""

    def make(standing: Any) -> Any:
        return lambda user, *row: replace(standing(user, *row), accounts=frozenset({user}))

    patch("access.selectors._standing", make)


@plants
def own_version_approved() -> None:
    """Nobody asks whose version it is."""
    everywhere("is_own", ("approvals.policies",), always(value=False))
    patch("approvals.policies._approvals", lambda _: _all_approvals)


def _all_approvals(proposal: Any, votes: Any) -> list[Any]:
    return [vote for vote in votes if vote.kind == "approve" and vote.digest == proposal.digest]


@plants
def unknown_lapses() -> None:
    """What nobody knows is called lapsed when its time to execute is over."""
    from workflows.enums import VoidReason
    from workflows.settling import Move, Settlement
    from workflows.worker import recover
    from workflows.worker.held import hold, make_move

    def void(tenant_id: Any, proposal_id: Any, *, by: Any, clock: Any) -> bool:
        held = hold(tenant_id, proposal_id, by=by, clock=clock)
        assert held is not None
        make_move(held, Settlement(Move.VOID, void_reason=VoidReason.LAPSED), due_at=held.now)
        return True

    recover._LAPSED = recover._LAPSED.replace("'held')", "'held', 'unknown')")
    patch(f"{W}.recover._void_lapsed", lambda _: action(void))


@plants
def unknown_is_cancelled() -> None:
    """Only what is being sent right now counts as on its way."""
    from workflows.enums import CommandStatus

    CommandStatus.in_flight_states = ("sent",)


@plants
def look_up_believes_anything() -> None:
    """Any answer to a look-up is taken for *yes*."""
    from workflows.settling import Move

    patch(f"{W}.reconcile.after_lookup", lambda _: lambda finding, *, settled: Move.CONFIRM)


@plants
def second_lane_forgotten() -> None:
    """What a worker was lost with is put into a lane where nobody works."""
    from workflows.worker.due import Due

    patch("workflows.sweep.what_is_due", lambda _: Due.nothing)


@plants
def empty_yes_is_believed() -> None:
    """A 2xx without the provider's reference counts as done."""
    from workflows.classify import Meaning

    def make(classify: Any) -> Any:
        def wrong(seen: Any, table: Any) -> Any:
            return Meaning.CONFIRMED if seen.status and seen.status // 100 == 2 else classify(seen, table)

        return wrong

    everywhere("classify", (f"{W}.store", f"{W}.batch.store"), make)


@plants
def library_tries_again() -> None:
    """The HTTP library repeats by itself what got no answer."""
    from common.outgoing import Answer

    def make(issue: Any) -> Any:
        def wrong(*args: Any, **others: Any) -> Any:
            outcome = issue(*args, **others)
            return outcome if isinstance(outcome, Answer) else issue(*args, **others)

        return wrong

    patch("examples.refunds.client.issue_refund", make)


@plants
def reused_key_means_refused() -> None:
    """*This key came with other parameters* is one more refusal."""
    from workflows.classify import Meaning

    def make(classify: Any) -> Any:
        def wrong(seen: Any, table: Any) -> Any:
            found = classify(seen, table)
            return Meaning.REFUSED if found is Meaning.KEY_REUSED else found

        return wrong

    patch(f"{W}.store.classify", make)


@plants
def reused_key_alarms_nobody() -> None:
    """The one command is unknown, and all others go on."""
    patch(f"{W}.store.freeze_connector", always(value=None))


@plants
def looked_at_once_for_all_tries() -> None:
    """What was read for the first try is kept for the next ones."""
    kept: dict[Any, Any] = {}

    def make(look: Any) -> Any:
        return lambda claim, command: kept.setdefault(claim.command_id, look(claim, command))

    everywhere("look", (f"{W}.send", f"{W}.loop", f"{W}.batch.calls"), make)


@plants
def command_outlives_its_proposal() -> None:
    """What is withdrawn leaves its command behind."""
    patch("workflows.actions.decided._stop_command", always(value=None))


@plants
def role_not_asked_for_again() -> None:
    """That somebody is still there is enough, whatever they are now."""
    patch("approvals.policies._holds_place", always(value=True))
