"""A PostgreSQL server by its address: connections to it, and what is wrong with it, without the password."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from swink.errors import InvalidInput, MisuseError, SessionBusy, SessionError
from swink.messages.redact import redact_text

if TYPE_CHECKING:
    import psycopg

OLDEST = 12
"""The first release of PostgreSQL that has all that is used here."""
CONNECT = 10
"""Seconds to wait for a server, unless the address says otherwise."""
_FORM = "postgresql://user:password@host:port/database, with special characters in the password as %40"


class PostgresServer:
    """A server and a database on it; shown as host:port/database."""

    def __init__(self, dsn: str) -> None:
        if not isinstance(dsn, str) or not dsn.strip():
            raise InvalidInput(f"dsn is the address of a server: {_FORM}")
        if find_spec("psycopg") is None:
            # Not at the top: it reads the metadata of packages, which takes long to import.
            from swink.system.extras import install_command

            raise MisuseError(f"PostgreSQL needs psycopg; install it with: {install_command('postgres')}")
        self._dsn = dsn
        self._name = "PostgreSQL"
        self._password: str | None = None

    def __repr__(self) -> str:
        return self._name

    def connect(self) -> "psycopg.Connection[Any]":
        """A new connection, to a server that will do."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        usual: dict[str, Any] = {"connect_timeout": CONNECT, "fallback_application_name": "swink"}
        address = make_conninfo(**(usual | self._parameters() | {"client_encoding": "utf8"}))
        try:
            connection = psycopg.connect(address, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise self._unreachable(error) from None
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def problem(self, error: "psycopg.Error") -> SessionError:
        """What a failed statement means, and what to do."""
        # The error itself may quote what was to be stored.
        text = redact_text((error.diag.message_primary or str(error)).strip()[:200], self._password)
        match error.sqlstate:
            case "55P03" | "40P01" | "40001":
                return SessionBusy(f"{self}: another program holds the session ({text}); try again")
            case "53100":
                what = f"the disk of the server is full ({text}); make room and try again"
            case "25006":
                return SessionError(f"{self} cannot be written ({text}); give the address of the primary")
            case "42501":
                what = f"{text}; GRANT CREATE ON DATABASE to the user, or use another one"
            case None:
                what = f"the connection was lost ({text}); nothing of this call is saved"
            case state:
                what = f"{text} (SQLSTATE {state})"
        return SessionError(f"{self}: {what}")

    def _parameters(self) -> dict[str, Any]:
        """The parts of the address. A password that splits it in the wrong place must not be shown."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        unreadable = SessionError(f"the address of the PostgreSQL server cannot be read: write {_FORM}")
        try:
            given = conninfo_to_dict(self._dsn)
        except psycopg.Error:
            raise unreadable from None
        host, port, name = (str(given.get(part) or "") for part in ("host", "port", "dbname"))
        if "@" in host + port + name or (port and not port.replace(",", "").isdigit()):
            raise unreadable
        self._password = str(given.get("password") or "") or None
        place = f"{host or 'localhost'}{f':{port}' if port else ''}{f'/{name}' if name else ''}"
        self._name = f"PostgreSQL at {redact_text(place, self._password)}"
        return dict(given)

    def _unreachable(self, error: "psycopg.Error") -> SessionError:
        text = redact_text(" ".join(str(error).split()), self._password)
        if "authentication" in text or "password" in text:
            hint = "check the user and the password"
        elif "does not exist" in text:
            hint = "create it, or give the address of another one"
        else:
            hint = "check the address, and that the server is running"
        return SessionError(f"{self} cannot be used: {text}; {hint}")

    def _check(self, connection: "psycopg.Connection[Any]") -> None:
        release = connection.info.server_version // 10000
        if release < OLDEST:
            raise SessionError(f"{self} has release {release}, which is too old: {OLDEST} or newer is needed")
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise SessionError(
                f"{self} has the encoding {encoding}, which cannot hold every text; "
                "create a database with ENCODING 'UTF8'"
            )
