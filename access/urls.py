"""Coming in, going out, and one's own account. Names are allauth's, which its flows look for."""

from allauth.socialaccount import views as social
from django.urls import URLPattern, path, re_path

from access import views, views_absences, views_account, views_confirm

urlpatterns: list[URLPattern] = [
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-in/", views.SignIn.as_view(), name="account_login"),
    path("sign-in/code/", views.SecondStep.as_view(), name="mfa_authenticate"),
    path("sign-in/passkey/", views.PasskeySignIn.as_view(), name="mfa_login_webauthn"),
    path("sign-in/forgot/", views.Forgot.as_view(), name="account_reset_password"),
    path("sign-in/forgot/sent/", views.ForgotSent.as_view(), name="account_reset_password_done"),
    re_path(
        r"^sign-in/new-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[0-9A-Za-z-]+)/$",
        views.NewPassword.as_view(),
        name="account_reset_password_from_key",
    ),
    path(
        "sign-in/new-password/", views.NewPasswordDone.as_view(), name="account_reset_password_from_key_done"
    ),
    path("sign-out/", views.SignOut.as_view(), name="sign-out"),
    path("sign-out/", views.SignOut.as_view(), name="account_logout"),
    path("account/", views_account.Account.as_view(), name="mfa_index"),
    path("account/password/", views_account.ChangePassword.as_view(), name="account_change_password"),
    path("account/app/", views_account.AddApp.as_view(), name="mfa_activate_totp"),
    path("account/app/remove/", views_account.RemoveApp.as_view(), name="mfa_deactivate_totp"),
    path("account/passkeys/", views_account.AddPasskey.as_view(), name="mfa_add_webauthn"),
    path("account/passkeys/<int:pk>/", views_account.RemovePasskey.as_view(), name="mfa_remove_webauthn"),
    path("account/codes/", views_account.RecoveryCodes.as_view(), name="mfa_view_recovery_codes"),
    path("account/codes/new/", views_account.NewRecoveryCodes.as_view(), name="mfa_generate_recovery_codes"),
    path("account/sessions/", views_account.Sessions.as_view(), name="usersessions_list"),
    path("account/sessions/others/", views_account.EndSession.as_view(), name="end-other-sessions"),
    path("account/sessions/<int:session_id>/", views_account.EndSession.as_view(), name="end-session"),
    path("account/confirm/", views_confirm.Confirm.as_view(), name="confirm"),
    path("account/confirm/password/", views_confirm.ConfirmPassword.as_view(), name="account_reauthenticate"),
    path("account/confirm/code/", views_confirm.ConfirmCode.as_view(), name="mfa_reauthenticate"),
    path(
        "account/confirm/passkey/", views_confirm.ConfirmPasskey.as_view(), name="mfa_reauthenticate_webauthn"
    ),
    # Whoever has no password was made so by an admin.
    path("account/password/first/", views.not_offered, name="account_set_password"),
    # Without a provider in the environment these say 404.
    path("sign-in/with/<str:provider_id>/", views.provider_sign_in, name="openid_connect_login"),
    path("sign-in/with/<str:provider_id>/back/", views.provider_back, name="openid_connect_callback"),
    path(
        "sign-in/cancelled/",
        views.with_provider(social.login_cancelled),
        name="socialaccount_login_cancelled",
    ),
    path("sign-in/error/", views.with_provider(social.login_error), name="socialaccount_login_error"),
    path("account/absences/", views_absences.mine, name="account_absences"),
    path("account/absences/end/", views_absences.end_mine, name="account_end_absence"),
    path("account/linked/", views_account.Linked.as_view(), name="socialaccount_connections"),
]
