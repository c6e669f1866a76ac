"""`./placet traits`: remember the accounts, hosts and amounts of proposals from before they were kept."""

from typing import Any

from django.core.management.base import BaseCommand

from approvals.actions_traits import remember_all


class Command(BaseCommand):
    help = (
        "Keep of older proposals what new ones are compared with: accounts, hosts, names and amounts, as fingerprints."
        " Once after the upgrade that began to keep them; while the product runs. Again, it changes nothing."
    )

    def handle(self, **options: Any) -> None:
        self.stdout.write(f"Proposals whose traits are now kept: {remember_all()}.")
