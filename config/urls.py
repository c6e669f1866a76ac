"""Where every page and every API call of the product hangs."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from access.views import AdminSignIn, SignOut
from config import health, metrics
from config.api import api
from workflows.progress import progress

handler500 = "common.unavailable.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("api/v1/", api.urls),
    path("admin/login/", AdminSignIn.as_view()),
    path("admin/logout/", SignOut.as_view()),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="approvals:queue"), name="home"),
    path("", include("access.urls")),
    path("account/", include("notify.urls_account")),
    path("notices/", include("notify.urls")),
    path("people/notices/", include("notify.urls_telling")),
    path("people/endpoints/", include("workflows.urls_endpoints")),
    path("people/contents/", include("workflows.urls_contents")),
    path("people/", include("access.urls_people")),
    path("review/", include("approvals.urls")),
    path("review/", include("workflows.urls_edits")),
    path("runs/progress/<uuid:proposal_id>/", progress, name="progress"),
    path("runs/", include("workflows.urls")),
    path("repair/", include("repair.urls")),
    path("history/", include("workflows.urls_history")),
    path("history/", include("audit.urls_taking")),
    path("history/", include("audit.urls")),
]
