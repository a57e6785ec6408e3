/* SPDX-License-Identifier: MIT */

import java.util.Arrays;

/** Prints the latenesses, one line for each bucket of the harness's histogram. */
final class Lateness {
	private static final int STEP_BITS = 6;

	private Lateness() {
	}

	/** Returns the same number for all values in one bucket (perf/harness/histogram.c). */
	private static long bucketOf(long ns) {
		int drop = 63 - Long.numberOfLeadingZeros(ns) - STEP_BITS;

		return drop > 0 ? ns >> drop << drop : ns;
	}

	/** The greatest value of each bucket represents the others, so the maximum stays exact. */
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
