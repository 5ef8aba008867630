"""Loading of a local model, told on the status bar instead of on standard error."""

from swink.app.tui.conductor import Conductor
from swink.models import catalog
from swink.stream import StreamFn


def show_loading(conductor: Conductor) -> None:
    """Let local models tell the conductor how far they are."""

    def make() -> StreamFn:
        from swink.local import Downloading, Failed, Loading, LocalStreamFn, State, megabytes

        def show(state: State) -> None:
            match state:
                case Downloading(model, done, total, step="downloading") if total:
                    told = f"fetching {model} {100 * done // total} % of {megabytes(total)}"
                case Downloading(model):
                    told = f"fetching {model}"
                case Loading(model):
                    told = f"loading {model}"
                case Failed() | _:
                    told = ""
            conductor.show_loading(told)

        return LocalStreamFn(progress=show)

    catalog.register_provider("local", make)
