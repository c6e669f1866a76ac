"""From a file of plain messages to an intake file: each message gets a customer and an order of the provider."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from examples.refunds.normalizing import amounts_mentioned
from examples.refunds.provider.seed import FIRST_NUMBER, customer_of, generated_order

ORDERS = 400
"""How many orders the provider generates where it is told nothing else."""


def read_messages(source: TextIO, limit: int) -> Iterator[str]:
    """The column ``text`` of a CSV file, up to ``limit`` lines."""
    for number, row in enumerate(csv.DictReader(source)):
        if number >= limit:
            return
        yield row["text"]


def case_of(position: int, message: str, *, name: str) -> dict[str, object]:
    """The same case for the same line, whenever and wherever it is made.

    Where the message names a currency that orders have, the next order in that currency is taken.
    """
    index = _order_index(position, message)
    return {
        "event_id": f"{name}-{position + 1:05d}",
        "input": {
            "customer_id": customer_of(index),
            "requester_email": f"customer{customer_of(index).removeprefix('c-')}@example.com",
            "order_id": str(FIRST_NUMBER + index),
            "message": message,
        },
    }


def _order_index(position: int, message: str) -> int:
    named = {money.currency for money in amounts_mentioned(message)}
    for step in range(ORDERS):
        index = (position + step) % ORDERS
        if generated_order(index)["currency"] in named:
            return index
        if not named:
            break
    return position % ORDERS


def write_sample(source: Path, target: Path, *, limit: int) -> int:
    """Write one JSON line for each message; returns how many."""
    count = 0
    with source.open(encoding="utf-8", newline="") as messages, target.open("w", encoding="utf-8") as out:
        for position, message in enumerate(read_messages(messages, limit)):
            case = case_of(position, message, name=source.stem)
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
            count += 1
    return count
