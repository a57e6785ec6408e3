/* SPDX-License-Identifier: MIT */

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import io.netty.util.Version;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Netty's HashedWheelTimer with a tick of 1 ms. First argument: the slots of its wheel. */
final class NettyEngine extends Engine {
	private final HashedWheelTimer timer;

	private NettyEngine(Expired expired, int slots) {
		super(expired);
		/* Leak detection is off, because it is only meant to find forgotten timers. */
		timer = new HashedWheelTimer(Executors.defaultThreadFactory(), 1,
				TimeUnit.MILLISECONDS, slots, false);
		timer.start();
	}

	private final class Counting implements TimerTask {
		private final long id;

		Counting(long id) {
			this.id = id;
		}

		@Override
		public void run(Timeout timeout) {
			expired.add(id);
		}
	}

	private final class CountingLate implements TimerTask {
		private final long id;
		private final long deadlineNs;

		CountingLate(long id, long deadlineNs) {
			this.id = id;
			this.deadlineNs = deadlineNs;
		}

		@Override
		public void run(Timeout timeout) {
			expired.addLate(id, deadlineNs);
		}
	}

	@Override
	Object schedule(long delayNs, long id) {
		return timer.newTimeout(new Counting(id), delayNs, TimeUnit.NANOSECONDS);
	}

	@Override
	Object scheduleLate(long delayNs, long id, long deadlineNs) {
		return timer.newTimeout(new CountingLate(id, deadlineNs), delayNs, TimeUnit.NANOSECONDS);
	}

	@Override
	void scheduleLast(Runnable task) {
		timer.newTimeout(timeout -> task.run(), 0, TimeUnit.NANOSECONDS);
	}

	@Override
	boolean cancel(Object handle) {
		return ((Timeout) handle).cancel();
	}

	@Override
	void close() {
		timer.stop();
	}

	private static String version() {
		Version common = Version.identify().get("netty-common");

		return (common == null ? "?" : common.artifactVersion()) + ", ";
	}

	public static void main(String[] args) throws Exception {
		int slots = Integer.parseInt(args[0]);

		Peer.main(expired -> new NettyEngine(expired, slots), version(), args, 1);
	}
}
