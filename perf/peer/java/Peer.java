/* SPDX-License-Identifier: MIT */

/**
 * Runs the harness's workloads on a timer engine of the JVM: {@code WORKLOAD ops=N producers=N
 * live=N}. The output is in the format that perf/peer/external.c reads.
 *
 * The workload runs in small rounds until the compiler has done its work and three rounds in a row
 * take about the same time. Then it runs once, measured, with a new engine and after a garbage
 * collection.
 */
final class Peer {
	private static final long WARM_OPS = 300_000;
	private static final int WARM_LIVE = 100_000;
	private static final double WARM_MOST = 1.5;
	private static final double STABLE = 1.1;
	private static final long LIGHT_PERIOD_NS = 1_000_000;
	/* In the warm-up: the fastest rate with which every worker keeps up. */
	private static final long WARM_LIGHT_PERIOD_NS = 10_000;

	private final Engine.Maker maker;
	private final String workload;
	private final Size size;

	private Peer(Engine.Maker maker, String workload, Size size) {
		this.maker = maker;
		this.workload = workload;
		this.size = size;
	}

	private boolean allFire() {
		return workload.equals("fire") || workload.equals("light");
	}

	private Round.ProducerMaker producers(long lightPeriodNs) {
		switch (workload) {
		case "schedule-cancel":
			return Producer.ScheduleCancel::new;
		case "live-ring":
			return Producer.LiveRing::new;
		case "fire":
			return Producer.Fire::new;
		case "light":
			return (engine, size, index) ->
					new Producer.Light(engine, size, index, lightPeriodNs);
		default:
			throw new IllegalArgumentException(workload + ": unknown workload");
		}
	}

	private Round round(Size size, long lightPeriodNs) {
		/* All timeouts record their lateness, or in `fire` every eighth id of each producer. */
		long room = allFire() ? size.ops : 0;

		if (workload.equals("fire"))
			room = room / Producer.Fire.LATENESS_EVERY + size.producers;
		return new Round(maker, producers(lightPeriodNs), size, Math.toIntExact(room));
	}

	private static boolean stable(double a, double b, double c) {
		return Math.max(a, Math.max(b, c)) <= STABLE * Math.min(a, Math.min(b, c));
	}

	private void warmUp() throws Exception {
		Size small = new Size(size, workload.equals("light") ? WARM_OPS / 5 : WARM_OPS,
				Math.min(size.live, WARM_LIVE));
		long warmNs = size.warmMs * 1_000_000;
		long begunNs = System.nanoTime();
		double before = Double.NaN;
		double last = Double.NaN;
		long takenNs = 0;
		boolean stable = false;

		while (takenNs < warmNs || !stable && takenNs < WARM_MOST * warmNs) {
			Round round = round(small, WARM_LIGHT_PERIOD_NS);

			round.run(allFire(), false);
			stable = stable(before, last, round.nsPerOp());
			before = last;
			last = round.nsPerOp();
			takenNs = System.nanoTime() - begunNs;
		}
	}

	private void measure(String version) throws Exception {
		Round round = round(size, LIGHT_PERIOD_NS);
		StringBuilder text = new StringBuilder();

		round.run(allFire(), true);
		text.append("version ").append(version).append("Java ");
		text.append(System.getProperty("java.runtime.version")).append('\n');
		text.append("ns_per_op ").append(round.nsPerOp()).append('\n');
		text.append("cpu_ns_per_op ").append(round.cpuNsPerOp()).append('\n');
		round.printAccount(text);
		Lateness.print(round.expired().latenessNs, round.expired().latenessCount, text);
		text.append("end\n");
		System.out.print(text);
		System.out.flush();
	}

	/** {@code args[from]} is the workload; its size follows. */
	static void main(Engine.Maker maker, String version, String[] args, int from) throws Exception {
		Peer peer;

		try {
			if (args.length <= from)
				throw new IllegalArgumentException("WORKLOAD [ops=N] [producers=N] [live=N]");
			peer = new Peer(maker, args[from], Size.parse(args, from + 1));
			peer.producers(LIGHT_PERIOD_NS);
		} catch (IllegalArgumentException e) {
			System.err.println(e.getMessage());
			System.exit(2);
			return;
		}
		peer.warmUp();
		peer.measure(version);
		System.exit(0);
	}
}
