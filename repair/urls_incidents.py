"""Addresses of incidents, under /repair/incidents/."""

from django.urls import path

from repair import views_incidents, views_incidents_doing

urlpatterns = [
    path("incidents/", views_incidents.incidents, name="incidents"),
    path("incidents/new/", views_incidents.new, name="new_incident"),
    path("incidents/<uuid:incident_id>/", views_incidents.incident, name="incident"),
    path("incidents/<uuid:incident_id>/compare/", views_incidents.compare, name="compare_incident"),
    path("incidents/<uuid:incident_id>/report/", views_incidents.report, name="incident_report"),
    path(
        "incidents/<uuid:incident_id>/report.json", views_incidents.export, {"kind": "json"}, name="incident_json"
    ),
    path(
        "incidents/<uuid:incident_id>/report.md", views_incidents.export, {"kind": "md"}, name="incident_markdown"
    ),
    path("incidents/<uuid:incident_id>/describe/", views_incidents_doing.describe_it, name="describe_incident"),
    path("incidents/<uuid:incident_id>/freeze/", views_incidents_doing.freeze_it, name="freeze_incident"),
    path("incidents/<uuid:incident_id>/mark/", views_incidents_doing.mark_runs, name="mark_incident"),
    path("incidents/<uuid:incident_id>/look/", views_incidents_doing.look_again, name="look_incident"),
    path("incidents/<uuid:incident_id>/note/", views_incidents_doing.add_a_note, name="note_incident"),
    path("incidents/<uuid:incident_id>/contain/", views_incidents_doing.contain_it, name="contain_incident"),
    path("incidents/<uuid:incident_id>/close/", views_incidents_doing.close_it, name="close_incident"),
]  # fmt: skip
