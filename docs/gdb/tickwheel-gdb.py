# SPDX-License-Identifier: MIT
"""gdb and tickwheel: printers for handles, timeouts and engines, and the command `tickwheel`.

    (gdb) source tickwheel-gdb.py
    (gdb) print handle
    (gdb) tickwheel engine EXPRESSION
    (gdb) tickwheel timeout EXPRESSION

Reads memory only, so a core file will do; needs the library's debug information. docs/debugging.md.
"""
import gdb
import gdb.printing

NEVER = 2**63 - 1
GENERATION = 256
FULLEST = 10

# As in src/timeout/word.h.
STATE_MASK, WAITER, QUEUED, RESCHEDULED, PERIODIC, OVER = 7, 8, 16, 32, 64, 128
WORD_STATES = (
    "pending in a ring",
    "pending in a link queue",
    "pending in the wheel",
    "cancelled",
    "due, with an executor",
    "running",
    "expired",
    "pending in the wheel, its owner's only",
)
FLAGS = ((WAITER, "waited for"), (QUEUED, "to be filed anew"), (RESCHEDULED, "rescheduled"),
         (PERIODIC, "periodic"), (OVER, "over"))

# As in src/worker/state.h.
ENGINE_STATES = (
    "new",
    "starting",
    "running",
    "stalled: its thread could not be made",
    "failed: a callback ended its thread",
    "stopping",
    "stopped",
    "stopping, while its thread is made",
    "stopping, and no thread is at it",
)


def word_text(word):
    parts = [WORD_STATES[word & STATE_MASK]]
    parts += [name for bit, name in FLAGS if word & bit]
    return ", ".join(parts)


def deadline_text(deadline_ns):
    return "never" if deadline_ns == NEVER else str(deadline_ns)


def node_of(handle):
    """The node that a handle names, or None where it is of zeros."""
    if int(handle["node"]) == 0:
        return None
    return handle["node"].cast(gdb.lookup_type("struct twi_node").pointer()).dereference()


def handle_is_stale(handle, node):
    return int(node["word"]) // GENERATION != int(handle["generation"]) // GENERATION


class HandlePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        node = node_of(self.value)
        if node is None:
            return "{no timeout}"
        begin = f"{{timeout {int(self.value['node']):#x}, generation {int(self.value['generation']) // GENERATION}"
        try:
            if handle_is_stale(self.value, node):
                return begin + ", stale: ended, and its memory serves another}"
            return f"{begin}, {word_text(int(node['word']))}, deadline {deadline_text(int(node['deadline_ns']))}}}"
        except gdb.MemoryError:
            return begin + ", garbage: there is no such memory}"


class NodePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        word = int(self.value["word"])
        return (f"{{timeout, generation {word // GENERATION}, {word_text(word)}, "
                f"deadline {deadline_text(int(self.value['deadline_ns']))}, engine {int(self.value['engine']):#x}, "
                f"kind {int(self.value['kind']):#x}, argument {int(self.value['arg']):#x}}}")


class EnginePrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        worker = self.value["worker"]
        return f"{{engine, {ENGINE_STATES[int(worker['state'])]}, {Counters(worker).pending} pending}}"


def lane_blocks(worker):
    """The block of near lanes, and those of the pages that exist; as src/ingress/far.c."""
    yield worker["near"]
    none = gdb.lookup_static_symbol("none_mark")
    absent = {0} if none is None else {0, int(none.value().address)}
    first, last = worker["far"].type.range()
    for page in range(first, last + 1):
        blocks = worker["far"][page]
        if int(blocks) not in absent:
            yield from (blocks[number] for number in range(1 << page))


class Counters:
    """Sums over the lanes, and the worker's own; as src/api/stats.c."""

    def __init__(self, worker):
        self.total = dict.fromkeys(("scheduled_count", "ended_count", "rejected_count"), 0)
        self.lanes = self.in_rings = 0
        for block in lane_blocks(worker):
            self.block_add(block)
        total = self.total
        self.scheduled = total["scheduled_count"] + int(worker["direct_scheduled_count"])
        self.cancelled = total["ended_count"] + int(worker["direct_cancelled_count"])
        self.rejected = total["rejected_count"]
        self.expired = int(worker["expired_count"]) + int(worker["chain_expired_count"])
        self.unexpired = int(worker["unexpired_count"])
        self.pending = self.scheduled - self.expired - self.cancelled - self.unexpired

    def block_add(self, block):
        first, last = block["lane"].type.range()
        for number in range(first, last + 1):
            lane = block["lane"][number]
            for name in self.total:
                self.total[name] += int(lane[name])
            self.lanes += int(block["used"]) >> number & 1
            self.in_rings += int(lane["ring"]["tail"]) - int(lane["ring_out"]["head"])


def slot_entries(slot):
    count, chunk = 0, slot["first"]
    while int(chunk) != 0:
        count += int(chunk["count"])
        chunk = chunk["next"]
    return count


