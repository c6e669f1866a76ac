"""Where every page and every API call of the product hangs."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from config import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
]
