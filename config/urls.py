"""Where every page and every API call of the product hangs."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from config import health, metrics
from config.api import api
from workflows.progress import progress

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("api/v1/", api.urls),
    path("admin/", admin.site.urls),
    path("", RedirectView.as_view(pattern_name="approvals:queue"), name="home"),
    path("", include("access.urls")),
    path("review/", include("approvals.urls")),
    path("runs/progress/<uuid:proposal_id>/", progress, name="progress"),
    path("runs/", include("workflows.urls")),
    path("repair/", include("repair.urls")),
    path("history/", include("audit.urls")),
]
