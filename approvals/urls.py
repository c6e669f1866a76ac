"""Addresses of the review desk, under /review/."""

from django.urls import path

from approvals import views

app_name = "approvals"
urlpatterns = [
    path("", views.queue, name="queue"),
    path("arrivals/", views.arrivals, name="arrivals"),
    path("<uuid:proposal_id>/", views.proposal, name="proposal"),
    path("<uuid:proposal_id>/part/", views.open_part, name="open_part"),
    path("<uuid:proposal_id>/bar/", views.bar, name="bar"),
    path("<uuid:proposal_id>/decide/", views.decide, name="decide"),
]
