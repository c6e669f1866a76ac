"""Rows of this app in Django's admin, to look at."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group as GroupOfDjango
from django.db.models import Model

from access.models import Agent, ApiToken, BreakGlass, Duty, Group, Membership, User
from common.admin import show


def hide(*models: type[Model]) -> None:
    """Take out what Django and allauth register: second factors and sessions would be shown there, and changed."""
    for model in models:
        if admin.site.is_registered(model):
            admin.site.unregister(model)


hide(GroupOfDjango, EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken, UserSession)
show(Agent, ApiToken, BreakGlass, Duty, Group, Membership, User)
