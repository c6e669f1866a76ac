from django.apps import AppConfig

# Connected before any model is made: each with a tenant gets its row-level security.
import common.rowsecurity  # noqa: F401
from common import instants


class CommonConfig(AppConfig):
    name = "common"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        instants.register()
