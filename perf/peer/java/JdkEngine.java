/* SPDX-License-Identifier: MIT */

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The JDK's ScheduledThreadPoolExecutor with one thread. It removes cancelled tasks from its queue. */
final class JdkEngine extends Engine {
	private static final long BEAT_S = 1;
	private static final long CLOSE_S = 60;

	private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);

	private JdkEngine(Expired expired) {
		super(expired);
		executor.setRemoveOnCancelPolicy(true);
		executor.prestartAllCoreThreads();
		/*
		 * As in a server, a task is always due soon. Otherwise each timeout of
		 * schedule-cancel would be the earliest one, and would wake the thread.
		 */
		executor.scheduleWithFixedDelay(() -> { }, BEAT_S, BEAT_S, TimeUnit.SECONDS);
	}

	private final class Counting implements Runnable {
		private final long id;

		Counting(long id) {
			this.id = id;
		}

		@Override
		public void run() {
			expired.add(id);
		}
	}

	private final class CountingLate implements Runnable {
		private final long id;
		private final long deadlineNs;

		CountingLate(long id, long deadlineNs) {
			this.id = id;
			this.deadlineNs = deadlineNs;
		}

		@Override
		public void run() {
			expired.addLate(id, deadlineNs);
		}
	}

	@Override
	Object schedule(long delayNs, long id) {
		return executor.schedule(new Counting(id), delayNs, TimeUnit.NANOSECONDS);
	}

	@Override
	Object scheduleLate(long delayNs, long id, long deadlineNs) {
		return executor.schedule(new CountingLate(id, deadlineNs), delayNs, TimeUnit.NANOSECONDS);
	}

	@Override
	void scheduleLast(Runnable task) {
		executor.schedule(task, 0, TimeUnit.NANOSECONDS);
	}

	@Override
	boolean cancel(Object handle) {
		return ((Future<?>) handle).cancel(false);
	}

	@Override
	void close() {
		executor.shutdownNow();
		try {
			executor.awaitTermination(CLOSE_S, TimeUnit.SECONDS);
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	public static void main(String[] args) throws Exception {
		Peer.main(JdkEngine::new, "", args, 0);
	}
}
