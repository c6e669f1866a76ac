"""Addresses of the history, under /history/."""

from django.urls import path

from audit import views, views_export

app_name = "audit"
urlpatterns = [
    path("", views.history, name="history"),
    path("check/", views.check, name="check"),
    path("bundle/", views_export.bundle, name="bundle"),
    path(
        "receipts/<uuid:proposal_id>/<uuid:decision_id>/",
        views_export.decision_receipt,
        name="decision_receipt",
    ),
    path("<uuid:event_id>/", views.event, name="event"),
    path("<uuid:event_id>/receipt/", views_export.event_receipt, name="event_receipt"),
]
