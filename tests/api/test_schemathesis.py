"""The published description is true: generated requests, good and bad, get answers that it names, and never a 500."""

import warnings
from typing import Any

import pytest
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, settings

from config.api import api
from tests.api.conftest import World

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()

pytestmark = pytest.mark.django_db
CHECKED = [
    CHECKS.get_one(name)
    for name in (
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
        "unsupported_method",
    )
]  # fmt: skip
REFUSES_WHAT_DOES_NOT_FIT = CHECKS.get_one("negative_data_rejection")
schema = schemathesis.openapi.from_dict(api.get_openapi_schema(path_prefix="/api/v1/"))
# Not that of `config.wsgi`, which would make this process share its counters.
schema.app = get_wsgi_application()


def credentials(world: World, case: Any) -> dict[str, str]:
    """A token with every scope, or for the calls of people a session with its CSRF token."""
    schemes = {name for entry in case.operation.definition.raw.get("security", []) for name in entry}
    return (world.agent if "TokenAuth" in schemes else world.ada).on_the_wire


@schema.parametrize()
@settings(
    max_examples=12, derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_every_generated_request_is_answered_as_described(case: Any, world: World) -> None:
    # Of a bulk each item is answered for itself: 200 with the refusals inside.
    one = [] if isinstance(case.body, list) else [REFUSES_WHAT_DOES_NOT_FIT]
    case.call_and_validate(checks=[*CHECKED, *one], headers=credentials(world, case))
