/* SPDX-License-Identifier: MIT */

import java.util.concurrent.locks.LockSupport;

/**
 * One thread's share of a workload: the same ids and delays as the harness's own producers
 * (perf/harness/producer.c). Loops go by batches, as a method that is called often is compiled as a whole,
 * where a long loop would be replaced halfway.
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
	/** After the measurement. */
	final Tally handedBack = new Tally();
	long startedNs;
	long endedNs;
	/** Of the schedules alone, where the rest of the loop is not what is measured. */
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

	/** Operations {@code from} to {@code to} of its own. */
	abstract void batch(long from, long to);

	/** After the measurement: cancels what is left pending. */
	void clear() {
	}

	final void run() {
		startedNs = System.nanoTime();
		for (long from = 0; from < ops; from += BATCH)
			batch(from, Math.min(from + BATCH, ops));
		endedNs = System.nanoTime();
	}

	/** A request timeout whose answer comes at once. */
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

	/** Cancel the oldest of those that live, schedule a new one in its place. */
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

	/** As fast as possible; every eighth takes its lateness. */
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

	/** A thousand a second of all producers together; each takes its lateness. */
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
