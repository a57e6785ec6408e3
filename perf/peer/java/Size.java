/* SPDX-License-Identifier: MIT */

/**
 * The size of a workload: {@code ops=N producers=N live=N}. Two more arguments have defaults:
 * {@code seed=N} for the first producer's delays, and {@code warm=N} for the least milliseconds of
 * warm-up.
 */
final class Size {
	long ops = 1_000_000;
	int producers = 1;
	int live = 1_000_000;
	long seed;
	long warmMs = 2000;

	Size() {
	}

	Size(Size like, long ops, int live) {
		this.ops = ops;
		this.live = live;
		producers = like.producers;
		seed = like.seed;
	}

	private void set(String argument) {
		int equals = argument.indexOf('=');
		String key = equals < 0 ? argument : argument.substring(0, equals);
		long value = Long.parseLong(argument.substring(equals + 1));

		if (value < 0)
			throw new IllegalArgumentException(argument + ": below 0");
		if (key.equals("ops"))
			ops = value;
		else if (key.equals("producers"))
			producers = Math.toIntExact(value);
		else if (key.equals("live"))
			live = Math.toIntExact(value);
		else if (key.equals("seed"))
			seed = value;
		else if (key.equals("warm"))
			warmMs = value;
		else
			throw new IllegalArgumentException(argument + ": unknown");
	}

	static Size parse(String[] args, int from) {
		Size size = new Size();

		for (int i = from; i < args.length; i++)
			size.set(args[i]);
		if (size.ops == 0 || size.producers == 0)
			throw new IllegalArgumentException("ops and producers: at least 1");
		return size;
	}

	/** Returns the share of {@code total} for number {@code index} of {@code count}. */
	static long share(long total, int index, int count) {
		return total / count + (index < total % count ? 1 : 0);
	}
}
