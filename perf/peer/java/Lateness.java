/* SPDX-License-Identifier: MIT */

import java.util.Arrays;

/** Prints latenesses so that equal buckets of the harness's histogram are one line. */
final class Lateness {
	private static final int STEP_BITS = 6;

	private Lateness() {
	}

	/** Two values with the same are in one bucket (perf/harness/histogram.c). */
	private static long bucketOf(long ns) {
		int drop = 63 - Long.numberOfLeadingZeros(ns) - STEP_BITS;

		return drop > 0 ? ns >> drop << drop : ns;
	}

	/** Of each bucket the greatest stands for all: so the maximum stays exact. */
	static void print(long[] values, int count, StringBuilder to) {
		long[] sorted = Arrays.copyOf(values, count);
		int from = 0;

		Arrays.sort(sorted);
		for (int i = 1; i <= count; i++) {
			if (i < count && bucketOf(sorted[i]) == bucketOf(sorted[from]))
				continue;
			to.append("lateness ").append(sorted[i - 1]).append(' ').append(i - from);
			to.append('\n');
			from = i;
		}
	}
}
