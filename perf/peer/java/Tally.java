/* SPDX-License-Identifier: MIT */

/** A number of timeouts, and the sum of their ids. */
final class Tally {
	long count;
	long idSum;

	void add(long id) {
		count++;
		idSum += id;
	}

	void merge(Tally from) {
		count += from.count;
		idSum += from.idSum;
	}

	@Override
	public String toString() {
		return count + " " + Long.toUnsignedString(idSum);
	}
}
