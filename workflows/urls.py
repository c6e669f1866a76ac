"""Addresses of the runs desk, under /runs/."""

from django.urls import path

from workflows import views, views_holds

app_name = "workflows"
urlpatterns = [
    path("", views.runs, name="runs"),
    path("freezes/", views_holds.holds, name="holds"),
    path("freezes/over/<uuid:proposal_id>/", views_holds.over, name="freezes_over"),
    path("freezes/<uuid:hold_id>/", views_holds.hold, name="hold"),
    path("freezes/<uuid:hold_id>/lift/", views_holds.lift_now, name="lift"),
    path("freezes/<uuid:hold_id>/ask-again/", views_holds.ask_again_here, name="ask_again"),
    path("<uuid:run_id>/", views.run, name="run"),
    path("<uuid:run_id>/cancel/", views.cancel, name="cancel"),
    path("<uuid:run_id>/outcome/", views.outcome, name="outcome"),
    path("<uuid:run_id>/receipts/<str:key>/", views.step_receipt, name="receipt"),
    path("<uuid:run_id>/documents/<uuid:document_id>/", views.document, name="document"),
]
