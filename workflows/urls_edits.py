"""Addresses of editing a proposal, under /review/: which arguments it has, its operation knows."""

from django.urls import path

from workflows import views_edits

app_name = "edits"
urlpatterns = [path("<uuid:proposal_id>/edit/", views_edits.edit, name="edit")]
