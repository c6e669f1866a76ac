"""What may have happened, and how each possibility is told from the others: a pure function of the state.

Nothing here reads a row. Each line is something to do or to look at, never a guess: who follows them knows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from workflows.enums import CommandStatus, Effect

C = CommandStatus


@dataclass(frozen=True, slots=True)
class State:
    """All that the possibilities depend on. Instants are texts in UTC, empty where there is none."""

    cause: str
    status: str = ""
    """Of the command; empty where there is none."""
    effect: str = ""
    tries: int = 0
    resent: bool = False
    restored: bool = False
    code: str = ""
    target: str = ""
    key: str = ""
    looked_up: str = ""
    """The newest finding of a look-up."""
    can_look_up: bool = True
    late_answer: str = ""
    """What a late answer means, where one came."""
    settled_from: str = ""
    """From then on *not found* counts, and no late effect is expected."""
    is_settled: bool = False
    pins_differ: bool = False


@dataclass(frozen=True, slots=True)
class Possibility:
    """``certain``: this is what happened, and the others are shut out."""

    code: str
    what: str
    tell_by: str
    certain: bool = False


def possibilities(state: State) -> list[Possibility]:
    """The table of a packet; for what is certain, the one line that says so comes first."""
    if state.cause == "late_effect":
        return _late_effect(state)
    if state.effect == Effect.UNKNOWN:
        return _in_doubt(state)
    rows = [_ended(state)] if state.status else []
    build = _OF_CAUSE.get(state.cause)
    return [*rows, *(build(state) if build else _elsewhere(state))]


# -- an outcome that nobody knows -----------------------------------------------------------------------------------


def _in_doubt(state: State) -> list[Possibility]:
    rows = [
        Possibility(
            "happened_unheard", "The provider carried it out, and its answer did not reach us.",
            f"In the provider's own list stands an entry under the key {state.key}, with the approved values. "
            + _look_up_words(state),
        ),
        Possibility(
            "never_arrived", "The request did not reach the provider, or was dropped there.",
            f"No entry under the key {state.key}{_not_before(state)}, and none for {state.target} at that time.",
        ),
        Possibility(
            "refused_unheard", "The provider refused it, and the refusal did not reach us.",
            "The provider's log of requests has a refusal under that key, and its list has no entry.",
        ),
        Possibility(
            "otherwise", "It was carried out in part, or with other values.",
            "Compare amount, recipient and record of the provider's entry with the proposed action, one by one.",
        ),
    ]  # fmt: skip
    if not state.is_settled:
        rows.append(Possibility(
            "still_to_come", "It was accepted and is carried out later.",
            f"Wait until {state.settled_from or 'the provider has settled'}; then look again. Until then it proves "
            "nothing that it is not there.",
        ))  # fmt: skip
    return [*_of_code(state), *rows]


def _of_code(state: State) -> list[Possibility]:
    rows = []
    if state.tries > 1 or state.resent:
        rows.append(Possibility(
            "twice", "More than one of the requests took effect.",
            f"Count the provider's entries for {state.target} since the first request. More than one of ours is "
            "harm already: tell the owner.",
        ))  # fmt: skip
    if state.code == "key_reused" or state.cause == "command_key_reused":
        rows.append(Possibility(
            "another_under_key", "Another action stands under this key at the provider.",
            "Its entry under the key has other values than the proposed action. The key was not ours alone: keep "
            "the provider frozen until it is known why.",
        ))  # fmt: skip
    if state.restored:
        rows.append(Possibility(
            "after_backup", "It was carried out after the backup that was restored.",
            "The provider's entry is younger than the backup. Its time tells.",
        ))  # fmt: skip
    return rows


def _look_up_words(state: State) -> str:
    if not state.can_look_up:
        return "It has no look-up for programs: ask its people, or look at its page."
    return {
        "happened": "A look-up has found it.",
        "not_found": "A look-up found nothing yet.",
        "no_answer": "The look-up told nothing so far.",
    }.get(state.looked_up, "It has not been looked up yet.")


def _not_before(state: State) -> str:
    return f", looked for after {state.settled_from}" if state.settled_from else ""


def _late_effect(state: State) -> list[Possibility]:
    return [
        Possibility(
            "two_effects", "It happened twice: once as it was settled, and once by the late answer.",
            f"The provider has two entries for {state.target} with different references.",
        ),
        Possibility(
            "one_effect", "It happened once, and was settled as something else before that was known.",
            "The provider has one entry, the one that the late answer names.",
        ),
        Possibility(
            "undone", "It happened and was taken back at the provider since.",
            "The provider's entry is marked as reversed or cancelled.",
        ),
    ]  # fmt: skip


# -- what has ended, or never began ---------------------------------------------------------------------------------


def _ended(state: State) -> Possibility:
    if state.effect in (Effect.HAPPENED, Effect.PARTIAL):
        how = "in part" if state.effect == Effect.PARTIAL else "once"
        return Possibility("happened", f"It happened, {how}.", "The order is confirmed.", certain=True)
    if state.status == C.HELD:
        return Possibility("held", "Nothing was sent: it is held back.", "The order is held.", certain=True)
    sent = "It was sent, and it is settled that nothing happened." if state.tries else "Nothing was sent."
    return Possibility("nothing", sent, "The order and its attempts say so.", certain=True)


def _record_changed(state: State) -> list[Possibility]:
    return [
        Possibility(
            "changed_elsewhere", "Somebody, or another automation, changed the record.",
            "The record's version then and now differ; its history at the provider names who.",
        ),
        Possibility(
            "done_elsewhere", "The very thing was done another way.",
            f"The provider has an entry for {state.target} with these values under another key.",
        ),
        Possibility(
            "only_touched", "The record was touched without a change that matters here.",
            "Compare the fields that the reviewer saw. If they are the same, ask again.",
        ),
    ]  # fmt: skip


def _refused(state: State) -> list[Possibility]:
    return [
        Possibility(
            "invalid_now", "The provider's rules do not allow it as things stand.",
            f"Its code, “{state.code or 'none'}”, in the provider's manual; look at the record there.",
        ),
        Possibility(
            "changed_since", "The record changed between approval and request.",
            "Compare the record with what the reviewer saw.",
        ),
        Possibility(
            "ours_wrong", "Our request is wrong for every case of this kind.",
            "Other packets with this cause and operation carry the same code: see the similar ones.",
        ),
    ]  # fmt: skip


def _dead(state: State) -> list[Possibility]:
    """Given up for one of several reasons, which the code names."""
    builds = {"earlier_effect": _earlier, "credential_refused": _credential, "quarantined": _worker}
    return builds.get(state.code, _gave_up)(state)


def _gave_up(state: State) -> list[Possibility]:
    return [
        Possibility(
            "down", "The provider was away for as long as we may try.",
            "Other orders to it ended alike at that time; its status page; an open circuit under Freezes.",
        ),
        Possibility(
            "credential", "Our credential was refused.",
            "The last attempt's answer is 401 or 403. Renew it, then ask again.",
        ),
        Possibility(
            "unreachable", "It cannot be reached from here: name, network, certificate.",
            "The attempts end before anything was sent; `./placet doctor` on the worker's host.",
        ),
    ]  # fmt: skip


def _lapsed(state: State) -> list[Possibility]:
    return [
        Possibility(
            "held_too_long", "It was held, or waited its turn, past its time.",
            "Its history shows *held*, or an earlier order on the same record that was in doubt.",
        ),
        Possibility(
            "no_worker", "No worker took it in time.",
            "There is no attempt; `./placet doctor` says whether workers live and know this operation.",
        ),
    ]  # fmt: skip


def _bound(state: State) -> list[Possibility]:
    return [
        Possibility(
            "restored_or_edited", "Stored bytes were changed: by hand, by a restored backup, by a defect.",
            "`./placet verify_audit` for the history; who has access to the database. Treat it as an incident.",
        ),
        Possibility(
            "erased", "Its content was erased.",
            "The run's history has *content erased*.",
        ),
    ]  # fmt: skip


def _unsigned(state: State) -> list[Possibility]:
    return [Possibility(
        "approval_invented", "An approval was put into the database by hand, without its person's passkey.",
        "Ask whoever is named as approver; `./placet verify_audit`; who has access to the database: an incident.",
    )]  # fmt: skip


def _policy(state: State) -> list[Possibility]:
    return [Possibility(
        "policy_raised", "A newer version of the policy was installed after the approval.",
        "The policy's version in the approval and the installed one differ. Under the new one it is judged anew.",
    )]  # fmt: skip


def _undecided(state: State) -> list[Possibility]:
    return [
        Possibility("unseen", "Nobody of those who were asked has looked.", "There is no vote and no question."),
        Possibility(
            "half", "Some approved, and a second person was missing.",
            "There are fewer votes than needed.",
        ),
        Possibility(
            "unmanned", "Too few people could have decided.",
            "The proposal's history has *unmanned*: absences, hours, the group's members.",
        ),
    ]  # fmt: skip


def _unmanned(state: State) -> list[Possibility]:
    return [
        Possibility("empty", "The group has no member with the role.", "The group's page, under People."),
        Possibility("away", "All of them are away or off hours until it expires.", "People, Absences and Hours."),
        Possibility(
            "own_side", "Whoever is left stands on the side that asks.",
            "The proposal excludes who asked, who answers for the workflow, and who wrote the policy.",
        ),
    ]  # fmt: skip


def _no_data(state: State) -> list[Possibility]:
    return [
        Possibility(
            "not_told", "The requester never got the question.",
            "The run's callbacks: given up, or none registered.",
        ),
        Possibility("not_answered", "They got it and did not answer.", "The callback was delivered."),
        Possibility(
            "refused_answer", "They answered, and the answer was refused.",
            "The requester's side got 409 or 422; the run's history has no *data supplied*.",
        ),
    ]  # fmt: skip


def _stage(state: State) -> list[Possibility]:
    return [
        Possibility(
            "odd_case", "This one case has something that the stage does not expect.",
            "Other runs of the workflow pass the same step; what was kept shows the oddity.",
        ),
        Possibility(
            "broken_stage", "The stage is broken for every case.",
            "All runs stop there since one time: since a release, or since the source changed.",
        ),
        Possibility(
            "source", "A source it reads is away, or answers otherwise than it did.",
            "Ask the source for the same record; other workflows that read it stop too.",
        ),
    ]  # fmt: skip


def _credential(state: State) -> list[Possibility]:
    return [
        Possibility("revoked", "The credential was revoked or has run out.", "The source's own list of keys."),
        Possibility(
            "not_theirs", "The credential is good, and not for this record.",
            "Other cases of this tenant still read the source.",
        ),
    ]  # fmt: skip


def _source(state: State) -> list[Possibility]:
    return [
        Possibility("down", "The source is away.", "Its status page; other runs stop at the same step."),
        Possibility("throttled", "It asks us to come back later, for longer than we may wait.", "Its rate limits."),
        Possibility("unreachable", "It cannot be reached from here.", "`./placet doctor` on the worker's host."),
    ]  # fmt: skip


def _worker(state: State) -> list[Possibility]:
    return [
        Possibility(
            "too_big", "The case needs more memory or time than a worker has.",
            "The worker's log ends without a word each time; the size of the input.",
        ),
        Possibility(
            "hosts", "Workers were stopped at that time for another reason.",
            "Other runs lost their workers then too; deploys and restarts of the host.",
        ),
    ]  # fmt: skip


def _stalled(state: State) -> list[Possibility]:
    return [
        Possibility(
            "no_worker", "No worker is there that knows what is to be done.",
            "`./placet doctor`; the version of the workflow or operation, and what the workers have.",
        ),
        Possibility(
            "behind", "It waits behind something else: the same record, a full lane, a provider's limit.",
            "Other orders on the record; the queue's length on /metrics.",
        ),
        Possibility(
            "clock", "Nobody looks: the sweep does not run.",
            "`./placet doctor` names the sweep's last sign of life.",
        ),
    ]  # fmt: skip


def _earlier(state: State) -> list[Possibility]:
    return [
        Possibility(
            "already", "The same thing was done before, by us or elsewhere.",
            f"The provider's entries for {state.target} with the same values.",
        ),
        Possibility(
            "two_wishes", "Two different wishes look alike.",
            "The requester really wants it a second time: say so in a new request.",
        ),
    ]  # fmt: skip


def _judgement(state: State) -> list[Possibility]:
    return [Possibility(
        "unsure", "The automation was not sure enough, or a reviewer wants it otherwise.",
        "Read the case itself; what was judged is kept at the step.",
    )]  # fmt: skip


def _elsewhere(state: State) -> list[Possibility]:
    return [Possibility(
        "foreseen", "A case that the workflow foresees and gives to people.",
        "The workflow's runbook, and the table of exceptions in its contract.",
    )]  # fmt: skip


_OF_CAUSE: Final[dict[str, Callable[[State], list[Possibility]]]] = {
    "already_done": _earlier, "approval_expired": _undecided, "approval_lost": _stalled, "action_in_progress": _earlier,
    "changes_requested": _judgement, "command_dead": _dead, "command_digest": _bound,
    "command_signature": _unsigned,
    "command_earlier_effect": _earlier, "command_lapsed": _lapsed, "command_pin": _record_changed,
    "command_policy": _policy, "command_refused": _refused, "credential_refused": _credential,
    "data_not_supplied": _no_data, "low_confidence": _judgement, "nobody_eligible": _unmanned,
    "nobody_looked": _stalled, "proposal_invalidated": _record_changed, "provider_down": _dead,
    "quarantined": _worker, "rate_limited": _source, "record_gone": _record_changed, "restored": _earlier,
    "retries_exhausted": _source, "source_down": _source, "stage_broke": _stage, "stage_gone": _stage,
    "stalled": _stalled, "turn_never_came": _stalled,
}  # fmt: skip