def bits_set(words, bits):
    for index in range((bits + 63) // 64):
        word = int(words[index])
        while word:
            low = word & -word
            yield index * 64 + low.bit_length() - 1
            word ^= low


def occupied_slots(engine):
    """Level, number and slot, of each slot that is not empty."""
    wheel = engine["worker"]["wheel"]
    if int(engine["options"]["wheel"]) == 0:
        hashed = wheel.cast(gdb.lookup_type("struct hashed_wheel").pointer())
        for number in bits_set(hashed["occupied"], int(hashed["slots"])):
            yield 0, number, hashed["slot"][number]
        return
    hierarchical = wheel.cast(gdb.lookup_type("struct hierarchical_wheel").pointer())
    for level in range(int(hierarchical["levels"])):
        occupied, slots = hierarchical["level"][level]["occupied"], hierarchical["level"][level]["slot"]
        for number in bits_set(occupied, slots.type.range()[1] + 1):
            yield level, number, slots[number]


def write(text):
    gdb.write(text + "\n")


def wheel_write(engine):
    wheel = engine["worker"]["wheel"]
    levels, slots = {}, []
    for level, number, slot in occupied_slots(engine):
        count = slot_entries(slot)
        levels[level] = levels.get(level, 0) + count
        slots.append((-count, level, number))
    write(f"wheel: {int(wheel['count'])} in it, tick {int(wheel['now'])}")
    for level, count in sorted(levels.items()):
        write(f"level {level}: {count}")
    overdue = slot_entries(wheel["overdue"])
    if overdue:
        write(f"overdue: {overdue}")
    for count, level, number in sorted(slots)[:FULLEST]:
        write(f"slot {number} of level {level}: {-count}")


def engine_write(engine):
    worker = engine["worker"]
    counters = Counters(worker)
    write(f"engine {int(engine.address):#x}: {ENGINE_STATES[int(worker['state'])]}")
    write(f"options: wheel {'hierarchical' if int(engine['options']['wheel']) else 'hashed'}, "
          f"tick {int(worker['tick_ns'])} ns")
    write(f"timeouts: pending {counters.pending}, scheduled {counters.scheduled}, rejected {counters.rejected}, "
          f"expired {counters.expired}, cancelled {counters.cancelled}, handed back {counters.unexpired}")
    write(f"turns: {int(worker['turn_count'])}, parks {int(worker['park_count'])}, "
          f"transferred {int(worker['transferred_count'])}, failed checks {int(worker['check_failure_count'])}")
    write(f"worker: {'the owner of a loop' if worker['loop'] else 'a thread'}, "
          f"{'asleep' if int(worker['park']['word']) == 1 else 'awake'}, executors have {int(worker['in_flight'])}")
    wheel_write(engine)
    write(f"ingress: lanes {counters.lanes}, in rings {counters.in_rings}")


def timeout_write(handle):
    write(HandlePrinter(handle).to_string())
    node = node_of(handle)
    if node is None or handle_is_stale(handle, node):
        return
    kind = node["kind"]
    argument = node["arg"]
    if int(node["word"]) & PERIODIC:
        argument = argument.cast(gdb.lookup_type("struct twi_chain").pointer())["arg"]
    write(f"engine: {int(node['engine']):#x}")
    write(f"callback: {kind['callback']}")
    write(f"finaliser: {kind['finaliser']}")
    write(f"argument: {int(argument):#x}")


class Prefix(gdb.Command):
    """tickwheel engine EXPRESSION, tickwheel timeout EXPRESSION: what an engine has, what a handle names."""

    def __init__(self):
        super().__init__("tickwheel", gdb.COMMAND_DATA, prefix=True)


class EngineCommand(gdb.Command):
    """tickwheel engine EXPRESSION: the engine to which the expression points."""

    def __init__(self):
        super().__init__("tickwheel engine", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        if value.type.strip_typedefs().code != gdb.TYPE_CODE_PTR or int(value) == 0:
            raise gdb.GdbError("this is no pointer to an engine")
        engine_write(value.cast(gdb.lookup_type("struct tw_engine").pointer()).dereference())


class TimeoutCommand(gdb.Command):
    """tickwheel timeout EXPRESSION: the timeout that a handle names."""

    def __init__(self):
        super().__init__("tickwheel timeout", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        if value.type.strip_typedefs().tag != "tw_handle":
            raise gdb.GdbError("this is no struct tw_handle")
        timeout_write(value)


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("tickwheel")
    collection.add_printer("handle", "^tw_handle$", HandlePrinter)
    collection.add_printer("timeout", "^twi_node$", NodePrinter)
    collection.add_printer("engine", "^tw_engine$", EnginePrinter)
    return collection


gdb.printing.register_pretty_printer(None, printers(), replace=True)
Prefix()
EngineCommand()
TimeoutCommand()
