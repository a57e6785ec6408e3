/* SPDX-License-Identifier: MIT */

import java.util.concurrent.locks.LockSupport;

/**
 * One thread's share of a workload, with the same ids and delays as the harness's own producers
 * (perf/harness/producer.c). Loops run in batches, because the JVM compiles a method that is called
 * often as a whole, but would replace a single long loop in the middle of its run.
 */
abstract class Producer {
	static final int BATCH = 500;

	final Engine engine;
	final long ops;
	final long firstId;
	final int count;
	final Delays delays;
	final Object[] live;
	final Tally scheduled = new Tally();
	final Tally cancelled = new Tally();
	/** Timeouts that were cancelled after the measurement. */
	final Tally handedBack = new Tally();
	long startedNs;
	long endedNs;
	/** The time of the schedules alone, for workloads that do not measure the rest of the loop. */
	long insideNs;

	Producer(Engine engine, Size size, int index) {
		this.engine = engine;
		count = size.producers;
		ops = Size.share(size.ops, index, count);
		firstId = ((long) index << 40) + 1;
		delays = new Delays(size.seed + index);
		live = new Object[(int) (keepsLive() ? Size.share(size.live, index, count) : 0)];
	}

	boolean keepsLive() {
		return false;
	}

	void prepare() {
	}

	/** Does this producer's operations from {@code from} up to, but not including, {@code to}. */
	abstract void batch(long from, long to);

	/** Cancels the timeouts that are still pending after the measurement. */
	void clear() {
	}

	final void run() {
		startedNs = System.nanoTime();
		for (long from = 0; from < ops; from += BATCH)
			batch(from, Math.min(from + BATCH, ops));
		endedNs = System.nanoTime();
	}

	/** Schedules and cancels at once, like a request timeout whose answer comes at once. */
	static final class ScheduleCancel extends Producer {
		private static final long DELAY_NS = 30_000_000_000L;

		ScheduleCancel(Engine engine, Size size, int index) {
			super(engine, size, index);
		}

		@Override
		void batch(long from, long to) {
			for (long id = firstId + from; id < firstId + to; id++) {
				Object handle = engine.schedule(DELAY_NS, id);

				scheduled.add(id);
				if (engine.cancel(handle))
					cancelled.add(id);
			}
		}
	}

	/** Cancels the oldest pending timeout and schedules a new one in its slot, again and again. */
	static final class LiveRing extends Producer {
		private static final long FROM_US = 30_000_000;
		private static final long TO_US = 60_000_000;

		private int slot;
		private long oldestId;

		LiveRing(Engine engine, Size size, int index) {
			super(engine, size, index);
			oldestId = firstId;
		}

		@Override
		boolean keepsLive() {
			return true;
		}

		private void put(long id) {
			live[slot] = engine.schedule(delays.nextNs(FROM_US, TO_US), id);
			scheduled.add(id);
			slot = slot + 1 == live.length ? 0 : slot + 1;
		}

		private void takeOldest(Tally taken) {
			if (engine.cancel(live[slot]))
				taken.add(oldestId);
			oldestId++;
		}

		@Override
		void prepare() {
			for (int i = 0; i < live.length; i++)
				put(firstId + i);
		}

		@Override
		void batch(long from, long to) {
			for (long i = from; i < to && live.length > 0; i++) {
				takeOldest(cancelled);
				put(firstId + live.length + i);
			}
		}

		@Override
		void clear() {
			for (int i = 0; i < live.length; i++) {
				takeOldest(handedBack);
				slot = slot + 1 == live.length ? 0 : slot + 1;
			}
		}
	}

	/** Schedules as fast as possible. Every eighth timeout records its lateness. */
	static final class Fire extends Producer {
		static final int LATENESS_EVERY = 8;
		private static final long FROM_US = 1000;
		private static final long TO_US = 1_000_000;

		Fire(Engine engine, Size size, int index) {
			super(engine, size, index);
		}

		@Override
		void batch(long from, long to) {
			for (long id = firstId + from; id < firstId + to; id++) {
				long delayNs = delays.nextNs(FROM_US, TO_US);

				if (id % LATENESS_EVERY == 0)
					engine.scheduleLate(delayNs, id, System.nanoTime() + delayNs);
				else
					engine.schedule(delayNs, id);
				scheduled.add(id);
			}
		}
	}

	/** All producers together schedule a thousand timeouts a second. Each timeout records its lateness. */
	static final class Light extends Producer {
		private static final long FROM_US = 1000;
		private static final long TO_US = 50_000;
		private final long periodNs;
		private long nextNs;

		Light(Engine engine, Size size, int index, long periodNs) {
			super(engine, size, index);
			this.periodNs = periodNs;
		}

		private void scheduleOne(long id) {
			long delayNs = delays.nextNs(FROM_US, TO_US);
			long beforeNs = System.nanoTime();

			engine.scheduleLate(delayNs, id, beforeNs + delayNs);
			insideNs += System.nanoTime() - beforeNs;
			scheduled.add(id);
		}

		@Override
		void batch(long from, long to) {
			if (from == 0)
				nextNs = startedNs;
			for (long id = firstId + from; id < firstId + to; id++) {
				scheduleOne(id);
				nextNs += periodNs * count;
				for (long leftNs = nextNs - System.nanoTime(); leftNs > 0;
						leftNs = nextNs - System.nanoTime())
					LockSupport.parkNanos(leftNs);
			}
		}
	}
}
