/* SPDX-License-Identifier: MIT */

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * What the engine's worker has run. One thread writes; others look at the count while it does, and
 * at the rest after the engine's thread has been joined.
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
