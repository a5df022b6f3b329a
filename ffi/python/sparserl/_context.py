"""What plans share: a policy, compilers, and a GPU, if there is one."""

import atexit
import os
import sys
import threading
import weakref

from . import _driver
from ._library import LOG_FUNCTION, Log, Options, check, create, library

# CUDA, the library's threads and its locks do not live through a fork: calls would wait for ever.
FORKED = "this process was forked from one that used sparserl: start processes by spawn, or before its first use"
_made = []
_is_fork = False
# The handles of those with a log, by their numbers, and whether no further one is made.
_talking = {}
_is_over = False


class _Handle:
    """A handle of a context, which is destroyed once."""

    def __init__(self, number, function):
        # The function is kept until then: the library calls it.
        self.number, self.process, self._function = number, os.getpid(), function
        self._claim, self._ended = threading.Lock(), threading.Event()
        if function is not None:
            _talking[number] = self

    def destroy(self):
        """Destroys it, unless another thread does, for which a collector of garbage must not wait."""
        if os.getpid() == self.process and self._claim.acquire(blocking=False):
            try:
                check(library.sparserl_context_destroy(self.number))
            finally:
                _talking.pop(self.number, None)
                self._ended.set()

    def wait(self):
        """Waits until it is destroyed."""
        self._ended.wait()


class Context:
    """A policy, compilers and a GPU, shared by plans; `sparserl.plan` makes one where it is given none.

    The options are those of the header (SPARSERL_OPTION_...) in lower case: `policy`, `cache_folder`,
    `device` (a number, or -1 for none), `target`, `server`; and `log`, which is called with lines of
    text, from any thread. A context with a log is closed when Python ends, after the handlers of `atexit` that
    were registered since this package was imported.
    """

    def __init__(self, *, log=None, **options):
        if _is_fork:
            raise RuntimeError(FORKED)
        function = None
        if log is not None:
            if not callable(log):
                raise TypeError(f"log is {log!r}: expected a function that takes a line of text")
            function = LOG_FUNCTION(lambda line, _: log(line.decode(errors="replace")))
            options["log"] = Log(function)
        with Options(options) as given:
            self._owned = _Handle(create(library.sparserl_context_create, given), function)
        _made.append(True)
        self.handle, self.process = self._owned.number, self._owned.process
        # The number of the GPU, if there is one.
        self.ordinal = options.get("device") or 0
        # At the end of the process nothing has to be waited for but logs, by `_end_logs`.
        weakref.finalize(self, self._owned.destroy).atexit = False
        if function is not None and _is_over:
            self.close()
            raise RuntimeError("Python ends, and would be gone when the log of another context is called")

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
        self._owned.destroy()

    def __reduce__(self):
        # A copy would have the same handle, and destroy it.
        raise TypeError("a context is not copied or pickled: make another by sparserl.Context")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _end_logs():
    """Destroys contexts with a log. A thread of the library that calls Python when it is gone aborts the process."""
    global _is_over
    _is_over = True
    for owned in list(_talking.values()):
        try:
            owned.destroy()
        except Exception:
            # The others are destroyed all the same.
            sys.excepthook(*sys.exc_info())
        owned.wait()


atexit.register(_end_logs)
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


def of(context, ordinal):
    """The context that is given, or that of a GPU."""
    if not isinstance(context, Context | None):
        raise TypeError(f"context is {context!r}: expected a sparserl.Context")
    context = context or default(ordinal)
    context.check_process()
    return context


def _note_fork():
    global _is_fork
    _is_fork = bool(_made)
    _talking.clear()


os.register_at_fork(after_in_child=_note_fork)
