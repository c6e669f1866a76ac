"""One's own wishes about being told, under /account/."""

from django.urls import path

from notify import views_account

urlpatterns = [path("notices/", views_account.wishes, name="account_notices")]
