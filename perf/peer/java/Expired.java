/* SPDX-License-Identifier: MIT */

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The timeouts that the engine's worker has run. Only the worker writes. Other threads read the count meanwhile, and
 * the other fields after they have joined the worker.
 */
final class Expired {
	private static final VarHandle COUNT;

	static {
		try {
			COUNT = MethodHandles.lookup().findVarHandle(Expired.class, "count", long.class);
		} catch (ReflectiveOperationException e) {
			throw new ExceptionInInitializerError(e);
		}
	}

	@SuppressWarnings("unused")
	private long count;
	private long idSum;
	final long[] latenessNs;
	int latenessCount;

	Expired(int latenessRoom) {
		latenessNs = new long[latenessRoom];
	}

	void add(long id) {
		idSum += id;
		COUNT.setRelease(this, (long) COUNT.get(this) + 1);
	}

	void addLate(long id, long deadlineNs) {
		latenessNs[latenessCount++] = System.nanoTime() - deadlineNs;
		add(id);
	}

	long count() {
		return (long) COUNT.getAcquire(this);
	}

	@Override
	public String toString() {
		return count() + " " + Long.toUnsignedString(idSum);
	}
}
