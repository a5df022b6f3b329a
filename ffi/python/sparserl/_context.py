"""What plans share: a policy, compilers, and a GPU, if there is one."""

import os
import threading
import weakref

from . import _driver
from ._library import LOG_FUNCTION, Log, Options, check, create, library

# CUDA, the library's threads and its locks do not live through a fork: calls would wait for ever.
FORKED = "this process was forked from one that used sparserl: start processes by spawn, or before its first use"
_made = []
_is_fork = False


class Context:
    """A policy, compilers and a GPU, shared by plans; `sparserl.plan` makes one where it is given none.

    The options are those of the header (SPARSERL_OPTION_...) in lower case: `policy`, `cache_folder`,
    `device` (a number, or -1 for none), `target`, `server`; and `log`, which is called with lines of
    text, from any thread.
    """

    def __init__(self, *, log=None, **options):
        if _is_fork:
            raise RuntimeError(FORKED)
        if log is not None:
            # Kept with the context: the library calls it.
            self._function = LOG_FUNCTION(lambda line, _: log(line.decode(errors="replace")))
            options["log"] = Log(self._function)
        with Options(options) as given:
            self.handle = create(library.sparserl_context_create, given)
        _made.append(True)
        self.process = os.getpid()
        self.has_log = log is not None
        # The number of the GPU, if there is one.
        self.ordinal = options.get("device") or 0
        self._destroy = weakref.finalize(self, _destroy, self.handle, self.process, getattr(self, "_function", None))
        # At the end of the process nothing has to be waited for, unless Python is called by then.
        self._destroy.atexit = self.has_log

    @property
    def primary_context(self):
        """The GPU's, for waiting."""
        return _driver.device(self.ordinal)

    def check_process(self):
        """Refuses another process than the one that it was made in."""
        if os.getpid() != self.process:
            raise RuntimeError(FORKED)

    def close(self):
        """Destroys it, after what is made or measured in the background at this moment, which may take seconds.
        Nothing else is searched for; plans go on with what they have."""
        self._destroy()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _destroy(handle, process, function):
    if os.getpid() == process:
        check(library.sparserl_context_destroy(handle))
    # Until here the library may have called it.
    del function


_defaults = {}
_lock = threading.Lock()


def default(ordinal):
    """The context of a GPU, or of the first one, if there is one."""
    with _lock:
        # Where there is a GPU at all, the first one is meant by none, too.
        key = ordinal or 0
        if key not in _defaults:
            _defaults[key] = Context(device=ordinal)
        return _defaults[key]


def _note_fork():
    global _is_fork
    _is_fork = bool(_made)


os.register_at_fork(after_in_child=_note_fork)
