/* SPDX-License-Identifier: MIT */

/** A timer engine that any thread may use. A process measures one; so the calls are inlined. */
abstract class Engine {
	/** Where the timeouts' ends are counted. */
	final Expired expired;

	Engine(Expired expired) {
		this.expired = expired;
	}

	/** Schedules a timeout that counts its id; returns what cancel wants. */
	abstract Object schedule(long delayNs, long id);

	/** The same, and it takes its own lateness after {@code deadlineNs} too. */
	abstract Object scheduleLate(long delayNs, long id, long deadlineNs);

	/** Runs {@code task} after the engine's worker has seen all that was scheduled before. */
	abstract void scheduleLast(Runnable task);

	/** Whether this call cancelled it. */
	abstract boolean cancel(Object handle);

	/** Ends the engine's thread. */
	abstract void close();

	interface Maker {
		Engine make(Expired expired);
	}
}
