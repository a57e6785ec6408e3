/* SPDX-License-Identifier: MIT */

/** The harness's sequence of random delays, bit for bit (perf/harness/random.h). */
final class Delays {
	private long state;

	Delays(long seed) {
		state = (seed + 1) * 0x9e3779b97f4a7c15L;
	}

	private long next() {
		long x = state;

		x ^= x >>> 12;
		x ^= x << 25;
		x ^= x >>> 27;
		state = x;
		return x * 0x2545f4914f6cdd1dL;
	}

	/** Returns a uniformly distributed delay in [fromUs, toUs), in nanoseconds. */
	long nextNs(long fromUs, long toUs) {
		return (fromUs + ((next() >>> 32) * (toUs - fromUs) >>> 32)) * 1000;
	}
}
