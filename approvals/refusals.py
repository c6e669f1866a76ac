"""Why a decision is refused: each a normal answer with its own code and sentence (design, section 8)."""

from uuid import UUID

from common.errors import InvalidInput, Refused


class DecisionRefused(Refused):
    """This decision cannot be recorded."""

    code = "decision_refused"


class DigestMismatch(DecisionRefused):
    """The action is not the one that you were shown. Open the page again and look at what stands there now."""

    code = "digest_mismatch"


class ViewMismatch(DecisionRefused):
    """The page is not the one that belongs to this action. Open it again and look at what stands there now."""

    code = "view_mismatch"


class AlreadyDecided(DecisionRefused):
    """Somebody has decided this already."""

    code = "already_decided"


class Expired(DecisionRefused):
    """The time to decide is over. Nothing was recorded, and nobody counts as having approved."""

    code = "expired"


class Superseded(DecisionRefused):
    """A newer version has taken the place of this proposal."""

    code = "superseded"


class Withdrawn(DecisionRefused):
    """The proposal was withdrawn."""

    code = "withdrawn"


class Invalidated(DecisionRefused):
    """The proposal is no longer valid: something that it rests on has changed."""

    code = "invalidated"


class ActionInProgress(DecisionRefused):
    """The same thing is already being done by another command. This proposal stays pending."""

    code = "action_in_progress"

    def __init__(self, *, command_id: UUID) -> None:
        super().__init__(command_id=str(command_id))


class NotEligible(DecisionRefused):
    """You may not decide this: it is asked of other people."""

    code = "not_eligible"
    http_status = 403


class OwnProposal(DecisionRefused):
    """Nobody decides on their own proposal, nor on one that was made on their behalf."""

    code = "own_proposal"
    http_status = 403


class AuthorOfVersion(OwnProposal):
    """You edited this version, so others decide on it. You may edit it once more."""

    code = "author_of_version"


class TokenCannotDecide(DecisionRefused):
    """Only a signed-in person decides. A token never does, whatever its scopes."""

    code = "token_cannot_decide"
    http_status = 403


class ReauthRequired(DecisionRefused):
    """This action is of high risk. Confirm that it is you first; that counts for this action alone, once."""

    code = "reauth_required"
    http_status = 403


class SignatureRequired(DecisionRefused):
    """Your passkey must sign this approval. Approve it on its page, in a browser that knows your passkey."""

    code = "signature_required"
    http_status = 403


class PasskeyMissing(DecisionRefused):
    """Your passkey must sign this approval, and you have none. Add one to your account first."""

    code = "passkey_missing"
    http_status = 403


class SignatureOver(DecisionRefused):
    """This signature was used before, or was asked for more than five minutes ago. Sign again."""

    code = "signature_over"


class NotAllShown(InvalidInput):
    """Some parts of the action were not shown to you. Open them first."""

    code = "not_all_shown"


class NotAcknowledged(InvalidInput):
    """Some warnings were not acknowledged. Say that you saw each of them."""

    code = "not_acknowledged"


class ReasonRequired(InvalidInput):
    """Say why: whoever made the proposal needs to know."""

    code = "reason_required"


class Uninspectable(InvalidInput):
    """Part of this action cannot be shown faithfully, so it cannot be approved."""

    code = "uninspectable"


class PreviouslyRejected(Refused):
    """Exactly this was rejected, and that still holds. A person can lift it on the page of what was rejected."""

    code = "previously_rejected"


class AlreadyAnswered(DecisionRefused):
    """This question has its answer already."""

    code = "already_answered"


class NotAskedOfYou(DecisionRefused):
    """This question was asked of somebody else."""

    code = "not_asked_of_you"
    http_status = 403


class AlreadyLifted(DecisionRefused):
    """Somebody has lifted this rejection already."""

    code = "already_lifted"


class NothingRemembered(DecisionRefused):
    """This rejection is not remembered, or its time is over: there is nothing to lift."""

    code = "nothing_remembered"


BY_STATUS: dict[str, type[DecisionRefused]] = {
    "expired": Expired,
    "superseded": Superseded,
    "withdrawn": Withdrawn,
    "invalidated": Invalidated,
    "lapsed": Invalidated,
}
"""What a late decision is told, by the state that the proposal is in; any other state: already decided."""
