/* SPDX-License-Identifier: MIT */

/** A timer engine that any thread may use. A process measures only one, so the JVM inlines the calls. */
abstract class Engine {
	/** Counts the timeouts that have expired. */
	final Expired expired;

	Engine(Expired expired) {
		this.expired = expired;
	}

	/** Schedules a timeout that counts its id. Returns the handle for cancel. */
	abstract Object schedule(long delayNs, long id);

	/** Does the same; the timeout also records how late it was after {@code deadlineNs}. */
	abstract Object scheduleLate(long delayNs, long id, long deadlineNs);

	/** Runs {@code task} after the engine's worker has seen all earlier schedules. */
	abstract void scheduleLast(Runnable task);

	/** Returns whether this call cancelled the timeout. */
	abstract boolean cancel(Object handle);

	/** Ends the engine's thread. */
	abstract void close();

	interface Maker {
		Engine make(Expired expired);
	}
}
