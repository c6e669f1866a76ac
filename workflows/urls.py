"""Addresses of the runs desk, under /runs/."""

from django.urls import path

from workflows import views

app_name = "workflows"
urlpatterns = [
    path("", views.runs, name="runs"),
    path("<uuid:run_id>/", views.run, name="run"),
    path("<uuid:run_id>/cancel/", views.cancel, name="cancel"),
    path("<uuid:run_id>/outcome/", views.outcome, name="outcome"),
    path("<uuid:run_id>/receipts/<str:key>/", views.step_receipt, name="receipt"),
    path("<uuid:run_id>/documents/<uuid:document_id>/", views.document, name="document"),
]
