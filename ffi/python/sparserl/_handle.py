"""The handle of a plan, destroyed when nobody can use it any more and no launch is left."""

import collections
import os
import threading
import weakref

from ._library import check, library

# Plans that nobody has any more. They stay here while something is captured.
_postponed = collections.deque()
# What plans were used on that nobody has any more but a graph, which writes to their workspaces.
_captured = []
# Handles of the default stream.
DEFAULT_STREAMS = (0, 1)


class Uses:
    """What plans were used on."""

    def __init__(self, context):
        self._context = context
        # By their handles. What owns a stream is kept, so that it can be waited for.
        self.streams = {}
        # By the handles of streams that nothing keeps: events behind what was asked of them last. The streams
        # may have been destroyed since.
        self.events = {}
        # Held between what is asked of such a stream and the event. A collector of garbage never waits for it.
        self._events_lock = threading.RLock()
        # What is written on them in the place of the plan's own workspace.
        self.workspaces = {}
        self._workspaces_lock = threading.Lock()
        # Whether a graph has the kernels.
        self.is_captured = False

    def ask(self, stream, act):
        """What `act` returns, which asks something of a stream, or raises that it did not."""
        device, handle = self._context.primary_context, stream.handle
        # Before the call: nobody may destroy the plan between it and a note.
        is_captured = device.is_captured(handle)
        self.is_captured = self.is_captured or is_captured
        if handle not in self.streams:
            owner = stream.owner()
            if owner is None and handle not in DEFAULT_STREAMS:
                with self._events_lock:
                    answer = act()
                    # One that is captured does nothing now.
                    if not is_captured:
                        self.events[handle] = device.record(handle, self.events.get(handle))
                    return answer
            self.streams[handle] = owner
        return act()

    def set_workspace(self, stream, memory, tell):
        """Keeps a stream's workspace, once `tell` has told the library of it."""
        handle = 0 if stream.handle in DEFAULT_STREAMS else stream.handle
        with self._workspaces_lock:
            tell()
            self.workspaces[handle] = memory

    def wait(self):
        """Waits for what was asked of the streams; false where that must not be done now."""
        with self._events_lock:
            if not self.streams and not self.events:
                return True
            return self._context.primary_context.wait(list(self.streams), list(self.events.values()))


class PlanHandle:
    """A handle of a plan.

    It is destroyed with the last view of it, or by `close`. Either waits for the streams that it was
    used on; while one of them cannot be waited for, because something is captured, the plan waits until
    another is made or destroyed. Where a graph has its kernels, only `close` destroys it.
    """

    def __init__(self, number, context):
        self.number, self.context, self.uses = number, context, Uses(context)
        self._finalize()
        destroy_postponed()

    def _finalize(self):
        self._destroy = weakref.finalize(self, _destroy, self.number, self.context.process, self.uses)
        # The end of the process frees all, and handlers of `atexit` may still ask for products.
        self._destroy.atexit = False

    def close(self):
        """Destroys it now."""
        if self._destroy.detach() is None:
            return
        self.context.check_process()
        if not self.uses.wait():
            self._finalize()
            raise RuntimeError("a plan cannot be closed while a stream that it was used on is captured")
        check(library.sparserl_plan_destroy(self.number))


def _destroy(number, process, uses):
    if uses.is_captured:
        _captured.append(uses)
    else:
        _postponed.append((number, process, uses))
        destroy_postponed()


def destroy_postponed():
    """Destroys what nobody has any more, as far as it can be waited for."""
    for _ in range(len(_postponed)):
        try:
            number, process, uses = _postponed.popleft()
        except IndexError:
            return  # another thread was faster
        if os.getpid() != process:
            continue
        if uses.wait():
            library.sparserl_plan_destroy(number)
        else:
            _postponed.append((number, process, uses))
