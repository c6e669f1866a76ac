"""The database's walls: triggers that hold against ``.update()``, ``bulk_update`` and the application's raw SQL.

pgtrigger's own template lets any role switch a trigger off with ``SET pgtrigger.ignore``. A wall with a door that all
may open is none, so these triggers are compiled without it.
"""

from collections.abc import Sequence
from typing import Any

import pgtrigger
from pgtrigger import compiler


class WallSql(compiler.UpsertTriggerSql):
    """pgtrigger's installation SQL without the ignore switch. Migrations name this class: keep it."""

    def get_template(self) -> str:
        return """
            CREATE OR REPLACE FUNCTION {pgid}()
            RETURNS TRIGGER AS $$
                {declare}
                BEGIN
                    {func}
                END;
            $$ LANGUAGE plpgsql;

            DROP TRIGGER IF EXISTS {pgid} ON {table};
            CREATE {constraint} TRIGGER {pgid}
                {when} {operation} ON {table}
                {timing}
                {referencing}
                FOR EACH {level} {condition}
                EXECUTE PROCEDURE {execute};

            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class Wall(pgtrigger.Trigger):
    """A trigger that cannot be ignored. Its refusals are check violations that carry the trigger's name."""

    def compile(self, model: Any) -> compiler.Trigger:
        theirs: dict[str, Any] = super().compile(model).sql.kwargs
        ours = {key: value for key, value in theirs.items() if key != "ignore_func_name"}
        return compiler.Trigger(name=self.name, sql=WallSql(**ours))

    def refuse(self, message: str, *values: str) -> str:
        """The statement that refuses. The first ``%`` of the message is the table, the others are ``values``."""
        arguments = "".join(f", {value}" for value in ("TG_TABLE_NAME", *values))
        return (
            f"RAISE EXCEPTION '{message}'{arguments}"
            f" USING ERRCODE = 'check_violation', CONSTRAINT = '{self.name}', TABLE = TG_TABLE_NAME;"
        )


class Frozen(Wall):
    """Columns that never change after the INSERT, and rows that are never deleted, or not before they have ended."""

    when = pgtrigger.Before
    operation = pgtrigger.Update | pgtrigger.Delete

    def __init__(
        self, *, name: str, fields: Sequence[str], once: Sequence[str] = (), erasable: Sequence[str] = (),
        kept_until: str = "",
    ) -> None:  # fmt: skip
        """``once`` names columns that are NULL until they get their one value, such as the time of an end.

        ``erasable`` names columns that may become NULL, once and for ever, and nothing else. ``kept_until`` names the
        column with the time of a row's end: from a day after it on, the row may be deleted.
        """
        self.frozen, self.once, self.erasable = tuple(fields), tuple(once), tuple(erasable)
        self.kept_until = kept_until
        super().__init__(name=name)

    def get_func(self, model: Any) -> str:
        def columns(names: Sequence[str]) -> list[str]:
            return [model._meta.get_field(name).column for name in names]

        differences = [f"OLD.{c} IS DISTINCT FROM NEW.{c}" for c in columns(self.frozen)]
        for kept, names in (("OLD", self.once), ("NEW", self.erasable)):
            differences += [
                f"({kept}.{c} IS NOT NULL AND OLD.{c} IS DISTINCT FROM NEW.{c})" for c in columns(names)
            ]
        changed = " OR ".join(differences) or "TRUE"
        let_go = f"""IF TG_OP = 'DELETE' AND OLD.{self.kept_until} < clock_timestamp() - interval '1 day' THEN
                RETURN OLD;
            END IF;
            """
        return f"""
            {let_go if self.kept_until else ""}IF TG_OP = 'DELETE' THEN
                {self.refuse("frozen: rows of % are not deleted")}
            ELSIF {changed} THEN
                {self.refuse("frozen: a bound column of % may not change")}
            END IF;
            RETURN NEW;
        """


class AppendOnly(Wall):
    """Rows that are added and then neither changed nor deleted."""

    when = pgtrigger.Before
    operation = pgtrigger.Update | pgtrigger.Delete

    def get_func(self, model: Any) -> str:
        return self.refuse("append-only: rows of % are neither changed nor deleted")


class NoTruncate(Wall):
    """Row triggers do not see TRUNCATE; this one does."""

    level = pgtrigger.Statement
    when = pgtrigger.Before
    operation = pgtrigger.Truncate

    def get_func(self, model: Any) -> str:
        return self.refuse("append-only: % is not emptied")
