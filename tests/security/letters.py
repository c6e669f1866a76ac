"""A workflow whose arguments are personal, and that does with them what careless authors do."""

from datetime import timedelta
from typing import Any, ClassVar

from pydantic import BaseModel

from common.fields import DataClass, Email, SecretRef, Text
from workflows.authoring import (
    Affected,
    Arguments,
    Call,
    Contract,
    Done,
    EvidencePiece,
    ExceptionCase,
    Facts,
    Finding,
    Observation,
    Operation,
    OutcomeTable,
    Policy,
    Propose,
    Site,
    Stage,
    StageContext,
    StepKind,
    Verdict,
    WaitForData,
    Workflow,
    arg,
)

ANSWERS: list[Observation | Exception] = []


class LetterArguments(Arguments):
    case: Text = arg(label="Case", data_class="business")
    to: Email = arg(label="Goes to", data_class="personal")
    name: Text = arg(label="Name", data_class="personal")
    text: Text = arg("", label="Text", data_class="personal")
    key: SecretRef = arg(label="Postage key", data_class="secret")
    note: Text = arg("", label="Note for the reviewer", data_class="personal", material=False)


class LetterPolicy(Policy[LetterArguments]):
    name: ClassVar[str] = "letters"
    version: ClassVar[int] = 1

    def judge(self, arguments: LetterArguments, facts: Facts) -> Verdict:
        return Verdict("ask_one", "letters.ask", "A letter goes to a customer.")


class SendLetter(Operation[LetterArguments]):
    """Summary and consequence name everything there is: what must not leave is replaced before they are made."""

    name: ClassVar[str] = "letters.send"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Send a letter"
    provider: ClassVar[str] = "post"
    arguments: ClassVar[type[Arguments]] = LetterArguments
    policy: ClassVar[Policy[Any]] = LetterPolicy()
    editable: ClassVar[tuple[str, ...]] = ("text",)
    outcomes: ClassVar[OutcomeTable] = OutcomeTable(refused=frozenset({422}))

    def target(self, arguments: LetterArguments) -> str:
        return f"case:{arguments.case}"

    def consequence(self, arguments: LetterArguments, facts: Facts) -> str:
        return f"Write to {arguments.name} at {arguments.to}: {arguments.text}"

    def summary(self, arguments: LetterArguments, facts: Facts) -> str:
        return f"A letter to {arguments.name}, {arguments.to}"

    def affected(self, arguments: LetterArguments, facts: Facts) -> tuple[Affected, ...]:
        record = f"case:{arguments.case}"
        return (Affected(record, "Written to", "nobody", arguments.to, data_class=DataClass.PERSONAL),)

    def execute(self, call: Call[LetterArguments]) -> Observation:
        value = call.secret(call.arguments.key)
        answer = ANSWERS.pop(0) if ANSWERS else Observation(sent=True, status=201, reference="letter_1")
        if isinstance(answer, Observation):
            return answer
        raise RuntimeError(f"the post is closed for {call.arguments.name} with {value}") from answer

    def reconcile(self, call: Call[LetterArguments]) -> Finding:
        return Finding("no_answer")


class LetterInput(BaseModel):
    case: str
    to: str
    name: str


def _read(context: StageContext) -> Done | WaitForData:
    if "text" not in context.data:
        schema = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
        return WaitForData(f"What shall {context.input.name} be told?", schema, timedelta(hours=1))
    return Done({"found": context.input.to, "wrote": context.data["text"]})


def _send(context: StageContext) -> Propose:
    found, name = context.results["read"], context.input.name
    letter = EvidencePiece(
        kind="message", title="The customer's letter", content=f"Yours, {name}".encode(), captured_at=context.now,
        data_class=DataClass.PERSONAL,
    )  # fmt: skip
    arguments = {
        "case": context.input.case, "to": found["found"], "name": name, "text": found["wrote"], "note": f"for {name}",
        "key": {"secret_ref": "postage"},
    }  # fmt: skip
    return Propose("letters.send", arguments, f"{name} asked for it", (letter,))


def _tell(context: StageContext) -> Done:
    return Done({"message": f"Dear {context.input.name}, it is on its way."})


class Letters(Workflow):
    name: ClassVar[str] = "letters"
    version: ClassVar[int] = 1
    title: ClassVar[str] = "Letters"
    contract: ClassVar[Contract] = Contract(
        owner="post-desk", promise="writes", within=timedelta(hours=1), input=LetterInput, data_sources=(),
        decision_points=(), side_effects=("letters.send",), completion="sent", never=(),
        exceptions=(ExceptionCase("no_such", "failed", "no_action", "There is none.", "post-desk"),),
    )  # fmt: skip
    stages: ClassVar[tuple[Stage, ...]] = (
        Stage("read", _read), Stage("send", _send, StepKind.SIDE_EFFECT), Stage("tell", _tell),
    )  # fmt: skip
    operations: ClassVar[tuple[type[Operation[Any]], ...]] = (SendLetter,)


class LettersOutside(Letters):
    name: ClassVar[str] = "letters-outside"
    stages: ClassVar[tuple[Stage, ...]] = ()
    accepts_proposals: ClassVar[bool] = True


__all__ = ["ANSWERS", "Letters", "LettersOutside", "Site"]
