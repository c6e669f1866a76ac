"""What runs need of their tenant."""

from functools import lru_cache
from uuid import UUID

from common.models import Tenant


@lru_cache(maxsize=1024)
def slug_of(tenant_id: UUID) -> str:
    """The tenant's slug. It stands in bound contracts and never changes, so it is read once per process."""
    return Tenant.objects.values_list("slug", flat=True).get(pk=tenant_id)
