"""Addresses of choices, under /repair/<packet>/choices/, and of the same for many cases, under /repair/bulk/."""

from django.urls import path

from repair import views_bulk, views_choices

urlpatterns = [
    path("bulk/<slug:choice>/", views_bulk.bulk, name="bulk"),
    path("<uuid:packet_id>/choices/<slug:choice>/", views_choices.choice, name="choice"),
]
