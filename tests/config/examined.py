"""What doctor finds, for tests that break one thing after the other."""

from config.doctor.examination import examine
from config.doctor.findings import Finding, Level


def found(check: str) -> Finding:
    """The worst finding of one check, among all checks that doctor makes."""
    findings = [diagnosis.finding for diagnosis in examine() if diagnosis.check == check]
    assert findings, check
    return max(findings, key=lambda finding: list(Level).index(finding.level))


def says(check: str, level: str, words: str) -> Finding:
    """The check says this, and, where something is wrong, what to do."""
    finding = found(check)
    assert finding.level == level, finding
    assert words in finding.says, finding
    assert bool(finding.do) == (level != "ok")
    return finding
