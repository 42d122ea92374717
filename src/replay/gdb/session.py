# What gdb does during `symbiosis replay --gdb`. Runs inside of gdb.
import gdb
import json
import os

SESSION = json.loads(@SESSION@)
FATAL = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP")


class State:
    failed = False
    seen = 0


def say(text):
    gdb.write(text + "\n")


def frame_at(place):
    """The innermost frame of the user's code at this place; with another line when need be."""
    near = None
    frame = gdb.newest_frame()
    while frame is not None:
        table = frame.find_sal()
        if table.symtab is not None:
            name = os.path.basename(table.symtab.filename)
            if name == os.path.basename(place["file"]):
                if table.line == place["line"]:
                    return frame
                near = near or frame
        frame = frame.older()
    return near


def show_source(place):
    """Selects the frame and shows it. Says whether there is one."""
    try:
        frame = frame_at(place)
    except gdb.error:
        frame = None
    if frame is None:
        return False
    frame.select()
    # Where the frame stands, with its arguments, and the line.
    gdb.execute("frame")
    return True


def show_stop(stop):
    State.seen += 1
    say("")
    say("%s   [%d of %d]" % (stop["header"], State.seen, len(SESSION["stops"])))
    if stop["values"]:
        say("    " + stop["values"])
    if not show_source(stop) or not stop["object"]:
        return
    try:
        say("    now: %s = %s" % (stop["object"], gdb.parse_and_eval(stop["object"])))
    except gdb.error as error:
        say("    now: %s cannot be shown (%s)" % (stop["object"], error))


def at_mark():
    number = int(gdb.parse_and_eval("(unsigned long)$rdi"))
    try:
        thread = gdb.parse_and_eval("(char *)$rsi").string()
        gdb.selected_thread().name = thread
    except (gdb.error, UnicodeDecodeError):
        pass  # Only the name in `info threads` is lost.
    for stop in SESSION["stops"]:
        if stop["mark"] == number:
            show_stop(stop)


def at_failure(what):
    State.failed = True
    say("")
    say("the failure: %s" % what)
    if SESSION["failure"]:
        say("    recorded: %s" % SESSION["failure"]["words"])
        show_source(SESSION["failure"])


def on_stop(event):
    if isinstance(event, gdb.BreakpointEvent):
        if MARK in event.breakpoints:
            at_mark()
        elif EXIT is not None and EXIT.number in [b.number for b in event.breakpoints]:
            at_exit()
    elif isinstance(event, gdb.SignalEvent) and event.stop_signal in FATAL:
        at_failure(event.stop_signal)


def at_exit():
    status = int(gdb.parse_and_eval("(int)$rdi"))
    if status != 0:
        at_failure("exit status %d" % status)


def on_exit(event):
    if not State.failed:
        status = getattr(event, "exit_code", None)
        how = "" if status is None else " with exit status %d" % status
        say("")
        say("the program ended%s" % how)


def is_alive():
    return gdb.selected_inferior().pid != 0


def go_on_to_the_end():
    gdb.execute("run")
    while is_alive() and not State.failed:
        gdb.execute("continue")
    if State.failed and is_alive():
        gdb.execute("backtrace")
        gdb.execute("kill")
    elif State.seen < len(SESSION["stops"]):
        say("%d of %d events were passed" % (State.seen, len(SESSION["stops"])))


MARK = gdb.Breakpoint("*symbiosis_mark", internal=True)
MARK.silent = True
# Both `exit` and a return from `main` come through here.
EXIT = gdb.Breakpoint("_exit", internal=True) if SESSION["exits"] else None
if EXIT is not None:
    EXIT.silent = True
gdb.events.stop.connect(on_stop)
gdb.events.exited.connect(on_exit)

if SESSION["batch"]:
    go_on_to_the_end()
else:
    say("The program runs under the schedule and stops before each event of the projection;")
    say("`continue` goes on to the next one.")
    gdb.execute("run")
