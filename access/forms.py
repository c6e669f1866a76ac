"""The sign-in form."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from access.models import User
from access.policies import only_membership
from access.throttle import is_throttled, subject_of

THROTTLED = "throttled"


class SignInForm(AuthenticationForm):
    """Name and password of a person with an active membership, within the allowed number of tries."""

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username", "")
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        self.subject = subject_of(name, address)
        if is_throttled(self.subject):
            raise ValidationError(
                "There were too many tries with this name. Wait a quarter of an hour.", code=THROTTLED
            )
        return super().clean()

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if not isinstance(user, User) or only_membership(user) is None:
            raise ValidationError("This account has no access here. Ask an admin of your organisation.")

    @property
    def was_tried(self) -> bool:
        """Whether name and password were looked at; not so where a field is empty or the brake is on."""
        filled = "username" in self.cleaned_data and "password" in self.cleaned_data
        return filled and not self.has_error("__all__", code=THROTTLED)
