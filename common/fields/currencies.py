"""ISO 4217 currencies: how many digits stand behind the point, and what their units are called."""

from __future__ import annotations

from typing import Final

_TWO: Final = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF"
    " CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL"
    " HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT"
    " MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB"
    " SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH"
    " USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG"
)
_ZERO: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE: Final = "BHD IQD JOD KWD LYD OMR TND"

SCALES: Final[dict[str, int]] = {
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys(_ZERO.split(), 0),
    **dict.fromkeys(_THREE.split(), 3),
}
"""Digits behind the point by code; funds, metals and test codes are left out: nobody is paid in them."""

UNITS: Final[dict[str, tuple[str, str]]] = {
    "EUR": ("euro", "cent"),
    "USD": ("US dollars", "cents"),
    "GBP": ("pounds sterling", "pence"),
    "CHF": ("Swiss francs", "rappen"),
    "JPY": ("yen", ""),
    "CAD": ("Canadian dollars", "cents"),
    "AUD": ("Australian dollars", "cents"),
    "SEK": ("Swedish kronor", "öre"),
    "NOK": ("Norwegian kroner", "øre"),
    "DKK": ("Danish kroner", "øre"),
    "PLN": ("złoty", "groszy"),
    "KWD": ("Kuwaiti dinars", "fils"),
}
"""Names of the whole and the small unit, for an amount in words; other codes are spelled by the code."""
