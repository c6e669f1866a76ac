"""States and words of durable runs."""

from enum import nonmember

from django.db.models import TextChoices


class RunStatus(TextChoices):
    """One pure function of a run's steps and commands (`workflows.status.run_status`)."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    WAITING_FOR_DATA = "waiting_for_data", "Waiting for data"
    WAITING_FOR_APPROVAL = "waiting_for_approval", "Waiting for approval"
    WAITING_FOR_PROVIDER = "waiting_for_provider", "Waiting for provider"
    WAITING_FOR_RETRY = "waiting_for_retry", "Waiting for retry"
    WAITING_FOR_CHILDREN = "waiting_for_children", "Waiting for children"
    EXECUTING = "executing", "Executing"
    DEGRADED = "degraded", "Degraded"
    UNKNOWN = "unknown", "Outcome unknown"
    MANUAL_REPAIR = "manual_repair", "In repair"
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"

    final_states = nonmember(("completed", "failed", "cancelled"))
    # All others wait for something, and so carry until when and what happens then.
    unclocked_states = nonmember(("queued", "running", "completed", "failed", "cancelled"))


class RunKind(TextChoices):
    ORIGINAL = "original", "Original"
    REPLAY = "replay", "Replay"
    UNDO = "undo", "Compensation"
    REST = "rest", "Remainder"

    # What people propose after an effect: runs of one step each, that share keys and counts with the first run.
    follow_ups = nonmember(("undo", "rest"))


class StepStatus(TextChoices):
    """The *logical* action of a run."""

    PENDING = "pending", "Not started"
    RUNNING = "running", "Running"
    WAITING = "waiting", "Waiting"
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    SKIPPED = "skipped", "Skipped"
    CANCELLED = "cancelled", "Cancelled"

    final_states = nonmember(("completed", "failed", "skipped", "cancelled"))


class WaitingFor(TextChoices):
    """What a waiting step waits for."""

    DATA = "data", "data"
    APPROVAL = "approval", "approval"
    PROVIDER = "provider", "a provider"
    RETRY = "retry", "the next try"
    CHILDREN = "children", "child runs"
    PERSON = "person", "a person"


class StepKind(TextChoices):
    READ_ONLY = "read_only", "Reads"
    MODEL = "model", "Judges"
    SIDE_EFFECT = "side_effect", "Acts"


class OnExpiry(TextChoices):
    """What happens when a wait is over. Never approval."""

    MANUAL_QUEUE = "manual_queue", "A person looks at it"
    ESCALATE = "escalate", "It is escalated"
    FAIL = "fail", "It fails"
    CANCEL = "cancel", "It is cancelled"


class CommandStatus(TextChoices):
    """The durable outbox of one approved proposal."""

    READY = "ready", "Ready"
    CLAIMED = "claimed", "Claimed"
    SENT = "sent", "Sent"
    RETRY_WAIT = "retry_wait", "Waiting to retry"
    HELD = "held", "Held"
    UNKNOWN = "unknown", "Outcome unknown"
    CONFIRMED = "confirmed", "Confirmed"
    REFUSED = "refused", "Refused by the provider"
    DEAD = "dead", "Given up"
    CANCELLED = "cancelled", "Cancelled"
    VOID = "void", "Void"

    live_states = nonmember(("ready", "claimed", "sent", "retry_wait", "held", "unknown"))
    # Nothing was sent, or it is settled that nothing happened: these may still be stopped.
    stoppable_states = nonmember(("ready", "claimed", "retry_wait", "held"))
    in_flight_states = nonmember(("sent", "unknown"))
    final_states = nonmember(("confirmed", "refused", "dead", "cancelled", "void"))
    # The business key and the idempotency key belong to one command while it is in these.
    key_holding_states = nonmember(("ready", "claimed", "sent", "retry_wait", "held", "unknown", "confirmed"))


class Effect(TextChoices):
    NONE = "none", "Nothing happened"
    HAPPENED = "happened", "It happened"
    PARTIAL = "partial", "It happened in part"
    UNKNOWN = "unknown", "Not known"


class HoldReason(TextChoices):
    FREEZE = "freeze", "Frozen"
    CIRCUIT = "circuit", "Provider in trouble"
    ORDER = "order", "Another action on the same target first"


class HoldStatus(TextChoices):
    """A freeze or an open circuit. While it is in force or on trial, nothing within its scope is newly sent."""

    IN_FORCE = "in_force", "In force"
    TRIAL = "trial", "One call is tried"
    LIFTING = "lifting", "Being lifted, one by one"
    LIFTED = "lifted", "Lifted"

    holding_states = nonmember(("in_force", "trial"))


class Testimony(TextChoices):
    """What a person says about an outcome that nobody else can settle."""

    HAPPENED = "happened", "It happened"
    PARTIAL = "partial", "It happened in part"
    DID_NOT_HAPPEN = "did_not_happen", "It did not happen"


class VoidReason(TextChoices):
    """Why a command ended without being sent."""

    LAPSED = "lapsed", "The time to execute had passed"
    POLICY = "policy", "The policy changed"
    PIN = "pin", "The record changed after approval"
    REVIEWER = "reviewer", "An approver lost the right to approve"
    WITHDRAWN = "withdrawn", "The proposal was withdrawn"
    SUPERSEDED = "superseded", "A newer version took its place"
    DIGEST = "digest", "The stored contract is not what was approved"
    SIGNATURE = "signature", "An approval lacks the signature of a passkey"


class SettledBy(TextChoices):
    """Who or what established how a command ended."""

    ANSWER = "answer", "The provider's answer"
    LATE_ANSWER = "late_answer", "A late answer"
    LOOKUP = "lookup", "A look-up at the provider"
    RESEND = "resend", "A second send with the same key"
    PERSON = "person", "A person"
    CHECK = "check", "A check before sending"
    EARLIER_EFFECT = "earlier_effect", "An earlier effect with the same business key"


class AttemptStatus(TextChoices):
    """The *physical* try."""

    CLAIMED = "claimed", "Claimed"
    SENT = "sent", "Sent"
    ANSWERED = "answered", "Answered"
    NO_ANSWER = "no_answer", "No answer"
    RELEASED = "released", "Released"


class Lane(TextChoices):
    """Separate queues, so that reprocessing never starves new work."""

    NEW = "new", "New work"
    REPROCESS = "reprocess", "Reprocessed work"
    RECONCILE = "reconcile", "Reconciliation"


class NextAction(TextChoices):
    """The one thing a caller should do next."""

    WAIT = "wait"
    PROVIDE_DATA = "provide_data"
    FETCH_RESULT = "fetch_result"
    SUBMIT_NEW = "submit_new"
    STOP = "stop"


class CallStatus(TextChoices):
    """Of a callback: one state of a run that its requester is to hear of. What was given up may be sent again."""

    PENDING = "pending", "Waiting"
    DELIVERED = "delivered", "Delivered"
    SUPERSEDED = "superseded", "A newer state is told instead"
    DEAD = "dead", "Given up"

    final_states = nonmember(("delivered", "superseded", "dead"))
