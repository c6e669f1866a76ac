"""``./placet faults``: real processes, injected faults, and what the provider's own journal says about it."""

import argparse
import sys
from time import monotonic

from tests.faults.site import Site

KINDS = ("dedup", "lookup", "blind")
FAULTS = ("kill", "stop", "pg", "redis", "dup", "late", "clock")


def main() -> int:
    options = _parser().parse_args()
    kinds = KINDS if options.provider == "all" else (options.provider,)
    with Site() as site:
        import django

        django.setup()
        from tests.faults.chaos import Plan, run
        from tests.faults.report import write_line, write_round

        end, rounds = monotonic() + options.minutes * 60, []
        while len(rounds) < len(kinds) or monotonic() < end:
            number = options.round + len(rounds)
            plan = Plan(
                options.seed, options.actions, kinds[number % len(kinds)], tuple(options.faults), options.workers,
                options.per_second, number, options.plant,
            )  # fmt: skip
            found = run(site, plan)
            rounds.append(found)
            write_round(found, sys.stdout)
            if found.judgement.violations:
                break
        if options.keep:
            site.keep(options.keep)
        return 0 if write_line(rounds, sys.stdout) else 1


def _faults(text: str) -> list[str]:
    wanted = [word for word in text.split(",") if word and word != "none"]
    if unknown := set(wanted) - set(FAULTS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(FAULTS)}")
    return wanted


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./placet faults", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="of everything that is left to chance; the line repeats it")
    add("--round", type=int, default=0, help="the first round's number, to repeat a later one alone")
    add("--actions", type=int, default=200, help="per round; a quarter of them must not run")
    add("--minutes", type=float, default=0, help="go on in rounds for so long; one round otherwise")
    what = "what the provider can: know keys, be asked, neither; all: in turn, a round each"
    add("--provider", choices=(*KINDS, "all"), default="lookup", help=what)
    add("--faults", type=_faults, default=list(FAULTS), help=f"of {','.join(FAULTS)}; or none")
    add("--workers", type=int, default=3, help="Celery workers beside the sweep")
    add("--per-second", type=float, default=5, help="how many actions are approved each second")
    add(
        "--plant",
        default="",
        help="a defect of tests/faults/planting_*.py in every worker: the run must fail",
    )
    add("--keep", help="copy the processes' logs into this folder at the end")
    return parser


if __name__ == "__main__":
    sys.exit(main())
